import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { Log } from '../../controller/log.ts';
import { seconds } from '../../kube/duration.ts';
import { closeAtOnce, listenOn } from '../../kube/listen.ts';
import type { Kube } from '../../kube/port.ts';
import { servedVersion } from './accept.ts';
import { firstBootOf } from './first-boot.ts';
import { ServingPair } from './serving-pair.ts';

export interface MachineConfigServerOptions {
  readonly kube: Kube;
  readonly log: Log;
  /** Where the kubelets of new machines find the API, such as `https://api-int.cluster.example:6443`. */
  readonly apiServerUrl: string;
  /** The files of Secret `machine-config-server-tls`; read again for every connection. */
  readonly certFile: string;
  readonly keyFile: string;
  /** All addresses when absent: new machines are elsewhere. */
  readonly host?: string | undefined;
  /** 22623 when absent; 0 takes any that is free. */
  readonly port?: number | undefined;
}

export interface MachineConfigServer {
  readonly port: number;
  stop(): Promise<void>;
}

const PORT = 22623;
const MOST_CONNECTIONS = 1000;
const MOST_HEADER_BYTES = 8 * 1024;
const REQUEST_LIMIT_MS = seconds(10);
const IDLE_LIMIT_MS = seconds(5);
const HANDSHAKE_LIMIT_MS = seconds(10);
const LONGEST_READ_MS = seconds(30);
const POOL_PATH = /^\/config\/([a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?)$/;

/**
 * `rotunda machine-config-server`: gives new machines their first config over TLS (spec 50, MS-1 to MS-6). Whoever reaches the
 * port is answered, and told the token for first certificates: only machines-to-be may reach it.
 */
export async function startMachineConfigServer(options: MachineConfigServerOptions): Promise<MachineConfigServer> {
  const { certFile, keyFile, log, host, port = PORT } = options;
  const pair = new ServingPair(certFile, keyFile);
  const stopped = new AbortController();
  const server = createServer(
    {
      ...pair.current,
      minVersion: 'TLSv1.2',
      handshakeTimeout: HANDSHAKE_LIMIT_MS,
      maxHeaderSize: MOST_HEADER_BYTES,
      requestTimeout: REQUEST_LIMIT_MS,
      headersTimeout: REQUEST_LIMIT_MS,
      keepAliveTimeout: IDLE_LIMIT_MS,
    },
    (request, response) => {
      answer(options, request, response, stopped.signal).catch((error: unknown) => {
        log.warn({ err: error, path: request.url, from: request.socket.remoteAddress }, 'no config could be given');
        respond(response, 500);
      });
    },
  );
  server.maxConnections = MOST_CONNECTIONS;
  // Before the handshake, which would still use the old pair. Machines come rarely: nothing is saved by watching the files.
  server.prependListener('connection', () => {
    try {
      if (pair.reload()) server.setSecureContext(pair.current);
    } catch (error) {
      log.warn({ err: error, certFile }, 'the serving certificate cannot be used, the old one stays');
    }
  });
  server.on('tlsClientError', error => log.debug({ err: error }, 'handshake failed'));
  const taken = await listenOn(server, port, host);
  server.on('error', error => log.warn({ err: error }, 'a connection could not be taken'));
  return {
    port: taken,
    stop: () => {
      stopped.abort();
      return closeAtOnce(server);
    },
  };
}

async function answer(
  { kube, log, apiServerUrl }: MachineConfigServerOptions,
  request: IncomingMessage,
  response: ServerResponse,
  stopped: AbortSignal,
): Promise<void> {
  request.resume();
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('Allow', 'GET, HEAD');
    return respond(response, 405);
  }
  const [pathname = '/'] = (request.url ?? '/').split('?');
  if (pathname === '/healthz') return respond(response, 200);
  const pool = POOL_PATH.exec(pathname)?.[1];
  if (pool === undefined) return respond(response, 404);
  const version = servedVersion(request.headers.accept);
  if (version === undefined) return respond(response, 400);
  log.info({ pool, version, from: request.socket.remoteAddress }, 'a new machine asks for its config');
  const signal = AbortSignal.any([stopped, AbortSignal.timeout(LONGEST_READ_MS)]);
  const config = await firstBootOf(kube, { pool, version, apiServerUrl }, signal);
  const body = Buffer.from(JSON.stringify(config));
  response.setHeader('Content-Type', 'application/json');
  response.setHeader('Content-Length', body.length);
  response.end(request.method === 'HEAD' ? undefined : body);
}

function respond(response: ServerResponse, status: number): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  response.writeHead(status, { 'Content-Length': 0 }).end();
}
