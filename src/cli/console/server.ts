import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { type Log, silentLog } from '../../controller/log.ts';
import type { Access } from '../../kube/access.ts';
import { HttpKube } from '../../kube/client.ts';
import { type Clock, systemClock } from '../../kube/clock.ts';
import { seconds } from '../../kube/duration.ts';
import { ConnectionError, KubeError } from '../../kube/error.ts';
import { closeAtOnce, listenOn } from '../../kube/listen.ts';
import type { Kube } from '../../kube/port.ts';
import { ActionRefused } from './actions.ts';
import { Api } from './api.ts';
import type { HandshakeSource } from './feed.ts';
import { allowedHosts, bracketed, HttpProblem, isLoopback, sendJson, setSecurityHeaders } from './http.ts';
import { holdsKeyMaterial } from './key-material.ts';
import { loadPage, type Page } from './page.ts';
import { Principals } from './principals.ts';
import { Sessions } from './sessions.ts';
import { followTls, type TlsFiles } from './tls.ts';

export interface ConsoleOptions {
  /** The API, and the identity of whoever starts the console; users who log in with a token reach it as themselves. */
  readonly access: Access;
  /** How the one who starts the console reaches the API; made from `access` unless given. */
  readonly kube?: Kube | undefined;
  /** Loopback unless told otherwise; anything else needs TLS. */
  readonly host?: string | undefined;
  /** 0 chooses a free one. */
  readonly port?: number | undefined;
  readonly tls?: TlsFiles | undefined;
  /** Further names under which browsers may call it. */
  readonly hostnames?: readonly string[] | undefined;
  /** Live handshakes, where somebody makes them. */
  readonly prober?: HandshakeSource | undefined;
  readonly log?: Log | undefined;
  readonly clock?: Clock | undefined;
}

export interface RunningConsole {
  readonly url: string;
  /** A URL that logs in as whoever started the console; good once, for an hour. Each call makes a new one. */
  loginUrl(): string;
  close(): Promise<void>;
}

const HEADERS_TIMEOUT_MS = seconds(10);
const REQUEST_TIMEOUT_MS = seconds(30);
const SWEEP_MS = seconds(30);
const MOST_CONNECTIONS = 512;

/** Serves the web console for a cluster. */
export async function startConsole(options: ConsoleOptions): Promise<RunningConsole> {
  const { access, host = '127.0.0.1', port = 0, tls, hostnames = [], log = silentLog, clock = systemClock } = options;
  if (tls === undefined && !isLoopback(host)) {
    throw new Error(
      `the console sends cookies and tokens: to listen on ${host}, which others can reach, it needs a TLS certificate and key`,
    );
  }
  const [page, { server: apiServer }] = await Promise.all([loadPage(), access.connection()]);
  const ownKube = options.kube === undefined ? new HttpKube(access, { fieldManager: 'rotunda-console' }) : undefined;
  const onError = (err: unknown) => log.debug({ err }, 'a watch or a connection of the console failed');
  const sessions = new Sessions(clock, principal => void principals.forget(principal).catch(onError));
  const principals: Principals = new Principals({
    access,
    ownerKube: options.kube ?? (ownKube as Kube),
    server: apiServer.href.replace(/\/$/, ''),
    prober: options.prober,
    clock,
    onUnauthorized: principal => sessions.endOf(principal),
    onError,
  });
  const followed = tls && (await followTls(tls, log));
  const server = followed === undefined ? createHttpServer() : createHttpsServer(followed.material);
  if (followed !== undefined)
    followed.onChange(material => (server as ReturnType<typeof createHttpsServer>).setSecureContext(material));
  server.headersTimeout = HEADERS_TIMEOUT_MS;
  server.requestTimeout = REQUEST_TIMEOUT_MS;
  server.maxConnections = MOST_CONNECTIONS;
  try {
    await listenOn(server, port, host);
  } catch (error) {
    followed?.stop();
    await ownKube?.close();
    throw error;
  }
  const actualPort = (server.address() as AddressInfo).port;
  const isTls = tls !== undefined;
  const url = `${isTls ? 'https' : 'http'}://${bracketed(host)}:${actualPort}`;
  const hosts = allowedHosts(host, actualPort, hostnames);
  const api = new Api({ sessions, principals, clock, isTls, port: actualPort });
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    // A connection that breaks is the affair of whoever asked; unheard, it would end the process.
    for (const half of [request, response]) half.on('error', onError);
    setSecurityHeaders(response, isTls);
    answer(request, response, { page, api, hosts, isTls })
      .catch((error: unknown) => fail(response, error, log))
      // Nobody's request ends the process.
      .catch((error: unknown) => {
        log.error({ err: error }, 'a request to the console could not even be refused');
        response.destroy();
      });
  });
  // Watching from the start makes the first page quick, and its history complete.
  principals
    .owner()
    .then(({ feed }) => feed.start())
    .catch(onError);
  const sweep = setInterval(() => sessions.forgetExpired(), SWEEP_MS).unref();
  return {
    url,
    loginUrl: () => `${url}/#login=${sessions.makeLink()}`,
    async close() {
      followed?.stop();
      clearInterval(sweep);
      for (const session of sessions.all()) sessions.end(session);
      await closeAtOnce(server);
      await principals.close();
      await ownKube?.close();
    },
  };
}

