import { createHash } from 'node:crypto';
import { request } from 'node:https';
import { TLSSocket } from 'node:tls';

/** A question to a server of this cluster. */
export interface Question {
  readonly url: string;
  /** PEM: what the server is verified with. */
  readonly ca: string;
  readonly pair?: { readonly cert: string; readonly key: string } | undefined;
  /** JSON; then it is a POST. */
  readonly body?: string | undefined;
}

export interface Answer {
  readonly status: number;
  readonly body: string;
  /** What the server showed of itself, by digest. */
  readonly shown: string;
}

/** Asks; rejects with a sentence when there is no answer. */
export type Ask = (question: Question) => Promise<Answer>;

const TIMEOUT_MS = 10_000;
const LONGEST_ANSWER_BYTES = 1024 * 1024;

/** Asks over a connection of its own, so that what is shown is what the server shows now. */
export const askServer: Ask = ({ url, ca, pair, body }) =>
  new Promise((resolve, reject) => {
    const fail = (why: string) => reject(new Error(`${new URL(url).host}: ${why}`));
    const headers = body === undefined ? {} : { 'content-type': 'application/json' };
    const method = body === undefined ? 'GET' : 'POST';
    const options = { agent: false as const, method, headers, ca, ...pair, timeout: TIMEOUT_MS };
    const call = request(url, options, response => {
      const { socket } = response;
      const raw = socket instanceof TLSSocket ? socket.getPeerCertificate().raw : undefined;
      const shown = raw === undefined ? '' : createHash('sha256').update(raw).digest('hex');
      const chunks: Buffer[] = [];
      let size = 0;
      response.on('data', (chunk: Buffer) => {
        size += chunk.length;
        if (size > LONGEST_ANSWER_BYTES) call.destroy(new Error('the answer is too long'));
        else chunks.push(chunk);
      });
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString(), shown }),
      );
      response.on('error', error => fail(codeOf(error)));
    });
    const timer = setTimeout(() => call.destroy(new Error(`no answer within ${TIMEOUT_MS} ms`)), TIMEOUT_MS);
    call.on('close', () => clearTimeout(timer));
    call.on('timeout', () => call.destroy(new Error(`no answer within ${TIMEOUT_MS} ms`)));
    call.on('error', error => fail(codeOf(error)));
    call.end(body);
  });

/** The code says what is wrong; a text might hold more than people should see. */
function codeOf(error: Error): string {
  return (error as NodeJS.ErrnoException).code ?? error.message;
}
