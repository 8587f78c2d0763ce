import assert from 'node:assert/strict';
import { test } from 'node:test';
import { effectOfChange, verdictOf } from './effect.ts';
import { type Carrier, type Delivery, joinGraphs, placeOf, type Takes, type TrustGraph } from './graph.ts';
import { configMap, objectText, secret } from './object.ts';

const leaf = secret('ns', 'leaf');
const source = configMap('ns', 'source');
const bundle = configMap('ns', 'bundle');

function delivery(object: typeof leaf, carrier: Carrier, takes: Takes): Delivery {
  const directory = `/etc/${object.name}`;
  const uses = [{ process: 'server', setting: '--file', takes }];
  return {
    object,
    carrier,
    nodes: 'control-plane',
    hostDirectory: directory,
    directory,
    files: ['f'],
    optional: false,
    uses,
  };
}

function graph(deliveries: readonly Delivery[], flows: TrustGraph['flows'] = []): TrustGraph {
  return { deliveries, flows, edges: [] };
}

test('an in-place file that its reader notices is a reload, one that nobody re-reads is only a file', () => {
  for (const [takes, kind] of [
    ['watch', 'reload'],
    ['per-handshake', 'reload'],
    ['restart', 'file-only'],
    ['on-use', 'file-only'],
  ] as const) {
    const [effect, ...others] = effectOfChange(graph([delivery(leaf, 'sync', takes)]), leaf);
    assert.equal(effect?.kind, kind);
    assert.deepEqual(others, []);
  }
});

test('a revisioned file restarts, whatever its reader could do', () => {
  const world = graph([delivery(leaf, 'revision', 'per-handshake')]);
  assert.equal(verdictOf(effectOfChange(world, leaf)), 'restart');
  const side = { process: 'server', nodes: 'control-plane' } as const;
  assert.equal(placeOf(world, side, { object: leaf })?.takes, 'restart');
  assert.deepEqual(placeOf(world, side, { object: leaf })?.files, ['/etc/leaf/f']);
  assert.equal(placeOf(world, { ...side, process: 'other' }, { object: leaf }), undefined);
});

test('a change travels along flows, through each object once, and the strongest effect counts', () => {
  const flow = (from: typeof leaf, to: typeof leaf) => ({ from, to, kind: 'copied', by: 'x' }) as const;
  const world = joinGraphs(
    graph([delivery(bundle, 'sync', 'watch')], [flow(source, bundle), flow(bundle, source)]),
    graph([delivery(leaf, 'revision', 'restart')], [flow(source, leaf)]),
  );
  const effects = effectOfChange(world, source);
  assert.deepEqual(
    effects.map(({ kind, path }) => [kind, path.map(objectText).join(' > ')]),
    [
      ['reload', 'configmap/ns/source > configmap/ns/bundle'],
      ['restart', 'configmap/ns/source > secret/ns/leaf'],
    ],
  );
  assert.equal(verdictOf(effects), 'restart');
  assert.equal(verdictOf(effectOfChange(world, secret('ns', 'unknown'))), 'none');
});
