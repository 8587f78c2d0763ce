import { createSecureServer, type Http2SecureServer, type Http2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { DetailedPeerCertificate, TLSSocket } from 'node:tls';
import { seconds } from '../../kube/duration.ts';
import { KubeError } from '../../kube/error.ts';
import { closeAtOnce, listenOn } from '../../kube/listen.ts';
import type { Core } from '../rest/core.ts';
import { badRequest, unauthorized } from '../status.ts';
import { Discovery } from './discovery.ts';
import { Exchange, type Response, type ServerRequest } from './exchange.ts';
import { effectiveUser } from './impersonate.ts';
import { OpenApi } from './openapi.ts';
import { readPath } from './path.ts';
import { servePath } from './paths.ts';
import { discardBody } from './request-body.ts';
import { serveResource } from './resources.ts';
import { WatchHub } from './watch-hub.ts';

/** What the server shows in a handshake, and the CAs whose client certificates it asks for. */
export interface ServingIdentity {
  readonly cert: string;
  readonly key: string;
  readonly clientCa: string;
}

export interface HttpServer {
  readonly port: number;
  /** Takes effect at the next handshake. */
  setIdentity(identity: ServingIdentity): void;
  /** How many watches are open. */
  readonly watches: () => number;
  close(): Promise<void>;
}

export interface HttpOptions {
  readonly host: string;
  readonly port: number;
  readonly identity: ServingIdentity;
  /** Told about failures that are ours: answers with code 500. */
  readonly onError: (error: unknown) => void;
}

/** As many as Go's server allows. */
const MAX_STREAMS_PER_CONNECTION = 250;
/** Over HTTP/1.1 as much as Go's server takes; more is answered with 431. */
const MAX_HEADER_BYTES = 1024 * 1024;
/** Over HTTP/2 what Node's library can take. Clients are told, so that a longer URL does not cost them the connection. */
const MAX_HTTP2_HEADER_BYTES = 64 * 1024;
/** In megabytes. A large list waits in memory until the client takes it; new streams are refused past this. */
const MAX_SESSION_MEMORY_MB = 512;
const LIMITS = {
  maxHeaderSize: MAX_HEADER_BYTES,
  settings: { maxConcurrentStreams: MAX_STREAMS_PER_CONNECTION, maxHeaderListSize: MAX_HTTP2_HEADER_BYTES },
  maxSessionMemory: MAX_SESSION_MEMORY_MB,
};
const KEEP_ALIVE_MS = seconds(30);
/** Connections that are still busy this long after a close are cut. */
const CLOSE_GRACE_MS = seconds(2);

/** Serves the API over TLS, HTTP/2 and HTTP/1.1. */
export async function serveHttp(core: Core, { host, port, identity, onError }: HttpOptions): Promise<HttpServer> {
  const hub = new WatchHub(() => core.store.revision);
  const documents = { discovery: new Discovery(core.registry), openApi: new OpenApi(core.registry) };
  const server = createSecureServer({
    ...secureContext(identity),
    allowHTTP1: true,
    requestCert: true,
    // Client certificates are verified for each request, so that a change of CAs reaches open connections too.
    rejectUnauthorized: false,
    minVersion: 'TLSv1.2',
    ...LIMITS,
  });
  const connections = trackConnections(server);
  server.on('request', (request, response) => {
    void handle(request, response);
  });
  server.on('clientError', refuseUnreadable);
  // A failed handshake or a broken connection is the client's affair.
  for (const event of ['tlsClientError', 'sessionError'] as const) server.on(event, () => {});
  const taken = await listenOn(server, port, host);
  return {
    port: taken,
    setIdentity: next => server.setSecureContext(secureContext(next)),
    watches: () => hub.size,
    async close() {
      hub.close();
      const closed = new Promise<void>(resolve => {
        server.close(() => resolve());
      });
      connections.finish();
      const cut = setTimeout(() => void closeAtOnce(server), CLOSE_GRACE_MS);
      await closed;
      clearTimeout(cut);
    },
  };

  async function handle(request: ServerRequest, response: Response): Promise<void> {
    const exchange = new Exchange(request, response);
    countBusy(request, response);
    request.on('error', () => {});
    response.on('error', () => {});
    try {
      await answer(exchange);
    } catch (error) {
      if (!(error instanceof KubeError)) onError(error);
      exchange.sendError(error);
    }
    // What is left of a body that was refused is taken and thrown away, so that the client gets to read the answer.
    if (!request.readableEnded) discardBody(request, () => cutOff(request));
  }

  async function answer(exchange: Exchange): Promise<void> {
    const target = readPath(exchange.path);
    if (target === undefined) throw badRequest('the path of the request has a broken escape');
    const answer = core.authenticator.authenticate({
      peerChain: peerChain(exchange.request.socket as TLSSocket),
      authorization: exchange.headers.authorization,
      path: exchange.path,
    });
    if (!answer.ok) throw unauthorized();
    const user = effectiveUser(exchange.headers, answer.user, core.authorizer);
    if (target.what === 'path') servePath(core, documents, exchange, target.path, user);
    else await serveResource(core, hub, exchange, target, user);
  }
}

function secureContext({ cert, key, clientCa }: ServingIdentity): { cert: string; key: string; ca: string } {
  return { cert, key, ca: clientCa };
}

/** Answers what is not HTTP/1.1, or has too much before its body, and takes the rest so that the answer can be read. */
function refuseUnreadable(error: Error & { code?: string }, socket: Socket): void {
  if (!socket.writable || (BUSY.get(socket) ?? 0) > 0) {
    socket.destroy();
    return;
  }
  const status = UNREADABLE[error.code ?? ''] ?? '400 Bad Request';
  socket.end(`HTTP/1.1 ${status}\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n${status}`);
  socket.removeAllListeners('data');
  discardBody(socket, () => socket.destroy());
}

const UNREADABLE: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: '413 Payload Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
};

