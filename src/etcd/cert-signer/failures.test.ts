import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { startEngine } from '../../api/api.ts';
import { RetryRequest } from '../../controller/reconcile.ts';
import { VirtualClock } from '../../kube/clock.ts';
import { KubeError } from '../../kube/error.ts';
import type { Kube } from '../../kube/port.ts';
import { intercepted } from '../../staticpod/testing.ts';
import { NOW, TestEtcd } from '../testing.ts';

async function cluster(t: TestContext, { through }: { through: (kube: Kube) => Kube }): Promise<TestEtcd> {
  const clock = new VirtualClock(NOW);
  const engine = await startEngine({ clock });
  t.after(() => engine.close());
  return TestEtcd.create({ kube: through(engine.kube), clock });
}

describe('writes that go wrong', () => {
  test('a conflict at any write never publishes an empty bundle, and the next pass goes on', async t => {
    const conflicts = [
      'etcd-ca-bundle',
      'etcd-metrics-ca-bundle',
      'etcd-signer',
      'etcd-all-bundles',
      'etcd-all-certs',
      'etcd-peer-master-0',
    ];
    for (const name of conflicts) {
      let armed = false;
      const etcd = await cluster(t, {
        through: kube =>
          intercepted(kube, (verb, _resource, object) => {
            if (!armed || object !== name || (verb !== 'update' && verb !== 'create')) return;
            armed = false;
            throw new KubeError(409, 'Conflict', `${name} has been modified`);
          }),
      });
      await etcd.settle();
      armed = true;
      await etcd.forget('etcd-signer').catch(() => {});
      armed = true;
      await etcd.forget('etcd-signer').catch(() => {});
      armed = true;
      await etcd
        .sync()
        .catch((error: unknown) => assert.ok(error instanceof RetryRequest || /has been modified/.test(String(error))));
      const published = (await etcd.configMap('etcd-all-bundles')).data ?? {};
      assert.ok(published['server-ca-bundle.crt'] && published['metrics-ca-bundle.crt'], name);
      armed = false;
      await etcd.forget('etcd-signer');
      await etcd.sync();
      await etcd.rollOut();
      await etcd.sync();
      assert.deepEqual(await etcd.refusals(), []);
    }
  });

  test('a failing write is told with the texts of the runbooks', async t => {
    const texts: [string, RegExp][] = [
      ['etcd-signer', /^error on ensuring etcd-signer cert: /],
      ['etcd-ca-bundle', /^error on ensuring signer bundle for new pair: /],
      ['etcd-metric-signer', /^error on ensuring metrics-signer cert: /],
      ['etcd-metrics-ca-bundle', /^error on ensuring metrics signer bundle: /],
      ['etcd-client', /^error on ensuring etcd client cert: /],
      ['etcd-metric-client', /^error on ensuring metrics client cert: /],
      ['etcd-peer-master-0', /^error on peer cert sync for node master-0: /],
      ['etcd-serving-master-1', /^error on serving cert sync for node master-1: /],
      ['etcd-serving-metrics-master-2', /^error on serving metrics cert sync for node master-2: /],
      ['etcd-all-bundles', /^error on ensuring bundles: could not apply bundle configmap: /],
    ];
    for (const [name, text] of texts) {
      const refuse = (kube: Kube) =>
        intercepted(kube, (verb, _resource, object) => {
          if (verb === 'create' && object === name) throw new KubeError(403, 'Forbidden', 'not allowed');
        });
      const etcd = await cluster(t, { through: refuse });
      await assert.rejects(etcd.sync(), { message: text }, name);
      assert.match((await etcd.condition())?.message ?? '', text);
    }
  });

  test('a status that cannot be written is an event', async t => {
    let broken = false;
    const etcd = await cluster(t, {
      through: kube =>
        intercepted(kube, verb => {
          if (verb === 'updateStatus' && broken) throw new KubeError(500, 'InternalError', 'no');
        }),
    });
    broken = true;
    await assert.rejects(etcd.sync(), /no/);
    assert.ok(etcd.events.some(({ reason }) => reason === 'EtcdCertSignerControllerUpdatingStatus'));
  });
});
