import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Clock, sleep } from '../kube/clock.ts';
import { seconds } from '../kube/duration.ts';
import { closeAtOnce, listenOn } from '../kube/listen.ts';

/** Resolves when all is well; otherwise throws. What it throws is for the log, not for whoever asks. */
export type Check = (signal: AbortSignal) => void | Promise<void>;

export interface HealthOptions {
  readonly clock: Clock;
  /** A failing one has the process restarted. */
  readonly live?: Readonly<Record<string, Check>> | undefined;
  /** A failing one keeps traffic away. */
  readonly ready?: Readonly<Record<string, Check>> | undefined;
  readonly metrics?: { readonly contentType: string; metrics(): Promise<string> } | undefined;
  /** Loopback unless told otherwise. */
  readonly host?: string | undefined;
  /** 0 takes any that is free. */
  readonly port?: number | undefined;
  readonly onError?: ((check: string, error: unknown) => void) | undefined;
}

export interface HealthServer {
  readonly url: string;
  readonly port: number;
  stop(): Promise<void>;
}

const CHECK_LIMIT_MS = seconds(5);
const MOST_CONNECTIONS = 100;
const MOST_HEADER_BYTES = 8 * 1024;
const REQUEST_LIMIT_MS = seconds(10);
const IDLE_LIMIT_MS = seconds(5);

/** Serves `/livez`, `/readyz`, `/healthz` and `/metrics` over plain HTTP, for the kubelet and Prometheus on this machine. */
export async function startHealthServer(options: HealthOptions): Promise<HealthServer> {
  const { host = '127.0.0.1', port = 0 } = options;
  const server = createServer(
    {
      maxHeaderSize: MOST_HEADER_BYTES,
      requestTimeout: REQUEST_LIMIT_MS,
      headersTimeout: REQUEST_LIMIT_MS,
      keepAliveTimeout: IDLE_LIMIT_MS,
    },
    (request, response) => {
      answer(options, request, response).catch((error: unknown) => {
        options.onError?.('request', error);
        respond(request, response, 500, 'internal error\n');
      });
    },
  );
  server.maxConnections = MOST_CONNECTIONS;
  await listenOn(server, port, host);
  const address = server.address() as AddressInfo;
  const name = address.family === 'IPv6' ? `[${address.address}]` : address.address;
  return {
    port: address.port,
    url: `http://${name}:${address.port}`,
    stop: () => closeAtOnce(server),
  };
}

async function answer(options: HealthOptions, request: IncomingMessage, response: ServerResponse): Promise<void> {
  request.resume();
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('Allow', 'GET, HEAD');
    respond(request, response, 405, 'method not allowed\n');
    return;
  }
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost');
  const { live = {}, ready = {}, metrics } = options;
  switch (pathname) {
    case '/livez':
    case '/healthz':
      return respondChecks(options, live, searchParams.has('verbose'), request, response);
    case '/readyz':
      return respondChecks(options, { ...live, ...ready }, searchParams.has('verbose'), request, response);
    case '/metrics':
      if (metrics === undefined) break;
      response.setHeader('Content-Type', metrics.contentType);
      respond(request, response, 200, await metrics.metrics());
      return;
    default:
  }
  respond(request, response, 404, 'not found\n');
}

async function respondChecks(
  options: HealthOptions,
  checks: Readonly<Record<string, Check>>,
  isVerbose: boolean,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const outcomes = await Promise.all(Object.entries(checks).map(([name, check]) => isWell(options, name, check)));
  const names = Object.keys(checks);
  const allWell = outcomes.every(Boolean);
  const lines = names.map((name, index) => (outcomes[index] ? `[+]${name} ok` : `[-]${name} failed: reason withheld`));
  const text = allWell && !isVerbose ? 'ok' : [...lines, allWell ? 'check passed' : 'check failed', ''].join('\n');
  respond(request, response, allWell ? 200 : 500, text);
}

async function isWell({ clock, onError }: HealthOptions, name: string, check: Check): Promise<boolean> {
  const limit = new AbortController();
  const settled = new AbortController();
  const late = sleep(clock, CHECK_LIMIT_MS, settled.signal).then(
    () => {
      limit.abort(new Error('the check took too long'));
      throw new Error(`took longer than ${CHECK_LIMIT_MS} ms`);
    },
    () => {},
  );
  try {
    await Promise.race([Promise.resolve(check(limit.signal)), late]);
    return true;
  } catch (error) {
    onError?.(name, error);
    return false;
  } finally {
    settled.abort();
  }
}

function respond(request: IncomingMessage, response: ServerResponse, code: number, body: string): void {
  if (response.headersSent) return;
  if (!response.hasHeader('Content-Type')) response.setHeader('Content-Type', 'text/plain; charset=utf-8');
  response.setHeader('X-Content-Type-Options', 'nosniff');
  response.setHeader('Cache-Control', 'no-store');
  response.writeHead(code);
  response.end(request.method === 'HEAD' ? undefined : body);
}
