import { request } from 'node:https';
import { connect, createServer, type Socket } from 'node:net';
import { closeAtOnce, listenOn } from '../../kube/listen.ts';

export interface Backend {
  readonly host: string;
  readonly port: number;
}

export interface LoadBalancer {
  readonly host: string;
  readonly port: number;
  /** Those that said they were ready when they were last asked. */
  ready(): readonly Backend[];
  close(): Promise<void>;
}

export interface LoadBalancerOptions {
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  readonly backends: readonly Backend[];
}

const LOOPBACK = '127.0.0.1';
/** A server that shuts down says so at `/readyz` and goes on serving for a while; it must be noticed in that time. */
const ASK_EVERY_MS = 500;
const ASK_PATIENCE_MS = 2_000;
const CONNECT_PATIENCE_MS = 2_000;
const MAX_CONNECTIONS = 4_096;

/**
 * Passes connections on to servers that say they are ready, one after the other, and tries the next where one does not take the
 * connection. It sees only bytes: TLS is between client and server.
 */
export async function startLoadBalancer({
  host = LOOPBACK,
  port = 0,
  backends,
}: LoadBalancerOptions): Promise<LoadBalancer> {
  const ready = new Set<Backend>();
  const servers = new Set<Socket>();
  let turn = 0;
  const closing = new AbortController();
  /** Questions under way: whoever is silent keeps nobody else from being asked again. */
  const asked = new Map<Backend, Promise<void>>();
  const ask = async (backend: Backend) => {
    if (await isReady(backend, closing.signal)) ready.add(backend);
    else ready.delete(backend);
    asked.delete(backend);
  };
  const askAll = () => {
    for (const backend of backends) if (!asked.has(backend)) asked.set(backend, ask(backend));
    return Promise.all(asked.values());
  };
  const serve = async (client: Socket) => {
    client.on('error', () => {});
    turn++;
    for (const backend of inTurn(backends, ready, turn)) {
      const server = await open(backend);
      if (server === undefined) continue;
      track(server, servers);
      if (client.destroyed) server.destroy();
      else join(client, server);
      return;
    }
    client.destroy();
  };
  const listener = createServer({ pauseOnConnect: true }, client => void serve(client));
  listener.maxConnections = MAX_CONNECTIONS;
  const taken = await listenOn(listener, port, host);
  await askAll();
  const timer = setInterval(() => void askAll(), ASK_EVERY_MS);
  return {
    host,
    port: taken,
    ready: () => [...ready],
    async close() {
      clearInterval(timer);
      closing.abort();
      const closed = closeAtOnce(listener);
      for (const server of servers) server.destroy();
      await Promise.all([closed, ...asked.values()]);
    },
  };
}

/** Ready ones first, beginning with another one every time; the rest only where nobody is ready. */
function inTurn(backends: readonly Backend[], ready: ReadonlySet<Backend>, turn: number): Backend[] {
  const chosen = ready.size > 0 ? backends.filter(backend => ready.has(backend)) : [...backends];
  const start = turn % Math.max(1, chosen.length);
  const others = ready.size > 0 ? backends.filter(backend => !ready.has(backend)) : [];
  return [...chosen.slice(start), ...chosen.slice(0, start), ...others];
}

function open({ host, port }: Backend): Promise<Socket | undefined> {
  return new Promise(resolve => {
    const socket = connect({ host, port, timeout: CONNECT_PATIENCE_MS });
    const give = (result: Socket | undefined) => {
      socket.removeAllListeners();
      if (result === undefined) socket.destroy();
      else socket.setTimeout(0);
      resolve(result);
    };
    socket.once('connect', () => give(socket));
    socket.once('timeout', () => give(undefined));
    socket.once('error', () => give(undefined));
  });
}

function join(client: Socket, server: Socket): void {
  for (const [one, other] of [
    [client, server],
    [server, client],
  ] as const) {
    one.once('error', () => other.destroy());
    one.once('close', () => other.destroy());
    one.pipe(other);
  }
}

function track(socket: Socket, sockets: Set<Socket>): void {
  sockets.add(socket);
  socket.once('close', () => sockets.delete(socket));
  socket.on('error', () => {});
}

/** Whether it is ready is no secret, and who it is the client will ask: the certificate is not looked at here. */
function isReady({ host, port }: Backend, signal: AbortSignal): Promise<boolean> {
  return new Promise(resolve => {
    const options = { host, port, path: '/readyz', rejectUnauthorized: false, agent: false, signal };
    const question = request(options, answer => {
      answer.resume();
      resolve(answer.statusCode === 200);
    });
    question.setTimeout(ASK_PATIENCE_MS, () => question.destroy());
    question.once('error', () => resolve(false));
    question.once('close', () => resolve(false));
    question.end();
  });
}
