/** Kubernetes' own Go definitions judge the protocol buffers of the embedded API: they must be what the JSON is. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import * as fc from 'fast-check';
import { encodeProtobuf, encodeWatchEvent } from '../../src/api/protobuf/encode.ts';
import table from '../../src/api/protobuf/messages.json' with { type: 'json' };
import { type Field, fieldsOf, INLINE } from '../../src/api/protobuf/messages.ts';
import type { JsonObject } from '../../src/api/schema/schema.ts';
import { expired, statusOf } from '../../src/api/status.ts';
import { buildGo } from './go-program.ts';
import { find, run } from './program.ts';

const skip = find('go') ? false : 'go is not installed';
const OF_EACH_KIND = 40;
/** Deeper than this, messages are empty. */
const DEEPEST = 7;
const VALUES: Readonly<Record<string, readonly unknown[]>> = {
  string: ['', 'x', 'zwölf ✓'],
  bytes: ['', 'AAECAw==', '/+8='],
  int: [0, 1, -1, 300, 2147483647, -2147483648],
  bool: [true, false],
  Time: ['2026-01-01T00:00:00Z', '1969-12-31T23:59:59Z'],
  MicroTime: ['2026-01-01T00:00:00.123456Z', '1969-12-31T23:59:59.900000Z'],
  Quantity: ['0', '500m', '1Gi', '1e3'],
  IntOrString: [0, 80, -1, '', '25%'],
  Strings: [[], ['a', '']],
  Json: [{ 'f:data': { '.': {} } }],
};

describe("Kubernetes' definitions read what we write", { skip }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'rotunda-protobuf-'));
  const program = join(folder, 'protobuf');
  /** Why there is no program: its modules come over the network. */
  let missing: string | undefined;
  const objects = Object.entries(table.kinds).flatMap(([key, message]) => {
    const [apiVersion, kind] = [key.slice(0, key.lastIndexOf('/')), key.slice(key.lastIndexOf('/') + 1)];
    const sample = fc.sample(objectOf(message, 0), { numRuns: OF_EACH_KIND, seed: 13 });
    return sample.map(content => ({ ...content, apiVersion, kind }));
  });

  before(async () => {
    missing = await buildGo(fileURLToPath(new URL('protobuf-go', import.meta.url)), program);
  });
  after(() => rmSync(folder, { recursive: true }));

  /** Asks about pairs of bytes and the JSON they are, and expects nothing to be wrong. */
  async function agrees(t: TestContext, pairs: readonly { bytes: Buffer; json: unknown }[], watch: boolean) {
    if (missing !== undefined) return t.skip(missing);
    const input = JSON.stringify(pairs.map(({ bytes, json }) => ({ protobuf: bytes.toString('base64'), json, watch })));
    const wrong = (JSON.parse(await run(program, [], { input })) as string[]).filter(Boolean);
    assert.deepEqual(wrong, []);
  }

  it('objects of every kind', t =>
    agrees(
      t,
      objects.map(json => ({ bytes: encodeProtobuf(json) as Buffer, json })),
      false,
    ));

  it('lists', t => {
    const items = fc.sample(objectOf('Pod', 0), { numRuns: OF_EACH_KIND, seed: 13 });
    const metadata = { resourceVersion: '7', continue: 'x', remainingItemCount: 3 };
    const lists = [
      { apiVersion: 'v1', kind: 'PodList', metadata, items },
      { apiVersion: 'v1', kind: 'PodList', metadata: { resourceVersion: '7' }, items: [] },
    ];
    return agrees(
      t,
      lists.map(json => ({ bytes: encodeProtobuf(json) as Buffer, json })),
      false,
    );
  });

  it('watches', t => {
    const events = objects.map((object, index) => ({ type: ['ADDED', 'DELETED'][index % 2] as string, object }));
    events.push({ type: 'ERROR', object: { ...statusOf(expired('too old')) } as (typeof objects)[number] });
    const bytes = Buffer.concat(events.map(({ type, object }) => encodeWatchEvent(type, object)));
    return agrees(t, [{ bytes, json: events }], true);
  });
});

function objectOf(message: string, depth: number): fc.Arbitrary<JsonObject> {
  if (depth > DEEPEST) return fc.constant({});
  const fields = [...fieldsOf(message).values()];
  const contents = Object.fromEntries(fields.map(field => [field.name, contentOf(field, depth)]));
  return fc.record(contents, { requiredKeys: [] }).map(({ [INLINE]: inline, ...rest }) => ({
    ...(inline as JsonObject | undefined),
    ...rest,
  }));
}

function contentOf({ shape, type }: Field, depth: number): fc.Arbitrary<unknown> {
  const value = valueOf(type, depth);
  switch (shape) {
    case 'one':
      return value;
    case 'list':
      return fc.array(value, { maxLength: depth > 2 ? 1 : 2 });
    case 'map':
      return fc.dictionary(fc.constantFrom('a', 'b/c', 'ä'), value, { maxKeys: 2 });
  }
}

function valueOf(type: string, depth: number): fc.Arbitrary<unknown> {
  const values = VALUES[type];
  return values === undefined ? objectOf(type, depth + 1) : fc.constantFrom(...values);
}
