/**
 * Writes to an embedded API until it is killed, and says on its standard output what it has begun and what has been
 * acknowledged: `begin <key> <value>` before each write, `done <key> <value> <resource version>` after it. A value of 0
 * stands for a deletion.
 */
import { createHash } from 'node:crypto';
import { writeSync } from 'node:fs';
import { startApi } from '../../src/api/api.ts';
import { isNotFound } from '../../src/kube/error.ts';
import { SECRETS } from '../../src/kube/resource.ts';

const [dir = '', first = '1'] = process.argv.slice(2);
const WRITERS = 16;
const KEYS_PER_WRITER = 20;
const namespace = 'default';

const api = await startApi({ dir });
const tell = (line: string) => writeSync(1, `${line}\n`);
tell('ready');
let next = Number(first);
await Promise.all(Array.from({ length: WRITERS }, (_, writer) => writeForever(writer)));

/** Each writer has keys of its own, so that the order of writes to a key is known. */
async function writeForever(writer: number): Promise<void> {
  for (;;) {
    const value = next++;
    const name = `w${writer}-${value % KEYS_PER_WRITER}`;
    const removes = value % 7 === 0;
    tell(`begin ${name} ${removes ? 0 : value}`);
    const version = removes ? await remove(name) : await put(name, value);
    tell(`done ${name} ${removes ? 0 : value} ${version}`);
  }
}

async function put(name: string, value: number): Promise<string> {
  const text = 'x'.repeat(value % 3000);
  const data = { value: String(value), text, sum: createHash('sha256').update(`${value}${text}`).digest('hex') };
  const stringData = Object.fromEntries(Object.entries(data));
  const object = { metadata: { name, namespace }, stringData };
  const written = await api.kube.update(SECRETS, object).catch((error: unknown) => {
    if (isNotFound(error)) return api.kube.create(SECRETS, object);
    throw error;
  });
  return written.metadata?.resourceVersion ?? '';
}

async function remove(name: string): Promise<string> {
  await api.kube.delete(SECRETS, { name, namespace }).catch((error: unknown) => {
    if (!isNotFound(error)) throw error;
  });
  return '0';
}
