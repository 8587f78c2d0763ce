/** library-go's own rotation controllers take over what ours made, and ours what theirs made, without one write. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { reconcileOnce } from '../../src/certrotation/reconcile.ts';
import type { Kube } from '../../src/kube/port.ts';
import { KUBE_APISERVER_CHAINS, type ObjectName } from '../../src/kube-apiserver/chains.ts';
import { findBinaries } from './binaries.ts';
import { startControlPlane } from './control-plane.ts';
import {
  type Bench,
  bench,
  chainOf,
  changed,
  embeddedBench,
  expire,
  leafOf,
  NOTHING,
  notBuilt,
  placeOf,
  versions,
} from './library-go-bench.ts';

const binaries = findBinaries(['etcd', 'kube-apiserver', 'kube-controller-manager']);

const APIS: Record<string, { readonly skip: string | false; readonly start: (t: TestContext) => Promise<Bench> }> = {
  'the embedded API': {
    skip: notBuilt,
    start: embeddedBench,
  },
  'a real kube-apiserver': {
    skip: notBuilt || ('missing' in binaries && binaries.missing),
    start: async t => {
      assert.ok(!('missing' in binaries));
      const cluster = await startControlPlane(binaries);
      t.after(() => cluster.stop());
      return bench(cluster.kube, cluster.kubeconfig);
    },
  },
};

for (const [name, { skip, start }] of Object.entries(APIS)) {
  describe(`library-go and ours change hands on ${name}`, { skip }, () => {
    it('takes over all chains that ours made; then each rotates what is due, and the other leaves it alone', async t => {
      const { kube, units, rotation, theirs } = await start(t);
      const ours = () => reconcileOnce(units, rotation);
      await ours();
      assert.deepEqual(await theirs(), NOTHING);
      await leavesAlone(kube, ours);

      await expire(kube, leafOf('AggregatorProxyClientCert'));
      assert.deepEqual((await theirs()).writes, [put(leafOf('AggregatorProxyClientCert'), 'secrets')]);
      await leavesAlone(kube, ours);

      const { signer, bundle } = chainOf('KubeControllerManagerClient');
      await expire(kube, signer);
      assert.deepEqual((await theirs()).writes, [put(signer, 'secrets'), put(bundle, 'configmaps')]);
      await leavesAlone(kube, ours);
    });

    it('leaves alone all chains that library-go made; then ours rotates what is due, and library-go leaves it alone', async t => {
      const { kube, units, rotation, theirs } = await start(t);
      const ours = () => reconcileOnce(units, rotation);
      const { writes, errors } = await theirs();
      assert.deepEqual(errors, []);
      assert.ok(writes.length >= 2 * KUBE_APISERVER_CHAINS.length, `${writes.length} writes`);
      await leavesAlone(kube, ours);
      assert.deepEqual(await theirs(), NOTHING);

      const { signer, bundle } = chainOf('LocalhostServing');
      for (const due of [[leafOf('ServiceNetworkServing')], [signer, bundle]] as const) {
        await expire(kube, due[0]);
        const before = await versions(kube);
        await ours();
        assert.deepEqual(changed(before, await versions(kube)), due.map(placeOf).sort());
        assert.deepEqual(await theirs(), NOTHING);
      }
    });
  });
}

const put = ({ namespace, name }: ObjectName, plural: string): string =>
  `PUT namespaces/${namespace}/${plural}/${name}`;

async function leavesAlone(kube: Kube, pass: () => Promise<unknown>): Promise<void> {
  const before = await versions(kube);
  await pass();
  assert.deepEqual(changed(before, await versions(kube)), []);
}
