/** The kubelet's own Go definitions judge how its configuration is read, laid over and written. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import * as fc from 'fast-check';
import { decodeKubeletConfiguration } from '../../src/machine-config/kubelet-config/decode.ts';
import { DecodeError } from '../../src/machine-config/kubelet-config/decode-error.ts';
import { encodeKubeletConfiguration } from '../../src/machine-config/kubelet-config/encode.ts';
import { type GoType, goType } from '../../src/machine-config/kubelet-config/go-type.ts';
import { laidOver } from '../../src/machine-config/kubelet-config/lay-over.ts';
import { buildGo } from './go-program.ts';
import { find, run } from './program.ts';

const skip = find('go') ? false : 'go is not installed';

describe("the kubelet's definitions agree with ours", { skip }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'rotunda-kubelet-'));
  const program = join(folder, 'kubelet');
  /** Why there is no program: its modules come over the network. */
  let missing: string | undefined;

  before(async () => {
    missing = await buildGo(fileURLToPath(new URL('kubelet-go', import.meta.url)), program);
  });
  after(() => rmSync(folder, { recursive: true }));

  async function ask(t: TestContext, args: readonly string[], input = ''): Promise<string | undefined> {
    if (missing === undefined) return run(program, args, { input });
    t.skip(missing);
    return undefined;
  }

  it('the table of types is what the generator makes of them', async t => {
    const text = await ask(t, ['table']);
    if (text === undefined) return;
    const path = new URL('../../src/machine-config/kubelet-config/kubelet-types.ts', import.meta.url);
    const plain = (source: string) => source.replace(/\s+/g, ' ').replaceAll("'", '');
    assert.equal(plain(readFileSync(path, 'utf8')), plain(text));
  });

  it('generated configurations are refused with the same words and become the same text', async t => {
    const type = goType('v1beta1.KubeletConfiguration');
    const pairs = fc.sample(fc.record({ base: valueOf(type, false), change: valueOf(type, true) }), {
      numRuns: 3000,
      seed: 14,
    });
    const text = await ask(t, ['merge'], JSON.stringify(pairs));
    if (text === undefined) return;
    const answers = JSON.parse(text) as { error?: string; merged?: unknown }[];
    let refused = 0;
    for (const [index, { base, change }] of pairs.entries()) {
      const mine = merged(base, change);
      assert.equal(JSON.stringify(mine), JSON.stringify(answers[index]), JSON.stringify({ base, change }));
      if (mine.error !== undefined) refused++;
    }
    assert.ok(refused > 100 && refused < pairs.length - 100, `${refused} of ${pairs.length} were refused`);
  });
});

function merged(base: unknown, change: unknown): { error?: string; merged?: unknown } {
  try {
    const both = [base, change].map(each => decodeKubeletConfiguration(JSON.parse(JSON.stringify(each)))) as [
      Record<string, unknown>,
      Record<string, unknown>,
    ];
    return { merged: encodeKubeletConfiguration(laidOver(...both)) };
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    return { error: error.message };
  }
}

/** Values of a type; with `isOdd` also others now and then. */
function valueOf(type: GoType, isOdd: boolean): fc.Arbitrary<unknown> {
  const right = rightValueOf(type, isOdd);
  return isOdd && type.kind !== 'pointer'
    ? fc.oneof({ weight: 40, arbitrary: right }, { weight: 1, arbitrary: fc.constantFrom(...ODD) })
    : right;
}

const ODD: readonly unknown[] = [null, '', 'x', '5', '1d', 0, 7, -1, 1.5, 3e9, true, [], ['x'], {}, { a: 1 }];
const OWN: Readonly<Record<string, readonly unknown[]>> = {
  'v1.Duration': ['0s', '5m', '1h30m', '1.5s', '100ms', '-1s', '1ns', '36h'],
  'v1.TimeOrMetaDuration': [0, 5e9, '5s', '0s'],
  'v1.Time': ['2024-02-29T12:00:00Z', '2024-02-29T12:00:00+02:00'],
  'resource.Quantity': ['1Gi', '500m', '1024Mi', 5, '0', '1e3', '1.5Gi', '100n', '3000'],
  // The value of this one is lost when upstream lays configurations over each other (docs/compatibility.md).
  'resource.QuantityValue': ['0'],
};

function rightValueOf(type: GoType, isOdd: boolean): fc.Arbitrary<unknown> {
  switch (type.kind) {
    case 'pointer':
      return valueOf(type.of, isOdd);
    case 'slice':
      return fc.array(valueOf(type.of, isOdd), { maxLength: 2 });
    case 'map':
      return fc.dictionary(fc.constantFrom('a', 'memory', 'B'), valueOf(type.of, isOdd), { noNullPrototype: true });
    case 'struct': {
      // Of these two a newer Go tells also the struct they are embedded with.
      const fields = [...type.fields.values()].filter(({ name }) => name !== 'kind' && name !== 'apiVersion');
      const some = fc.subarray(fields, { maxLength: Math.min(fields.length, 5) });
      return some.chain(chosen =>
        fc.record(Object.fromEntries(chosen.map(field => [field.name, valueOf(field.type, isOdd)]))),
      );
    }
    case 'self':
      return fc.constantFrom(...(OWN[type.name] ?? []));
    case 'integer':
      return fc.constantFrom(0, 1, 250);
    case 'float64':
      return fc.constantFrom(0, 0.9);
    case 'bool':
      return fc.boolean();
    case 'string':
      return fc.constantFrom('', 'x', '<&>');
  }
}
