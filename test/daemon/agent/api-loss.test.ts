import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { Informer } from '../../../src/kube/informer.ts';
import { NODES } from '../../../src/kube/resource.ts';
import { DAEMON_STATE } from '../../../src/machine-config-api/names.ts';
import { seeded } from '../../informer/seeded.ts';
import { ProcessCluster } from './node-process.ts';
import { config } from './scene.ts';

const UPDATES = 4;
const UPDATE_MS = 800;
const AWAY_MS = 700;

test('the API goes away in the middle of updates and comes back: the real command goes on, and nobody is Degraded', async () => {
  const cluster = await ProcessCluster.start();
  const random = seeded(5);
  const pause = (longestMs: number) => new Promise(resolve => setTimeout(resolve, random() * longestMs));
  const states = new Set<string>();
  const watch = () => {
    const seen = new Informer<Node>(cluster.api.kube, NODES).start();
    seen.subscribe({ update: (_before, { metadata }) => states.add(metadata?.annotations?.[DAEMON_STATE] ?? '') });
    return seen;
  };
  try {
    const node = await cluster.node('n', config('rendered-0', { '/etc/a': '0' }));
    node.start();
    for (let serial = 1; serial <= UPDATES; serial++) {
      const seen = watch();
      const wanted = config(`rendered-${serial}`, { '/etc/a': String(serial), [`/etc/b-${serial}`]: 'x' });
      await node.target(wanted);
      await pause(UPDATE_MS);
      await seen.stop();
      const bringBack = await cluster.loseApi();
      await pause(AWAY_MS);
      await bringBack();
      await node.isDone(wanted);
      assert.equal(node.read('etc/a'), String(serial));
    }
    assert.ok(!states.has('Degraded'), [...states].join());
    assert.doesNotMatch(node.log, /Marking (Degraded|Unreconcilable)/);
  } finally {
    await cluster.close();
  }
});
