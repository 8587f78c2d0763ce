import assert from 'node:assert/strict';
import { test } from 'node:test';
import { effectOfChange, verdictOf } from '../trust/effect.ts';
import { placeOf } from '../trust/graph.ts';
import { configMap, secret } from '../trust/object.ts';
import { profile416, profileLater } from './profile.ts';
import { etcdTrust } from './trust.ts';

for (const profile of [profile416(), profileLater()]) {
  const graph = etcdTrust(profile);

  test(`${profile.release}: both sides of every connection have what they need in a known place`, () => {
    for (const { client, server, name } of graph.edges) {
      for (const side of [client, server]) {
        for (const holding of [side.presents, side.verifiesWith]) {
          if (typeof holding !== 'object' || !('object' in holding)) continue;
          assert.ok(placeOf(graph, side, holding), `${name}: ${side.process} has ${holding.object.name} nowhere`);
        }
      }
    }
  });

  test(`${profile.release}: a new signer, a leaf and a bundle restart the members, a client certificate does not`, () => {
    const effect = (object: ReturnType<typeof secret>) => verdictOf(effectOfChange(graph, object));
    assert.equal(effect(secret('openshift-etcd', 'etcd-signer')), 'restart');
    assert.equal(effect(secret('openshift-etcd', 'etcd-metric-signer')), 'restart');
    assert.equal(effect(secret('openshift-etcd', 'etcd-peer-<node>')), 'restart');
    assert.equal(effect(configMap('openshift-etcd', 'etcd-ca-bundle')), 'restart');
    assert.equal(effect(secret('openshift-etcd', 'etcd-client')), 'none');
  });

  test(`${profile.release}: everything that is delivered is revisioned and installed`, () => {
    for (const { object } of graph.deliveries) {
      const list = object.kind === 'Secret' ? ('secrets' as const) : ('configMaps' as const);
      assert.ok(
        profile.revisioned[list].some(({ name }) => name === object.name),
        object.name,
      );
      assert.ok(
        profile.unrevisioned[list].some(({ name }) => name === object.name),
        object.name,
      );
    }
  });
}
