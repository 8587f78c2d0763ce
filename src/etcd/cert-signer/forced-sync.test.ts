import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { startEngine } from '../../api/api.ts';
import { VirtualClock } from '../../kube/clock.ts';
import { days } from '../../kube/duration.ts';
import { KubeError } from '../../kube/error.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, SECRETS } from '../../kube/resource.ts';
import { intercepted } from '../../staticpod/testing.ts';
import { CONFIG_NAMESPACE, ETCD_NAMESPACE, OWNING_COMPONENT, ROLLOUT_REVISION } from '../names.ts';
import { profile416 } from '../profile.ts';
import { foreignSigner, NOW, TestEtcd, type TestEtcdOptions } from '../testing.ts';

interface Options extends Partial<TestEtcdOptions> {
  readonly through?: ((kube: Kube) => Kube) | undefined;
}

async function cluster(t: TestContext, { through = kube => kube, ...options }: Options = {}): Promise<TestEtcd> {
  const clock = new VirtualClock(NOW);
  const engine = await startEngine({ clock });
  t.after(() => engine.close());
  return TestEtcd.create({ ...options, kube: through(engine.kube), clock });
}

describe('a forced leaf sync (N-4)', () => {
  test('leaves for a node that lacks them come first; signers and bundles stay until the next pass', async t => {
    const etcd = await cluster(t);
    await etcd.settle();
    const before = await etcd.versions();
    await etcd.forget('etcd-signer');
    await etcd.addNode('master-3', ['10.0.0.4']);
    const signer = await etcd.certificate('etcd-signer');
    await etcd.sync();
    assert.ok((await etcd.certificate('etcd-signer')).der.equals(signer.der), 'no signer is made');
    assert.ok((await etcd.secret('etcd-all-certs')).data?.['etcd-serving-master-3.key']);
    const written = [...(await etcd.versions())]
      .filter(entry => !before.has(entry))
      .map(entry => entry.split(' ')[1] ?? '');
    assert.deepEqual(
      written.sort(),
      ['all-certs', 'peer-master-3', 'serving-master-3', 'serving-metrics-master-3', 'signer']
        .map(name => `${ETCD_NAMESPACE}/etcd-${name}`)
        .sort(),
      'etcd-signer was changed by the test',
    );
    await etcd.sync();
    assert.ok(!(await etcd.certificate('etcd-signer')).der.equals(signer.der), 'then what is due is rotated');
  });

  test('a signer that some do not trust yet makes no leaves, and does not keep the rest from going on', async t => {
    const etcd = await cluster(t);
    await etcd.settle();
    const inUse = await etcd.secret('etcd-signer', CONFIG_NAMESPACE);
    await etcd.kube.update(SECRETS, { ...inUse, data: (await foreignSigner('etcd-signer')).data ?? {} });
    await etcd.addNode('master-3', ['10.0.0.4']);
    await etcd.sync();
    assert.equal((await etcd.bundle()).length, 2, 'its bundle is published');
  });

  test('its failures have their own texts and say nothing in the condition (N-8)', async t => {
    let refused = '';
    const etcd = await cluster(t, {
      through: kube =>
        intercepted(kube, (verb, _resource, object) => {
          if (refused !== '' && `${verb} ${object}` === refused) throw new KubeError(403, 'Forbidden', 'not allowed');
        }),
    });
    await etcd.settle();
    await etcd.addNode('master-3', ['10.0.0.4']);
    refused = 'create etcd-peer-master-3';
    await assert.rejects(etcd.sync(), {
      message:
        /^EtcdCertSignerController failed to force sync leaf certificates: error on peer cert sync for node master-3: /,
    });
    refused = 'get etcd-metric-signer';
    await assert.rejects(etcd.sync(), {
      message:
        /^EtcdCertSignerController failed to force sync leaf certificates: error while reading metrics signer ca during forced leaf sync: /,
    });
    assert.equal((await etcd.condition())?.status, 'False');
  });
});

