/** What an agent says of its node, and that it says nothing more at rest (spec 80; spec 90, HO-11). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NODES } from '../../../src/kube/resource.ts';
import { caDigest } from '../../../src/trust/receipts.ts';
import { PKI } from './kubeadm-node.ts';
import { withScene } from './scene.ts';

test('a control-plane node is told whole: CAs, leaves, processes, keys', async () => {
  await withScene({}, async scene => {
    const agent = scene.run();
    const report = await scene.whole();
    const ca = scene.signer(scene.signers.ca).signs;
    assert.deepEqual(
      [report.role, report.etcd, report.problem, report.done],
      ['control-plane', 'stacked', undefined, undefined],
    );
    assert.deepEqual(report.signers.ca, { cas: [ca], key: 'fits', ends: '2036-02-26T00:00:00Z' });
    assert.deepEqual(Object.keys(report.signers).toSorted(), ['ca', 'etcd-ca', 'front-proxy-ca']);
    assert.deepEqual(report.signing, { ca, isSeparate: false });
    assert.ok(Object.values(report.kubeconfigs ?? {}).every(cas => cas.join() === ca));
    assert.equal(Object.keys(report.kubeconfigs ?? {}).length, 5);
    assert.equal(Object.keys(report.leaves).length, 12);
    assert.equal(report.leaves['apiserver']?.digest, caDigest(await scene.certificate(`${PKI}/apiserver.crt`)));
    assert.ok(Object.values(report.leaves).every(({ problem }) => problem === undefined));
    assert.deepEqual(Object.keys(report.processes).toSorted(), [
      'etcd',
      'kube-apiserver',
      'kube-controller-manager',
      'kube-scheduler',
      'kubelet',
    ]);
    assert.ok(Object.values(report.processes).every(({ behind }) => behind.length === 0));
    assert.deepEqual(report.processes['kube-controller-manager']?.began, { ca: [ca] });
    assert.deepEqual(report.serviceAccount?.accepts, [report.serviceAccount?.signs]);
    await agent.stop();
  });
});

test('a worker has one CA and the certificate of its kubelet', async () => {
  await withScene({ role: 'worker' }, async scene => {
    const agent = scene.run();
    const report = await scene.until('a report', () => scene.report());
    assert.deepEqual(
      [report.role, Object.keys(report.signers), Object.keys(report.leaves)],
      ['worker', ['ca'], ['kubelet.conf']],
    );
    assert.equal(report.signers.ca?.key, 'none');
    assert.equal(report.signing, undefined);
    await agent.stop();
  });
});

test('at rest nothing is written, neither to the node nor to the API, and another agent finds nothing to say', async () => {
  await withScene({}, async scene => {
    const first = scene.run();
    await scene.whole();
    await scene.rest();
    const before = (await scene.kube.get(NODES, { name: 'node-a' })).metadata?.resourceVersion;
    scene.writes.length = 0;
    await scene.rest();
    await first.stop();
    const second = scene.run();
    await scene.rest();
    await second.stop();
    assert.deepEqual(scene.writes, []);
    assert.equal((await scene.kube.get(NODES, { name: 'node-a' })).metadata?.resourceVersion, before);
    assert.deepEqual(scene.host.asked, []);
  });
});

test('a file that its process began before makes it behind', async () => {
  await withScene({}, async scene => {
    const agent = scene.run();
    await scene.whole();
    const path = '/etc/kubernetes/scheduler.conf';
    await scene.host.files.write(path, Buffer.from(`${await scene.text(path)}# touched\n`));
    const report = await scene.until('it is behind', async () => {
      const found = await scene.report();
      return found?.processes['kube-scheduler']?.behind.length === 1 ? found : undefined;
    });
    assert.deepEqual(report.processes['kube-scheduler']?.behind, [path]);
    assert.deepEqual(report.processes['kube-scheduler']?.began, { ca: [] });
    await agent.stop();
  });
});
