import { connect as connectPlain, isIP, isIPv4, type Socket } from 'node:net';
import { checkServerIdentity, connect as connectTls } from 'node:tls';
import type { buildConnector, Dispatcher } from 'undici';
import { type Access, type Connection, isSameTransport } from './access.ts';
import { type Clock, sleep } from './clock.ts';
import { seconds } from './duration.ts';
import { ConnectionError } from './error.ts';
import { Pool } from './pool.ts';

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With its query, below the path of the server's URL. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  readonly signal: AbortSignal;
  /** A stream lives for minutes and gets a connection of its own; calls share a few. */
  readonly stream: boolean;
}

export type HttpAnswer = Dispatcher.ResponseData;

/** More calls than these at once wait for each other. */
const CALL_CONNECTIONS = 32;
/** Each open watch holds a connection; so many mean that somebody forgets to close them. */
const MOST_STREAMS = 1024;
/** How long requests under way may go on over a connection whose credentials have been replaced. */
const DRAIN_MS = seconds(60);
/** Shorter than the 90 s after which kube-apiserver closes an idle connection, so that we are first. */
const KEEP_ALIVE_MS = seconds(60);
const CONNECT_TIMEOUT_MS = seconds(10);
const TCP_KEEP_ALIVE_MS = seconds(30);

/**
 * Connections to one API over HTTP/1.1. When server address, CA or client certificate change, new requests use new
 * connections while those under way finish on the old ones.
 */
export class Transport {
  readonly #access: Access;
  readonly #clock: Clock;
  readonly #draining = new Set<Lane>();
  readonly #closing = new AbortController();
  #lane: Lane | undefined;

  constructor(access: Access, clock: Clock) {
    this.#access = access;
    this.#clock = clock;
  }