/** Ends one request over HTTP/2, where destroying it would leave its stream open; over HTTP/1.1 the connection. */
function cutOff(request: ServerRequest): void {
  if ('stream' in request) request.stream.close();
  else request.destroy();
}

/** The certificates a client has shown, leaf first. Read once for each connection. */
function peerChain(socket: TLSSocket): readonly Buffer[] {
  const known = CHAINS.get(socket);
  if (known !== undefined) return known;
  const chain: Buffer[] = [];
  let next: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true);
  while (next?.raw !== undefined && chain.length < MAX_CHAIN_LENGTH) {
    chain.push(next.raw);
    // A self-signed certificate is its own issuer.
    next = next.issuerCertificate === next ? undefined : next.issuerCertificate;
  }
  CHAINS.set(socket, chain);
  return chain;
}

const CHAINS = new WeakMap<object, readonly Buffer[]>();
const MAX_CHAIN_LENGTH = 10;

function trackConnections(server: Http2SecureServer): { finish(): void } {
  const sockets = new Set<TLSSocket>();
  const sessions = new Set<Http2Session>();
  // First of all listeners: OpenSSL has looked at the client certificate, and where a CA of ours has the name of its issuer
  // but not the key, the failure is left in a queue in which the next read would find it and break the connection. Reading
  // the certificate empties the queue.
  server.prependListener('secureConnection', peerChain);
  server.on('secureConnection', socket => {
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('session', session => {
    sessions.add(session);
    session.once('close', () => sessions.delete(session));
  });
  return {
    finish() {
      for (const session of sessions) session.close();
      for (const socket of sockets) if (isIdleHttp1(socket)) socket.destroy();
    },
  };
}

/** A kept-alive HTTP/1.1 connection on which nothing is going on. */
function isIdleHttp1(socket: TLSSocket): boolean {
  return socket.alpnProtocol !== 'h2' && (BUSY.get(socket) ?? 0) === 0;
}

/** How many requests are being answered on each HTTP/1.1 connection. */
const BUSY = new WeakMap<object, number>();

function countBusy(request: ServerRequest, response: Response): void {
  const { socket } = request;
  if (request.httpVersionMajor > 1) return;
  BUSY.set(socket, (BUSY.get(socket) ?? 0) + 1);
  response.once('close', () => BUSY.set(socket, (BUSY.get(socket) ?? 1) - 1));
}
