import { isIP } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';

/** One TLS connection that is made to see whether both sides accept each other. */
export interface HandshakeRequest {
  readonly host: string;
  readonly port: number;
  /** The name that is asked for and that the server's certificate has to be good for. */
  readonly serverName: string;
  /** What the client shows of itself; absent: nothing, and then only the server is checked. */
  readonly pair?: { readonly cert: string; readonly key: string } | undefined;
  /** What the client checks the server with; absent: it does not. */
  readonly ca?: string | undefined;
  readonly timeoutMs: number;
}

/**
 * `refused` names the side that did not accept what the other one showed. `unreachable` says nothing about trust: nobody
 * listened. `cut-off`: the handshake went well, and then there was no answer; a server that stops does that, and so does one that
 * ends the connections of those it does not accept.
 */
export type HandshakeOutcome =
  | { readonly kind: 'accepted' }
  | { readonly kind: 'refused'; readonly by: 'client' | 'server'; readonly reason: string }
  | { readonly kind: 'unreachable' | 'cut-off'; readonly reason: string };

/**
 * What is asked for after the handshake. In TLS 1.3 a client is done before the server has looked at its certificate, so only an
 * answer shows that it was accepted. A stand-in says here whom it takes the caller for; any other server answers 401 to a
 * certificate that it does not accept, and something else to all others.
 */
export const CLIENT_CHECK_PATH = '/rotunda.dev/client';

const HEADERS_END = '\r\n\r\n';
/** A server that has more to say than this is not one of those that are asked. */
const LONGEST_ANSWER_BYTES = 64 * 1024;
/** What a server that is being stopped does to its connections. */
const GONE = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND']);

/** Makes a real connection, checks both directions, and closes it. Never rejects. */
export function shakeHands(request: HandshakeRequest): Promise<HandshakeOutcome> {
  const { host, port, serverName, pair, ca, timeoutMs } = request;
  return new Promise(resolve => {
    let socket: TLSSocket;
    const timer = setTimeout(
      () => settle({ kind: 'unreachable', reason: `no answer within ${timeoutMs} ms` }),
      timeoutMs,
    );
    const settle = (outcome: HandshakeOutcome) => {
      clearTimeout(timer);
      socket?.destroy();
      resolve(outcome);
    };
    try {
      socket = connect({
        host,
        port,
        ...(isIP(serverName) === 0 ? { servername: serverName } : {}),
        ...pair,
        ...(ca === undefined ? {} : { ca }),
        rejectUnauthorized: ca !== undefined,
        ALPNProtocols: ['http/1.1'],
      });
    } catch (error) {
      settle({ kind: 'refused', by: 'client', reason: `its own files cannot be used: ${codeOf(error)}` });
      return;
    }
    let isServerAccepted = false;
    const chunks: Buffer[] = [];
    socket.once('secureConnect', () => {
      isServerAccepted = true;
      if (pair === undefined) settle({ kind: 'accepted' });
      else socket.write(`GET ${CLIENT_CHECK_PATH} HTTP/1.1\r\nHost: ${serverName}\r\nConnection: close\r\n\r\n`);
    });
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      const answer = Buffer.concat(chunks);
      if (answer.length > LONGEST_ANSWER_BYTES || isComplete(answer)) settle(outcomeOf(answer, true));
    });
    socket.once('end', () => settle(outcomeOf(Buffer.concat(chunks), isServerAccepted)));
    socket.once('close', () => settle(outcomeOf(Buffer.concat(chunks), isServerAccepted)));
    socket.on('error', error => {
      const code = codeOf(error);
      if (GONE.has(code)) settle({ kind: isServerAccepted ? 'cut-off' : 'unreachable', reason: code });
      else settle({ kind: 'refused', by: isServerAccepted || isAlert(code) ? 'server' : 'client', reason: code });
    });
  });
}

/** Not every server ends the connection when it is asked to: etcd's peer port leaves that to the client. */
function isComplete(answer: Buffer): boolean {
  const end = answer.indexOf(HEADERS_END);
  if (end < 0) return false;
  const length = /^content-length:\s*(\d+)\s*$/im.exec(answer.toString('latin1', 0, end))?.[1];
  return length !== undefined && answer.length >= end + HEADERS_END.length + Number(length);
}

/** What the server's answer says of the client. */
function outcomeOf(answer: Buffer, isServerAccepted: boolean): HandshakeOutcome {
  const text = answer.toString('latin1');
  const status = /^HTTP\/1\.[01] (\d{3})/.exec(text)?.[1];
  if (status === undefined) {
    return { kind: isServerAccepted ? 'cut-off' : 'unreachable', reason: 'ended the connection without an answer' };
  }
  if (status === '401') return { kind: 'refused', by: 'server', reason: 'answered 401' };
  if (/"trusted":\s*false/.test(text))
    return { kind: 'refused', by: 'server', reason: 'does not trust the certificate' };
  return { kind: 'accepted' };
}

/** The other side ended the handshake. */
function isAlert(code: string): boolean {
  return code.startsWith('ERR_SSL_') && code.includes('ALERT');
}

/** The code of an error names what is wrong; its text might hold more than people should see. */
function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? (error as Error).name;
}
