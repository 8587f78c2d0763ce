/**
 * What does the embedded API cost? Durable writes beside a real etcd, with and without checksums, a list of 10,000 Secrets, memory per object, and
 * how long 2,000 watchers wait for an event. The API runs in a process of its own; what loads it runs in this one.
 */
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fixedAccess } from '../src/kube/access.ts';
import { HttpKube } from '../src/kube/client.ts';
import { listAll } from '../src/kube/list.ts';
import { SECRETS } from '../src/kube/resource.ts';
import { checksums } from './api/checksums.ts';
import { Etcd } from './api/etcd.ts';
import { median, percentile, type Rate } from './api/measure.ts';
import { NAMESPACE, secret } from './api/secret.ts';
import { ApiProcess, type Memory } from './api/server.ts';
import { fanOut, type Wire } from './api/watchers.ts';
import { writeToApi, writeToEtcd } from './api/writes.ts';

const WRITERS = [1, 8, 64];
const WRITE_MS = 1200;
const ROUNDS = 3;
const OBJECTS = 10_000;
const LISTS = 9;
const WATCHERS = 2000;
const EVENTS = 200;
const TMPFS = 0x01021994;

/** `npm run bench -- api [directory]`: the directory decides which disk is measured. */
export async function bench([parent = tmpdir()]: string[]): Promise<void> {
  const dir = mkdtempSync(join(parent, 'rotunda-bench-'));
  try {
    if (statfsSync(dir).type === TMPFS) console.log(`${parent} is in memory: name a directory on a disk`);
    console.log(`disk: ${syncsPerSecond(dir).toFixed(0)} appends of 4 KiB a second, each synced`);
    await writes(dir);
    await checksums(dir);
    await objects(dir);
    await watchers(dir);
    console.log(`peak memory of this process: ${Math.round(process.resourceUsage().maxRSS / 1024)} MiB`);
  } finally {
    rmSync(dir, { recursive: true });
  }
}

function syncsPerSecond(dir: string): number {
  const file = openSync(join(dir, 'syncs'), 'a');
  const start = performance.now();
  let count = 0;
  for (; performance.now() - start < 500; count++) {
    writeSync(file, Buffer.alloc(4096));
    fdatasyncSync(file);
  }
  const seconds = (performance.now() - start) / 1000;
  closeSync(file);
  return count / seconds;
}

async function writes(dir: string): Promise<void> {
  const etcd = await Etcd.start(join(dir, 'etcd'));
  try {
    await withApi(join(dir, 'writes'), async api => {
      const [https, inProcess, theirs]: [Rate[], Rate[], Rate[]] = [[], [], []];
      for (const writers of WRITERS) {
        const rounds: [Rate[], Rate[], Rate[]] = [[], [], []];
        // In turn, so that whatever else the machine does hits all of them.
        for (let round = 0; round < ROUNDS; round++) {
          rounds[0].push(await writeToApi(api.connection, writers, WRITE_MS));
          rounds[1].push(await api.ask<'write'>({ name: 'write', writers, forMs: WRITE_MS }));
          if (etcd !== undefined) rounds[2].push(await writeToEtcd(etcd.url, writers, WRITE_MS));
        }
        https.push(median(rounds[0]));
        inProcess.push(median(rounds[1]));
        if (etcd !== undefined) theirs.push(median(rounds[2]));
      }
      console.log(
        `\ndurable creates of a Secret of ${JSON.stringify(secret('over-http-10000')).length} bytes a second (p50, p99)`,
      );
      printRow('', WRITERS, writers => `${writers} at once`);
      printRow('embedded API over HTTPS', https, text);
      printRow('embedded API in process', inProcess, text);
      if (etcd === undefined) return;
      printRow(`etcd ${etcd.version}, HTTP JSON gateway`, theirs, text);
      const ratio = ({ perSecond }: Rate, i: number) => `${(perSecond / (theirs[i]?.perSecond ?? 0)).toFixed(2)}x`;
      printRow('API over HTTPS to etcd', https, ratio);
      printRow('API in process to etcd', inProcess, ratio);
    });
  } finally {
    await etcd?.stop();
  }
}

function printRow<T>(what: string, cells: readonly T[], textOf: (cell: T, index: number) => string): void {
  console.log(`${what.padEnd(32)}${cells.map((cell, index) => textOf(cell, index).padStart(26)).join('')}`);
}

function text({ perSecond, p50Ms, p99Ms }: Rate): string {
  return `${perSecond.toFixed(0)} (${p50Ms.toFixed(1)}, ${p99Ms.toFixed(1)} ms)`;
}

async function objects(dir: string): Promise<void> {
  await withApi(join(dir, 'objects'), async api => {
    const empty = await api.ask<'memory'>({ name: 'memory' });
    await api.ask<'fill'>({ name: 'fill', count: OBJECTS });
    const full = await api.ask<'memory'>({ name: 'memory' });
    const grown = { kept: full.kept - empty.kept, resident: full.resident - empty.resident };
    console.log(
      `\n${OBJECTS} Secrets: ${memory(grown, 2 ** 20, 'MiB')}; empty server: ${memory(empty, 2 ** 20, 'MiB')}`,
    );
    await lists(api);
  });
}

async function watchers(dir: string): Promise<void> {
  console.log(`\n${WATCHERS} watchers, ${EVENTS} events, from sending the write to the last watcher having the event`);
  for (const wire of ['HTTP/2, 100 a connection', 'HTTP/1.1, one a connection'] satisfies Wire[]) {
    // A server of its own for each: memory that one has used before would hide what the next one needs.
    await withApi(join(dir, wire.replaceAll(/\W+/g, '-')), async api => {
      const { p50Ms, p99Ms, memoryPerWatcher } = await fanOut(api, wire, WATCHERS, EVENTS);
      const cost = memory(memoryPerWatcher, 1024, 'KiB');
      console.log(`${wire.padEnd(28)} p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms; a watcher: ${cost}`);
    });
  }
}

async function withApi(dir: string, work: (api: ApiProcess) => Promise<void>): Promise<void> {
  const api = await ApiProcess.start(dir);
  try {
    await work(api);
    await api.stop();
  } finally {
    api.kill();
  }
}

async function lists(api: ApiProcess): Promise<void> {
  const kube = new HttpKube(fixedAccess(api.connection.server, { tls: api.connection.tls }));
  try {
    const timesMs: Record<string, number[]> = { 'in one piece': [], 'in pages of 500': [] };
    let bytes = 0;
    for (let i = 0; i < LISTS; i++) {
      const begun = performance.now();
      const { items } = await kube.list(SECRETS, { namespace: NAMESPACE });
      timesMs['in one piece']?.push(performance.now() - begun);
      bytes = Buffer.byteLength(JSON.stringify(items));
      const begunPages = performance.now();
      await listAll(kube, SECRETS, { namespace: NAMESPACE });
      timesMs['in pages of 500']?.push(performance.now() - begunPages);
    }
    const text = Object.entries(timesMs).map(([how, ms]) => `${how} ${percentile(ms, 50).toFixed(0)} ms`);
    console.log(`list of them, ${(bytes / 1e6).toFixed(1)} MB, parsed: ${text.join(', ')} (median of ${LISTS})`);
  } finally {
    await kube.close();
  }
}

function memory({ kept, resident }: Memory, unit: number, name: string): string {
  return `${(kept / unit).toFixed(1)} ${name} in use, ${(resident / unit).toFixed(1)} ${name} resident`;
}