interface Surroundings {
  readonly page: Page;
  readonly api: Api;
  readonly hosts: ReadonlySet<string>;
  readonly isTls: boolean;
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { page, api, hosts, isTls }: Surroundings,
): Promise<void> {
  const host = (request.headers.host ?? '').toLowerCase();
  if (!hosts.has(host)) throw new HttpProblem(421, 'this server does not answer to that name');
  const { method = 'GET' } = request;
  if (method !== 'GET' && method !== 'HEAD') refuseForeign(request, `${isTls ? 'https' : 'http'}://${host}`);
  const url = new URL(request.url ?? '/', 'http://console');
  if (url.pathname.startsWith('/api/')) return api.answer(request, response, url);
  const file = page.get(url.pathname);
  if (file === undefined) throw new HttpProblem(404, 'there is no such page');
  if (method !== 'GET' && method !== 'HEAD') throw new HttpProblem(405, 'the page can only be read');
  const headers = { 'content-type': file.type, 'cache-control': 'no-cache', etag: file.etag };
  if (request.headers['if-none-match'] === file.etag) response.writeHead(304, headers).end();
  else response.writeHead(200, headers).end(method === 'HEAD' ? undefined : file.body);
}

/** Browsers say where a request comes from; only our own page may change anything. */
function refuseForeign({ headers }: IncomingMessage, own: string): void {
  const site = headers['sec-fetch-site'];
  const isForeign =
    (headers.origin !== undefined && headers.origin !== own) || (site !== undefined && site !== 'same-origin');
  if (isForeign) throw new HttpProblem(403, 'requests from other pages are refused');
}

function fail(response: ServerResponse, error: unknown, log: Log): void {
  const { status, message } = problemOf(error);
  if (status >= 500) log.warn({ err: error }, 'a request to the console failed');
  if (response.headersSent) response.destroy();
  else {
    // What is left of a body that was refused is not waited for.
    if (status === 413) response.setHeader('connection', 'close');
    // Messages quote: requests, and what the cluster says of them.
    sendJson(response, status, {
      error: holdsKeyMaterial(message) ? 'refused; the reason looks like key material' : message,
    });
  }
}

function problemOf(error: unknown): { status: number; message: string } {
  if (error instanceof HttpProblem) return { status: error.status, message: error.message };
  if (error instanceof ActionRefused) return { status: 409, message: error.message };
  if (error instanceof KubeError && error.code === 401)
    return { status: 401, message: 'the cluster does not accept these credentials any more' };
  if (error instanceof KubeError) return { status: error.code === 403 ? 403 : 502, message: error.message };
  if (error instanceof ConnectionError) return { status: 502, message: `the cluster does not answer (${error.code})` };
  return { status: 500, message: 'something went wrong; the log of the console says what' };
}