test('failures while an installer is at work, or while bundles are gone, say nothing in the condition (N-2, N-3, N-8)', async t => {
  const refuse = (kube: Kube) =>
    intercepted(kube, (verb, _resource, object) => {
      if (verb === 'create' && object === 'etcd-all-bundles') throw new KubeError(403, 'Forbidden', 'not allowed');
    });
  const etcd = await cluster(t, { through: refuse });
  const key = { namespace: 'kube-system', name: 'bootstrap' };
  const bootstrap = await etcd.kube.create(CONFIG_MAPS, { metadata: key, data: { status: 'progressing' } });
  await assert.rejects(etcd.sync(), {
    message:
      /^EtcdCertSignerController failed to sync all master certificates during bootstrap: error on ensuring bundles: /,
  });
  await etcd.kube.update(CONFIG_MAPS, { ...bootstrap, data: { status: 'complete' } });
  await etcd.rollOut();
  await assert.rejects(etcd.sync(), {
    message:
      /^EtcdCertSignerController failed to sync all master certificates to regenerate missing etcd-all-bundles configmap: /,
  });
  assert.equal(await etcd.condition(), undefined);
});

test('a status that cannot be read is an error and no condition (N-8)', async t => {
  let broken = false;
  const etcd = await cluster(t, {
    through: kube =>
      intercepted(kube, (verb, { kind }) => {
        if (broken && verb === 'get' && kind === 'Etcd') throw new KubeError(500, 'InternalError', 'no');
      }),
  });
  await etcd.settle();
  broken = true;
  await assert.rejects(etcd.sync(), { message: /^skipping EtcdCertSignerController can't get current status: / });
  broken = false;
  assert.equal((await etcd.condition())?.status, 'False');
});

test('a revision on the bundles that is no number stops the pass before anything is written (N-5)', async t => {
  const etcd = await cluster(t);
  await etcd.settle();
  await etcd.forget('etcd-signer');
  const bundles = await etcd.configMap('etcd-all-bundles');
  const annotations = { ...bundles.metadata?.annotations, [ROLLOUT_REVISION]: 'x' };
  await etcd.kube.update(CONFIG_MAPS, { ...bundles, metadata: { ...bundles.metadata, annotations } });
  const before = await etcd.versions();
  await assert.rejects(etcd.sync(), /could not parse annotation for cert rotation revision \[x\]/);
  assert.deepEqual(await etcd.versions(), before);
});

test('an aggregate of which only metadata differs is put right, without a second look at the quorum (C-9)', async t => {
  let checks = 0;
  const etcd = await cluster(t, { quorum: async () => ({ safe: ++checks > 0 }) });
  await etcd.settle();
  const { metadata, data = {} } = await etcd.secret('etcd-all-certs');
  const key = { namespace: ETCD_NAMESPACE, name: 'etcd-all-certs' };
  await etcd.kube.update(SECRETS, { metadata: { ...metadata, annotations: {} }, type: 'Opaque', data });
  checks = 0;
  await etcd.sync();
  assert.equal(checks, 1);
  const mended = await etcd.secret('etcd-all-certs');
  assert.equal(mended.metadata?.annotations?.[OWNING_COMPONENT], 'Etcd');
  assert.deepEqual(mended.data, data);
  await etcd.kube.delete(SECRETS, key);
  await etcd.kube.create(SECRETS, {
    metadata: { ...key, annotations: { [OWNING_COMPONENT]: 'Etcd' } },
    type: 'x',
    data,
  });
  await etcd.sync();
  assert.equal((await etcd.secret('etcd-all-certs')).type, 'Opaque');
});

test('a signer in use that has expired is no state to call as expected (R-6)', async t => {
  const etcd = await cluster(t, { profile: profile416() });
  await etcd.kube.create(SECRETS, await foreignSigner('etcd-signer', { lifetimeDays: 300 }));
  await etcd.kube.create(SECRETS, await foreignSigner('etcd-metric-signer'));
  await etcd.settle();
  assert.equal((await etcd.condition())?.status, 'False');
  etcd.clock.jumpTo(new Date(NOW.getTime() + days(301)));
  await etcd.rollOut();
  await assert.rejects(etcd.sync());
  await etcd.rollOut();
  await assert.rejects(etcd.sync(), /expired and not replaced: openshift-config\/etcd-signer, .*etcd-peer-master-0/);
  assert.equal((await etcd.condition())?.status, 'True');
});
