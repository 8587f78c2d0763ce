import { once } from 'node:events';
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { type Connection, fixedAccess } from '../../src/kube/access.ts';
import { HttpKube } from '../../src/kube/client.ts';
import { CONFIG_MAPS } from '../../src/kube/resource.ts';
import { percentile } from './measure.ts';
import { NAMESPACE } from './secret.ts';
import type { ApiProcess, Memory } from './server.ts';

/** How watchers share connections: client-go puts all of a process on one, our own client gives each its own. */
export type Wire = 'HTTP/2, 100 a connection' | 'HTTP/1.1, one a connection';

const STREAMS_PER_CONNECTION = 100;
const HANDSHAKES_AT_ONCE = 16;

export interface FanOut {
  /** From sending the write to the last watcher having the event. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** In bytes. */
  readonly memoryPerWatcher: Memory;
}

/** Opens many watches, then changes one object again and again, each time when the last watcher has heard of it. */
export async function fanOut(api: ApiProcess, wire: Wire, watchers: number, events: number): Promise<FanOut> {
  const kube = new HttpKube(fixedAccess(api.connection.server, { tls: api.connection.tls }));
  const open = wire === 'HTTP/2, 100 a connection' ? openHttp2 : openHttp1;
  const before = await api.ask<'memory'>({ name: 'memory' });
  const audience = new Audience(watchers);
  let object = await create(kube);
  // From here on, so that nothing but the changes to come is sent.
  const version = object.metadata?.resourceVersion ?? '';
  const path = `/api/v1/namespaces/${NAMESPACE}/configmaps?watch=true&resourceVersion=${version}`;
  const close = await open(api.connection, path, watchers, () => audience.hear());
  try {
    const tookMs: number[] = [];
    let after = before;
    for (let i = 0; i < events; i++) {
      // With one event behind them, all streams have what they need.
      if (i === 1) after = await api.ask<'memory'>({ name: 'memory' });
      const begun = performance.now();
      const heard = audience.next();
      object = await kube.update(CONFIG_MAPS, { ...object, data: { n: String(i) } });
      await heard;
      tookMs.push(audience.lastMs - begun);
    }
    const perWatcher = (of: keyof Memory) => (after[of] - before[of]) / watchers;
    const memoryPerWatcher = { kept: perWatcher('kept'), resident: perWatcher('resident') };
    return { p50Ms: percentile(tookMs, 50), p99Ms: percentile(tookMs, 99), memoryPerWatcher };
  } finally {
    close();
    await kube.close();
  }
}

function create(kube: HttpKube): Promise<ConfigMap> {
  return kube.create(CONFIG_MAPS, {
    metadata: { name: 'watched', namespace: NAMESPACE },
    data: { text: 'x'.repeat(200) },
  });
}

/** Counts who has heard of an event. */
class Audience {
  readonly size: number;
  lastMs = 0;
  #missing = 0;
  #resolve = () => {};

  constructor(size: number) {
    this.size = size;
  }

  /** Resolves when everybody has heard of the next event. */
  next(): Promise<void> {
    this.#missing = this.size;
    return new Promise(resolve => {
      this.#resolve = resolve;
    });
  }

  hear(): void {
    if (--this.#missing > 0) return;
    this.lastMs = performance.now();
    this.#resolve();
  }
}

/** Opens watches and calls `hear` at the end of the line of each event. Gives what closes them. */
type Open = (connection: Connection, path: string, watchers: number, hear: () => void) => Promise<() => void>;

const openHttp2: Open = async ({ server, tls }, path, watchers, hear) => {
  const sessions: ClientHttp2Session[] = [];
  const opened: Promise<unknown>[] = [];
  const { ca, certificate: cert, key } = tls;
  for (let first = 0; first < watchers; first += STREAMS_PER_CONNECTION) {
    const session = connectHttp2(server.origin, { ca, cert, key });
    sessions.push(session);
    await once(session, 'remoteSettings');
    for (let i = first; i < Math.min(watchers, first + STREAMS_PER_CONNECTION); i++) {
      const stream = session.request({ ':path': path });
      stream.on('data', (chunk: Buffer) => {
        if (chunk.includes('\n')) hear();
      });
      opened.push(once(stream, 'response'));
    }
  }
  await Promise.all(opened);
  return () => {
    for (const session of sessions) session.destroy();
  };
};

const openHttp1: Open = async ({ server, tls }, path, watchers, hear) => {
  const sockets: TLSSocket[] = [];
  const { ca, certificate: cert, key } = tls;
  let left = watchers;
  const worker = async () => {
    while (left-- > 0) {
      const socket = connectTls({ host: server.hostname, port: Number(server.port), ca, cert, key });
      sockets.push(socket);
      await once(socket, 'secureConnect');
      socket.write(`GET ${path} HTTP/1.1\r\nHost: ${server.host}\r\n\r\n`);
      await once(socket, 'data');
      // Lines of the protocol itself end in \r\n.
      socket.on('data', (chunk: Buffer) => {
        if (chunk.includes('}\n')) hear();
      });
    }
  };
  await Promise.all(Array.from({ length: HANDSHAKES_AT_ONCE }, worker));
  return () => {
    for (const socket of sockets) socket.destroy();
  };
};
