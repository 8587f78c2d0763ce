/** A write that was acknowledged survives a kill at any moment; one that was not is there whole or not at all. */

import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, before, describe, it } from 'node:test';
import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { startApi } from '../../src/api/api.ts';
import { SECRETS } from '../../src/kube/resource.ts';
import { inTime, PATIENCE_MS } from '../tools/eventually.ts';

const WRITES = 10_000;
/** A process is killed after so many acknowledged writes, more or less. */
const WRITES_PER_LIFE = 400;

/** What is known of one object: the last acknowledged value, and values whose fate nobody was told. 0 is "deleted". */
interface Known {
  acknowledged: number;
  open: number[];
}

/** What one process has done, and between which versions. */
interface Life {
  readonly acknowledged: number;
  readonly oldest: number;
  readonly newest: number;
  readonly next: number;
}

describe('kill -9', () => {
  let dir: string;
  const children = new Set<ChildProcess>();
  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'rotunda-durability-'));
  });
  after(() => {
    for (const child of children) child.kill('SIGKILL');
    rmSync(dir, { recursive: true, force: true });
  });

  it(`in a loop during ${WRITES} writes loses nothing that was acknowledged`, { timeout: 2 * PATIENCE_MS }, async t => {
    const known = new Map<string, Known>();
    let [writes, lives, newest, next] = [0, 0, 0, 1];
    while (writes < WRITES) {
      lives++;
      const life = await live(known, next, 1 + Math.floor(Math.random() * 2 * WRITES_PER_LIFE));
      writes += life.acknowledged;
      assert.ok(life.newest === 0 || life.oldest > newest, `version ${life.oldest} was given after ${newest}`);
      newest = Math.max(newest, life.newest);
      next = life.next;
      newest = Math.max(newest, await verify(known));
    }
    t.diagnostic(`${writes} acknowledged writes in ${lives} lives, newest version ${newest}`);
  });

  /** One life of a writing process, ended by a kill after about `limit` acknowledged writes. */
  function live(known: Map<string, Known>, first: number, limit: number): Promise<Life> {
    const script = join(import.meta.dirname, 'writer.ts');
    const child = spawn(process.execPath, [script, dir, String(first)], { stdio: ['ignore', 'pipe', 'inherit'] });
    children.add(child);
    let [acknowledged, oldest, newest, next] = [0, Number.POSITIVE_INFINITY, 0, first];
    const lines = createInterface({ input: child.stdout });
    lines.on('line', line => {
      const [what, name = '', text = '0', version = '0'] = line.split(' ');
      const value = Number(text);
      if (what === 'ready') return;
      const entry = known.get(name) ?? { acknowledged: 0, open: [] };
      known.set(name, entry);
      next = Math.max(next, value + 1);
      if (what === 'begin') {
        entry.open.push(value);
        return;
      }
      entry.acknowledged = value;
      entry.open = [];
      if (version !== '0') {
        oldest = Math.min(oldest, Number(version));
        newest = Math.max(newest, Number(version));
      }
      if (++acknowledged === limit) child.kill('SIGKILL');
    });
    const over = new Promise<Life>((resolve, reject) => {
      lines.once('close', () => {
        children.delete(child);
        if (child.signalCode !== 'SIGKILL' && child.exitCode !== null)
          reject(new Error(`the writer ended by itself with ${child.exitCode}`));
        else resolve({ acknowledged, oldest, newest, next });
      });
    });
    return inTime('the end of a writer', over);
  }

  /** Opens what the kill left behind and compares; what is found settles what was open. Returns the newest version. */
  async function verify(known: Map<string, Known>): Promise<number> {
    const api = await startApi({ dir });
    try {
      const list = await api.kube.list(SECRETS, { namespace: 'default' });
      const found = new Map(list.items.map(secret => [secret.metadata?.name ?? '', valueOf(secret)]));
      for (const name of found.keys()) assert.ok(known.has(name), `${name} was never written`);
      for (const [name, entry] of known) {
        const value = found.get(name) ?? 0;
        const possible = [entry.acknowledged, ...entry.open];
        assert.ok(
          possible.includes(value),
          `${name} has ${value}, acknowledged ${entry.acknowledged}, open ${entry.open.join(' ')}`,
        );
        known.set(name, { acknowledged: value, open: [] });
      }
      return Number(list.metadata.resourceVersion);
    } finally {
      await api.close();
    }
  }
});

/** The number in a Secret, after checking that the Secret is whole. */
function valueOf({ metadata, data = {} }: Secret): number {
  const field = (name: string) => Buffer.from(data[name] ?? '', 'base64').toString();
  const value = field('value');
  const sum = createHash('sha256')
    .update(`${value}${field('text')}`)
    .digest('hex');
  assert.equal(field('sum'), sum, `${metadata?.name} is not whole`);
  return Number(value);
}
