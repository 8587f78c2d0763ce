import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import { dump } from 'js-yaml';
import { encodeProtobuf } from '../protobuf/encode.ts';
import { PROTOBUF_MEDIA_TYPE } from '../protobuf/messages.ts';
import type { JsonObject } from '../schema/schema.ts';
import { statusOf } from '../status.ts';
import { negotiate, type Output } from './accept.ts';
import type { LineWriter } from './watch-stream.ts';

export type ServerRequest = IncomingMessage | Http2ServerRequest;
export type Response = ServerResponse | Http2ServerResponse;

/** One request and its answer, the same over HTTP/1.1 and HTTP/2. */
export class Exchange {
  readonly request: ServerRequest;
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  readonly #response: Response;
  readonly #warnings: string[] = [];

  constructor(request: ServerRequest, response: Response) {
    this.request = request;
    this.#response = response;
    this.method = request.method ?? 'GET';
    this.headers = request.headers;
    const url = request.url ?? '/';
    const mark = url.indexOf('?');
    this.path = mark < 0 ? url : url.slice(0, mark);
    this.query = new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1));
  }

  get userAgent(): string | undefined {
    return this.headers['user-agent'];
  }

  /** Aborts when the client has gone. */
  get closed(): AbortSignal {
    const gone = new AbortController();
    this.#response.once('close', () => gone.abort());
    return gone.signal;
  }

  warn(text: string): void {
    const length = this.#warnings.reduce((sum, warning) => sum + warning.length, 0);
    if (length + text.length <= MAX_WARNING_CHARACTERS && !this.#warnings.includes(text)) this.#warnings.push(text);
  }

  /** Answers with an object, in the form the client accepts. */
  sendObject(code: number, output: Output, json: Buffer | object): void {
    const yaml = output.format === 'yaml';
    const protobuf = output.format === 'protobuf' ? encodeProtobuf(parsed(json) as JsonObject) : undefined;
    if (protobuf !== undefined) {
      this.sendBytes(code, PROTOBUF_MEDIA_TYPE, protobuf);
      return;
    }
    const body = yaml ? Buffer.from(dump(parsed(json))) : this.#isRead() ? pretty(json) : bytesOf(json);
    this.#sendParts(
      code,
      { 'content-type': yaml ? 'application/yaml' : 'application/json' },
      yaml ? [body] : [body, NEWLINE],
    );
  }

  sendBytes(code: number, contentType: string, body: Buffer, headers: Readonly<Record<string, string>> = {}): void {
    this.#sendParts(code, { 'content-type': contentType, ...headers }, [body]);
  }

  #sendParts(code: number, headers: Readonly<Record<string, string>>, parts: readonly Buffer[]): void {
    // The union of the two response classes has no common signature for `write` and `end`.
    const response = this.#response as ServerResponse;
    if (response.headersSent || response.destroyed) return;
    const bytes = parts.reduce((sum, part) => sum + part.length, 0);
    this.#head(code, { 'content-length': String(bytes), ...headers });
    if (this.method !== 'HEAD') for (const part of parts) response.write(part);
    response.end();
  }

  sendText(code: number, text: string): void {
    this.sendBytes(code, 'text/plain; charset=utf-8', Buffer.from(text));
  }

  /** Answers with the `Status` of a failure. */
  sendError(error: unknown): void {
    if (this.#response.headersSent) {
      // An answer that has begun can only be broken off.
      (this.#response as ServerResponse).destroy();
      return;
    }
    const status = statusOf(error);
    const retryAfter = status.details?.retryAfterSeconds ?? 0;
    if (retryAfter > 0) this.#response.setHeader('retry-after', String(retryAfter));
    let output: Output = { format: 'json', as: undefined };
    try {
      output = { ...negotiate(this.headers.accept, true), as: undefined };
    } catch {
      // A client that accepts nothing we speak gets its error as JSON.
    }
    this.sendObject(status.code, output, status);
  }

  /** Starts an answer that goes on until somebody ends it. */
  stream(contentType: string): LineWriter {
    this.#head(200, { 'content-type': contentType });
    const response = this.#response as ServerResponse;
    response.flushHeaders();
    return {
      write: line => response.write(line),
      end: () => response.end(),
      destroy: () => response.destroy(),
      onDrain: call => response.on('drain', call),
      get writableLength() {
        return response.writableLength;
      },
    };
  }

  /** Resolves when what was written has been taken, or the client has gone. */
  drained(): Promise<void> {
    const response = this.#response as ServerResponse;
    if (!response.writableNeedDrain || response.destroyed) return Promise.resolve();
    return new Promise(resolve => {
      const done = () => {
        response.off('drain', done).off('close', done);
        resolve();
      };
      response.once('drain', done).once('close', done);
    });
  }

  #head(code: number, headers: Readonly<Record<string, string>>): void {
    if (this.#warnings.length > 0) this.#response.setHeader('warning', this.#warnings.map(warningHeader));
    this.#response.statusCode = code;
    this.#response.setHeader('cache-control', 'no-cache, private');
    for (const [name, value] of Object.entries(headers)) this.#response.setHeader(name, value);
  }

  /** Whether a person reads the answer rather than a program. */
  #isRead(): boolean {
    const asked = this.query.get('pretty');
    if (asked !== null) return asked !== 'false' && asked !== '0';
    return /^(?:curl|wget|mozilla\/5\.0)/i.test(this.userAgent ?? '');
  }
}

const NEWLINE = Buffer.from('\n');
const MAX_WARNING_CHARACTERS = 4 * 1024;

function bytesOf(json: Buffer | object): Buffer {
  return Buffer.isBuffer(json) ? json : Buffer.from(JSON.stringify(json));
}

function pretty(json: Buffer | object): Buffer {
  return Buffer.from(JSON.stringify(parsed(json), null, 2));
}

function parsed(json: Buffer | object): object {
  return Buffer.isBuffer(json) ? (JSON.parse(json.toString()) as object) : (JSON.parse(JSON.stringify(json)) as object);
}

/** RFC 7234, as the real server writes it. Header values are ASCII without control characters. */
function warningHeader(text: string): string {
  const quoted = text.replace(/[\\"]/g, '\\$&').replace(/[^\x20-\x7e]/g, ' ');
  return `299 - "${quoted}"`;
}
