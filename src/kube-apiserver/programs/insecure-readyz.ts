import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Agent, get } from 'node:https';
import type { Log } from '../../controller/log.ts';
import { seconds } from '../../kube/duration.ts';
import { closeAtOnce, listenOn } from '../../kube/listen.ts';
import { parseFlags } from '../../staticpod/node/flags.ts';
import { API_PORT, INSECURE_READYZ_PORT } from '../target-config/pod.ts';

export interface InsecureReadyzOptions {
  readonly port: number;
  /** All interfaces unless told otherwise: load balancers ask from outside. */
  readonly host?: string | undefined;
  readonly delegateUrl: string;
}

export interface InsecureReadyz {
  readonly port: number;
  stop(): Promise<void>;
}

const ANSWER_LIMIT_MS = seconds(10);
const LARGEST_ANSWER_BYTES = 1024 * 1024;
const MOST_CONNECTIONS = 200;
const LARGEST_HEADERS_BYTES = 8 * 1024;

export function parseInsecureReadyzOptions(argv: readonly string[]): InsecureReadyzOptions {
  const flags = parseFlags(argv, { 'insecure-port': 'integer', 'delegate-url': 'text' });
  const port = flags['insecure-port'] ?? INSECURE_READYZ_PORT;
  if (port < 1 || port > 65_535) throw new Error(`--insecure-port must be between 1 and 65535, found ${port}`);
  const delegateUrl = flags['delegate-url'] ?? `https://localhost:${API_PORT}/readyz`;
  if (!URL.canParse(delegateUrl)) throw new Error(`--delegate-url must be a URL, found ${JSON.stringify(delegateUrl)}`);
  return { port, delegateUrl };
}

/**
 * `insecure-readyz`: passes on what kube-apiserver says about being ready, over plain HTTP, for load balancers that cannot do
 * better (spec 20, 4.2). The certificate is not looked at: nothing is sent, and only "ready" comes back.
 */
export async function startInsecureReadyz(options: InsecureReadyzOptions, log: Log): Promise<InsecureReadyz> {
  const agent = new Agent({ rejectUnauthorized: false, keepAlive: true, maxSockets: 10 });
  const server = createServer(
    { maxHeaderSize: LARGEST_HEADERS_BYTES, requestTimeout: ANSWER_LIMIT_MS, headersTimeout: ANSWER_LIMIT_MS },
    (request, response) => {
      request.resume();
      answer(options.delegateUrl, agent, request, response).catch((error: unknown) => {
        log.warn({ err: error }, 'kube-apiserver could not be asked');
        if (!response.headersSent) plain(response, 500, "couldn't contact kube-apiserver\n");
      });
    },
  );
  server.maxConnections = MOST_CONNECTIONS;
  const port = await listenOn(server, options.port, options.host);
  return {
    port,
    stop: () => {
      agent.destroy();
      return closeAtOnce(server);
    },
  };
}

async function answer(url: string, agent: Agent, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname } = new URL(request.url ?? '/', 'http://localhost');
  if (pathname !== '/readyz') return plain(response, 404, 'not found\n');
  if (request.method !== 'GET' && request.method !== 'HEAD') return plain(response, 405, 'method not allowed\n');
  const { status, type, body } = await ask(url, agent);
  response.setHeader('Content-Type', type);
  response.setHeader('X-Content-Type-Options', 'nosniff');
  response.writeHead(status);
  response.end(request.method === 'HEAD' ? undefined : body);
}

function ask(url: string, agent: Agent): Promise<{ status: number; type: string; body: Buffer }> {
  return new Promise((resolve, reject) => {
    const outgoing = get(url, { agent, timeout: ANSWER_LIMIT_MS }, incoming => {
      const parts: Buffer[] = [];
      let bytes = 0;
      incoming.on('data', (part: Buffer) => {
        bytes += part.length;
        if (bytes > LARGEST_ANSWER_BYTES) outgoing.destroy(new Error('the answer is too large'));
        else parts.push(part);
      });
      incoming.on('error', reject);
      incoming.on('end', () => {
        const type = incoming.headers['content-type'] ?? 'text/plain; charset=utf-8';
        resolve({ status: incoming.statusCode ?? 500, type, body: Buffer.concat(parts) });
      });
    });
    outgoing.on('timeout', () => outgoing.destroy(new Error(`no answer within ${ANSWER_LIMIT_MS} ms`)));
    outgoing.on('error', reject);
  });
}

function plain(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'Content-Type': 'text/plain; charset=utf-8', 'X-Content-Type-Options': 'nosniff' });
  response.end(text);
}