  async send(request: HttpRequest): Promise<HttpAnswer> {
    const connection = await this.#access.connection();
    request.signal.throwIfAborted();
    if (this.#closing.signal.aborted) throw new ConnectionError('CLOSED', 'this client has been closed');
    return this.#laneTo(connection).send(request, connection.headers);
  }

  /** True when the credentials may be better the next time. */
  refused(): boolean {
    return this.#access.refused();
  }

  /** Ends every request and every connection. */
  async close(): Promise<void> {
    this.#closing.abort(new ConnectionError('CLOSED', 'this client has been closed'));
    const lanes = [...this.#draining, ...(this.#lane === undefined ? [] : [this.#lane])];
    this.#lane = undefined;
    await Promise.all(lanes.map(lane => lane.destroy()));
  }

  #laneTo(connection: Connection): Lane {
    if (this.#lane !== undefined && isSameTransport(this.#lane.connection, connection)) return this.#lane;
    const lane = new Lane(connection);
    if (this.#lane !== undefined) void this.#drain(this.#lane);
    this.#lane = lane;
    return lane;
  }

  async #drain(lane: Lane): Promise<void> {
    this.#draining.add(lane);
    const waiting = new AbortController();
    const stop = () => {
      waiting.abort();
    };
    this.#closing.signal.addEventListener('abort', stop, { once: true });
    void lane.close().then(stop);
    await sleep(this.#clock, DRAIN_MS, waiting.signal).catch(() => {});
    this.#closing.signal.removeEventListener('abort', stop);
    await lane.destroy();
    this.#draining.delete(lane);
  }
}

/** The connections that share one server address and one set of TLS material. */
class Lane {
  readonly connection: Connection;
  readonly #prefix: string;
  readonly #sockets = new Set<Socket>();
  readonly #calls: Pool;
  readonly #streams: Pool;
  #openStreams = 0;

  constructor(connection: Connection) {
    this.connection = connection;
    const { server } = connection;
    assertProtected(server);
    this.#prefix = server.pathname.replace(/\/+$/, '');
    const options: Pool.Options = {
      connect: connector(connection, this.#sockets),
      allowH2: false,
      pipelining: 1,
      // Every request carries a signal with its own limits; a watch may be silent for long.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: KEEP_ALIVE_MS,
    };
    this.#calls = new Pool(server.origin, { ...options, connections: CALL_CONNECTIONS });
    this.#streams = new Pool(server.origin, { ...options, connections: MOST_STREAMS });
  }

  async send(request: HttpRequest, shared: Connection['headers']): Promise<HttpAnswer> {
    const { method, path, headers, body = null, signal, stream } = request;
    const options = { method, path: `${this.#prefix}${path}`, headers: { ...shared, ...headers }, body, signal };
    if (!stream) return this.#calls.request(options);
    if (this.#openStreams >= MOST_STREAMS) {
      throw new ConnectionError('TOO_MANY_STREAMS', `${MOST_STREAMS} watches are open already`);
    }
    this.#openStreams++;
    try {
      const answer = await this.#streams.request(options);
      answer.body.once('close', () => {
        this.#openStreams--;
      });
      return answer;
    } catch (error) {
      this.#openStreams--;
      throw error;
    }
  }

  /** Resolves when the requests under way are done; takes no new ones. */
  async close(): Promise<void> {
    await Promise.allSettled([this.#calls.close(), this.#streams.close()]);
  }

  /** Ends everything, also sockets that are still being connected. */
  async destroy(): Promise<void> {
    const closed = new ConnectionError('CLOSED', 'the connection has been closed on our side');
    await Promise.allSettled([this.#calls.destroy(closed), this.#streams.destroy(closed)]);
    for (const socket of this.#sockets) socket.destroy();
  }
}

/** Plain HTTP would show tokens and keys to everybody on the way; only the machine itself may be spoken to like that. */
function assertProtected({ protocol, hostname }: URL): void {
  if (protocol === 'https:') return;
  const host = bare(hostname);
  const isLoopback = host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'));
  if (protocol === 'http:' && isLoopback) return;
  throw new ConnectionError('UNPROTECTED', `${protocol}//${hostname}: expected https, or http on a loopback address`);
}

/** Opens sockets and keeps count of them, so that closing leaves none behind. */
function connector({ server, tls }: Connection, sockets: Set<Socket>): buildConnector.connector {
  const host = bare(server.hostname);
  const port = Number(server.port) || (server.protocol === 'https:' ? 443 : 80);
  const name = tls.serverName ?? host;
  let session: Buffer | undefined;
  const open = (): Socket => {
    if (server.protocol !== 'https:') return connectPlain({ host, port });
    const socket = connectTls({
      host,
      port,
      servername: isIP(name) === 0 ? name : '',
      checkServerIdentity: (_host, certificate) => checkServerIdentity(name, certificate),
      rejectUnauthorized: !tls.insecure,
      minVersion: 'TLSv1.2',
      ALPNProtocols: ['http/1.1'],
      ca: tls.ca,
      cert: tls.certificate,
      key: tls.key,
      session,
    });
    return socket.on('session', fresh => {
      session = fresh;
    });
  };
  return (_options, callback) => {
    const socket = open();
    const timer = setTimeout(() => {
      socket.destroy(new ConnectionError('CONNECT_TIMEOUT', `no connection within ${CONNECT_TIMEOUT_MS / 1000} s`));
    }, CONNECT_TIMEOUT_MS);
    let answered = false;
    const answer = (error: Error | null) => {
      clearTimeout(timer);
      if (answered) return;
      answered = true;
      if (error === null) callback(null, socket);
      else callback(error, null);
    };
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.setKeepAlive(true, TCP_KEEP_ALIVE_MS);
    socket.once(server.protocol === 'https:' ? 'secureConnect' : 'connect', () => {
      answer(null);
    });
    socket.once('error', answer);
    socket.once('close', () => {
      sockets.delete(socket);
      answer(new ConnectionError('CLOSED', 'the connection was closed while it was being made'));
    });
  };
}

/** An IPv6 address without the brackets it wears in a URL. */
function bare(hostname: string): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
}
