import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

const HOST = '127.0.0.1';
/** Below those that the system gives to connections: what is free now is not taken by one before somebody listens, or between two lives of a server. */
const [FIRST, END] = [10_000, 32_000];
/** So many that are taken one after the other are no accident. */
const MOST_TAKEN = 100;

/** Ports nobody listens on. All are held until all are known, so that none is given twice. */
export async function freePorts(count: number): Promise<number[]> {
  const held = new Map<number, Server>();
  try {
    for (let taken = 0; held.size < count; ) {
      const port = randomInt(FIRST, END);
      const server = createServer();
      try {
        await once(server.listen(port, HOST), 'listening');
        held.set(port, server);
      } catch (error) {
        if (++taken > MOST_TAKEN) throw error;
      }
    }
    return [...held.keys()];
  } finally {
    await Promise.all([...held.values()].map(server => once(server.close(), 'close')));
  }
}

/** The same for one. */
export async function freePort(): Promise<number> {
  const [port] = await freePorts(1);
  return port as number;
}
