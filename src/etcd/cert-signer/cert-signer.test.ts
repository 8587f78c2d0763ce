import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { startEngine } from '../../api/api.ts';
import { HOSTNAMES } from '../../certrotation/annotations.ts';
import { TLS_CERT } from '../../certrotation/secret.ts';
import { createRegistry } from '../../controller/metrics.ts';
import { VirtualClock } from '../../kube/clock.ts';
import { days } from '../../kube/duration.ts';
import { CONFIG_MAPS, NODES, SECRETS } from '../../kube/resource.ts';
import { expirationMetrics } from '../metrics.ts';
import { CONFIG_NAMESPACE, ETCD_NAMESPACE, ROLLOUT_REVISION } from '../names.ts';
import { CLUSTER, ETCDS } from '../resources.ts';
import { NOW, TestEtcd, type TestEtcdOptions, THREE_NODES } from '../testing.ts';

const LEAVES = ['etcd-peer-', 'etcd-serving-', 'etcd-serving-metrics-'];

async function cluster(t: TestContext, options: Partial<TestEtcdOptions> = {}): Promise<TestEtcd> {
  const clock = new VirtualClock(NOW);
  const engine = await startEngine({ clock });
  t.after(() => engine.close());
  return TestEtcd.create({ ...options, kube: engine.kube, clock });
}

describe('the first passes', () => {
  test('a new cluster gets everything in one pass, and a second pass writes nothing', async t => {
    const etcd = await cluster(t);
    await etcd.sync();
    const names = [...(await etcd.snapshot()).keys()].filter(name => !name.includes('kube-root-ca.crt')).sort();
    const leaves = Object.keys(THREE_NODES).flatMap(node =>
      LEAVES.map(prefix => `Secret openshift-etcd/${prefix}${node}`),
    );
    assert.deepEqual(
      names,
      [
        'ConfigMap openshift-etcd/etcd-all-bundles',
        'ConfigMap openshift-etcd/etcd-ca-bundle',
        'ConfigMap openshift-etcd/etcd-metrics-ca-bundle',
        'Secret openshift-config/etcd-metric-signer',
        'Secret openshift-config/etcd-signer',
        'Secret openshift-etcd/etcd-all-certs',
        'Secret openshift-etcd/etcd-client',
        'Secret openshift-etcd/etcd-metric-client',
        'Secret openshift-etcd/etcd-metric-signer',
        'Secret openshift-etcd/etcd-signer',
        ...leaves,
      ].sort(),
    );
    const before = await etcd.versions();
    await etcd.rollOut();
    const settled = await etcd.versions();
    const result = await etcd.sync();
    await etcd.sync();
    assert.deepEqual(await etcd.versions(), settled);
    assert.ok([...before].every(entry => settled.has(entry)));
    assert.deepEqual(await etcd.condition().then(c => [c?.status, c?.reason]), ['False', 'AsExpected']);
    // The next rule is the signer's: 80 % of its life, a second of which had passed when it was made.
    assert.equal(result.againAt?.getTime(), NOW.getTime() + days(1460) - 199);
  });

  test('a leaf is good for all addresses of its node and both ends of a connection', async t => {
    const etcd = await cluster(t, { nodes: { a: ['192.168.2.1', '2001:DB8:0:0::1'] } });
    await etcd.sync();
    const leaf = await etcd.certificate('etcd-peer-a');
    assert.deepEqual(leaf.ipAddresses.toSorted(), ['127.0.0.1', '192.168.2.1', '2001:db8::1', '::1']);
    assert.deepEqual(leaf.extKeyUsages, ['clientAuth', 'serverAuth']);
    assert.equal(leaf.subject.commonName, '127.0.0.1');
    const annotations = (await etcd.secret('etcd-peer-a')).metadata?.annotations ?? {};
    assert.match(annotations[HOSTNAMES] ?? '', /2001:db8::1/);
    const before = await etcd.versions();
    await etcd.sync();
    assert.deepEqual(await etcd.versions(), before, 'another spelling of an address rotates nothing (T-5)');
  });

  test('a node without an address is reported and nothing is written', async t => {
    const etcd = await cluster(t, { nodes: { a: [] } });
    await assert.rejects(
      etcd.sync(),
      /error while creating cert configs for nodes: error creating peer cert for node \[a\]: could not retrieve/,
    );
    assert.equal((await etcd.condition())?.reason, 'Error');
    assert.deepEqual(
      [...(await etcd.snapshot()).keys()].filter(name => name.startsWith('Secret')),
      [],
    );
  });

  test('an operator that is not managed is left alone', async t => {
    const etcd = await cluster(t);
    await etcd.kube.patch(ETCDS, CLUSTER, { type: 'merge', body: { spec: { managementState: 'Unmanaged' } } });
    await etcd.sync();
    assert.deepEqual(
      [...(await etcd.snapshot()).keys()].filter(name => name.startsWith('Secret')),
      [],
    );
  });
});

describe('signer rotation', () => {
  test('removing the annotations forces it: bundle first, leaves after the rollout, two revisions in all', async t => {
    const etcd = await cluster(t);
    await etcd.settle();
    const old = await etcd.certificate('etcd-signer');
    const leaves = await etcd.secret('etcd-all-certs');
    await etcd.forget('etcd-signer');

    await etcd.sync();
    const next = await etcd.certificate('etcd-signer');
    assert.notEqual(next.subject.commonName === old.subject.commonName && next.der.equals(old.der), true);
    assert.equal((await etcd.bundle()).length, 2);
    assert.equal((await etcd.configMap('etcd-all-bundles')).metadata?.annotations?.[ROLLOUT_REVISION], '1');
    assert.ok(
      (await etcd.certificate('etcd-signer', CONFIG_NAMESPACE)).der.equals(old.der),
      'the old one goes on signing',
    );
    await etcd.sync();
    assert.deepEqual((await etcd.secret('etcd-all-certs')).data, leaves.data, 'no leaf before the rollout');

    await etcd.cutRevision();
    await etcd.install('master-0');
    await etcd.sync();
    await etcd.install('master-1');
    await etcd.sync();
    assert.deepEqual(
      (await etcd.secret('etcd-all-certs')).data,
      leaves.data,
      'no leaf while one node lacks the bundle',
    );
    assert.deepEqual(await etcd.refusals(), []);

    await etcd.install('master-2');
    await etcd.sync();
    assert.ok((await etcd.certificate('etcd-signer', CONFIG_NAMESPACE)).der.equals(next.der));
    for (const name of ['etcd-client', 'etcd-peer-master-0', 'etcd-serving-master-2']) {
      assert.deepEqual((await etcd.certificate(name)).authorityKeyId, next.subjectKeyId, name);
    }
    assert.notDeepEqual((await etcd.certificate('etcd-serving-metrics-master-0')).authorityKeyId, next.subjectKeyId);
    assert.notDeepEqual((await etcd.secret('etcd-all-certs')).data, leaves.data);
    assert.deepEqual(await etcd.refusals(), []);
    await etcd.rollOut();
    const before = await etcd.versions();
    await etcd.sync();
    assert.deepEqual(await etcd.versions(), before, 'then it is over');
    const reasons = etcd.events.map(({ reason }) => reason);
    assert.ok(reasons.lastIndexOf('CABundleUpdateRequired') < reasons.lastIndexOf('SignerInUseChanged'));
    assert.ok(reasons.lastIndexOf('SignerInUseChanged') < reasons.lastIndexOf('TargetUpdateRequired'));
  });

  test('it comes by itself at 80 % of the life of the signers, both in the same two revisions', async t => {
    const etcd = await cluster(t);
    await etcd.settle();
    const { againAt } = await etcd.sync();
    assert.ok(againAt !== undefined);
    etcd.clock.jumpTo(new Date(againAt.getTime() + 1000));
    await etcd.sync();
    assert.equal((await etcd.bundle()).length, 2);
    assert.equal((await etcd.bundle('etcd-metrics-ca-bundle')).length, 2);
    await etcd.rollOut();
    await etcd.sync();
    const [signer, metric] = [await etcd.certificate('etcd-signer'), await etcd.certificate('etcd-metric-signer')];
    assert.deepEqual((await etcd.certificate('etcd-peer-master-1')).authorityKeyId, signer.subjectKeyId);
    assert.deepEqual((await etcd.certificate('etcd-serving-metrics-master-1')).authorityKeyId, metric.subjectKeyId);
    await etcd.rollOut();
    const before = await etcd.versions();
    await etcd.sync();
    assert.deepEqual(await etcd.versions(), before);
    assert.equal((await etcd.status()).latestAvailableRevision, 3);
  });

  test('the metrics signer rotates alone and touches nothing of the other', async t => {
    const etcd = await cluster(t);
    await etcd.settle();
    const before = await etcd.snapshot();
    await etcd.kube.delete(SECRETS, { namespace: ETCD_NAMESPACE, name: 'etcd-metric-signer' });
    await etcd.sync();
    await etcd.rollOut();
    await etcd.sync();
    const after = await etcd.snapshot();
    assert.notEqual(
      after.get('Secret openshift-etcd/etcd-serving-metrics-master-0'),
      before.get('Secret openshift-etcd/etcd-serving-metrics-master-0'),
    );
    for (const name of [
      'Secret openshift-etcd/etcd-peer-master-0',
      'ConfigMap openshift-etcd/etcd-ca-bundle',
      'Secret openshift-etcd/etcd-client',
    ]) {
      assert.equal(after.get(name), before.get(name), name);
    }
  });

  test('it waits for the copy of the etcd CA that kube-apiserver runs with', async t => {
    const etcd = await cluster(t);
    await etcd.settle();
    await etcd.rollOutKubeApiServer(4);
    await etcd.forget('etcd-signer');
    await etcd.sync();
    await etcd.rollOut();
    const leaves = await etcd.secret('etcd-all-certs');
    await etcd.sync();
    assert.deepEqual(
      (await etcd.secret('etcd-all-certs')).data,
      leaves.data,
      'kube-apiserver would refuse the new leaves',
    );
    await etcd.rollOutKubeApiServer(5);
    await etcd.sync();
    assert.notDeepEqual((await etcd.secret('etcd-all-certs')).data, leaves.data);
  });

  test('a node that comes in between gets leaves of a signer everybody trusts, and rolls on', async t => {
    const etcd = await cluster(t);
    await etcd.settle();
    const old = await etcd.certificate('etcd-signer');
    await etcd.forget('etcd-signer');
    await etcd.sync();
    await etcd.addNode('master-3', ['10.0.0.4']);
    const { nodeStatuses = [] } = await etcd.status();
    await etcd.setStatus({ nodeStatuses: [...nodeStatuses, { nodeName: 'master-3', currentRevision: 0 }] });
    await etcd.sync();
    const leaf = await etcd.certificate('etcd-serving-master-3');
    assert.deepEqual(leaf.authorityKeyId, old.subjectKeyId);
    assert.ok((await etcd.secret('etcd-all-certs')).data?.['etcd-serving-metrics-master-3.key']);
    assert.deepEqual(await etcd.refusals(), []);

    await etcd.removeNode('master-0');
    await etcd.rollOut();
    await etcd.sync();
    const published = Object.keys((await etcd.secret('etcd-all-certs')).data ?? {});
    assert.equal(published.length, 18);
    assert.ok(!published.some(key => key.includes('master-0')));
    assert.deepEqual(
      (await etcd.certificate('etcd-serving-master-3')).authorityKeyId,
      (await etcd.certificate('etcd-signer')).subjectKeyId,
    );
    assert.deepEqual(await etcd.refusals(), []);
  });

  test('a revision that was cut before the bundle changed does not open the gate, whatever its number', async t => {
    const etcd = await cluster(t);
    await etcd.settle();
    const leaves = await etcd.secret('etcd-all-certs');
    await etcd.forget('etcd-signer');
    await etcd.cutRevision();
    await etcd.install();
    await etcd.sync();
    // The annotation says 2; somebody turns it back, and the revision with the old bundles is still what runs.
    const bundles = await etcd.configMap('etcd-all-bundles');
    const annotations = { ...bundles.metadata?.annotations, [ROLLOUT_REVISION]: '1' };
    await etcd.kube.update(CONFIG_MAPS, { ...bundles, metadata: { ...bundles.metadata, annotations } });
    await etcd.sync();
    assert.deepEqual((await etcd.secret('etcd-all-certs')).data, leaves.data);
  });
});

describe('quorum', () => {
  test('a member that is down: nothing is written, the condition says why, and it goes on by itself', async t => {
    const etcd = await cluster(t);
    await etcd.settle();
    await etcd.forget('etcd-signer');
    etcd.members.set('master-1', false);
    const before = await etcd.versions();
    await assert.rejects(etcd.sync(), {
      message:
        /^EtcdCertSignerController can't evaluate whether quorum is safe: etcd cluster has quorum of 2 and 2 healthy members which is not fault tolerant: /,
    });
    assert.deepEqual(await etcd.versions(), before);
    const { status, message = '' } = (await etcd.condition()) ?? {};
    assert.equal(status, 'True');
    assert.match(message, /skipping EtcdCertSignerController reconciliation due to insufficient quorum$/);
    etcd.members.set('master-1', true);
    await etcd.sync();
    assert.equal((await etcd.bundle()).length, 2);
    assert.equal((await etcd.condition())?.status, 'False');
  });

  test('a member that goes down during the pass keeps the aggregate from being published; the next pass publishes it', async t => {
    let calls = 0;
    let isDownAtSecond = false;
    const etcd = await cluster(t, {
      quorum: async ({ maxAgeMs }) => {
        assert.equal(maxAgeMs, 0, 'each look is a look of its own (T-4)');
        calls++;
        return calls === 2 && isDownAtSecond ? { safe: false, error: 'gone' } : { safe: true };
      },
    });
    await etcd.settle();
    const leaves = await etcd.secret('etcd-all-certs');
    isDownAtSecond = true;
    await etcd.forget('etcd-peer-master-0');
    calls = 0;
    await assert.rejects(etcd.sync(), /can't evaluate whether quorum is safe: gone/);
    assert.equal(calls, 2);
    assert.equal((await etcd.condition())?.status, 'True');
    assert.deepEqual((await etcd.secret('etcd-all-certs')).data, leaves.data);
    isDownAtSecond = false;
    await etcd.sync();
    const published = (await etcd.secret('etcd-all-certs')).data ?? {};
    assert.equal(published['etcd-peer-master-0.crt'], (await etcd.secret('etcd-peer-master-0')).data?.[TLS_CERT]);
    assert.equal(published['etcd-peer-master-1.crt'], leaves.data?.['etcd-peer-master-1.crt']);
  });

  test('during a rollout nothing rotates, but a lost node can be replaced while another is down', async t => {
    const etcd = await cluster(t);
    await etcd.settle();
    await etcd.cutRevision();
    await etcd.forget('etcd-signer');
    await etcd.forget('etcd-peer-master-0');
    etcd.members.set('master-1', false);
    const before = await etcd.versions();
    await etcd.sync();
    assert.deepEqual(await etcd.versions(), before);
    await etcd.addNode('master-3', ['10.0.0.4']);
    await etcd.sync();
    assert.ok((await etcd.secret('etcd-all-certs')).data?.['etcd-peer-master-3.crt']);
    assert.equal((await etcd.bundle()).length, 1);
  });

  test('bundles that are gone are made again during a rollout, which would wait for them for ever (N-3)', async t => {
    const etcd = await cluster(t);
    await etcd.settle();
    const before = (await etcd.configMap('etcd-all-bundles')).data;
    await etcd.cutRevision();
    await etcd.forget('etcd-signer');
    for (const name of ['etcd-all-bundles', 'etcd-ca-bundle']) {
      await etcd.kube.delete(CONFIG_MAPS, { namespace: ETCD_NAMESPACE, name });
    }
    await etcd.sync();
    assert.deepEqual((await etcd.configMap('etcd-all-bundles')).data, before);
    await etcd.install();
    await etcd.sync();
    assert.equal((await etcd.bundle()).length, 2, 'then the forced rotation goes on');
  });

  test('a deleted kube-system/bootstrap opens nothing (T-16)', async t => {
    const etcd = await cluster(t);
    await etcd.kube.create(CONFIG_MAPS, {
      metadata: { namespace: 'kube-system', name: 'bootstrap' },
      data: { status: 'complete' },
    });
    await etcd.settle();
    await etcd.kube.delete(CONFIG_MAPS, { namespace: 'kube-system', name: 'bootstrap' });
    etcd.members.set('master-0', false);
    await assert.rejects(etcd.sync(), /insufficient quorum/);
  });
});

describe('leaves', () => {
  test('one that is deleted or forced comes back in one write of the aggregate, the others stay', async t => {
    const etcd = await cluster(t);
    await etcd.settle();
    const leaves = (await etcd.secret('etcd-all-certs')).data ?? {};
    await etcd.kube.delete(SECRETS, { namespace: ETCD_NAMESPACE, name: 'etcd-serving-master-1' });
    await etcd.sync();
    const published = (await etcd.secret('etcd-all-certs')).data ?? {};
    const changed = Object.keys(published).filter(key => published[key] !== leaves[key]);
    assert.deepEqual(changed.sort(), ['etcd-serving-master-1.crt', 'etcd-serving-master-1.key']);
  });

  test('a new address of a node rotates its three leaves and nothing else', async t => {
    const etcd = await cluster(t);
    await etcd.settle();
    const leaves = (await etcd.secret('etcd-all-certs')).data ?? {};
    const node = await etcd.kube.get(NODES, { name: 'master-1' });
    await etcd.kube.updateStatus(NODES, {
      ...node,
      status: { addresses: [{ type: 'InternalIP', address: '10.100.100.1' }] },
    });
    await etcd.sync();
    const published = (await etcd.secret('etcd-all-certs')).data ?? {};
    const changed = Object.keys(published).filter(key => published[key] !== leaves[key]);
    assert.deepEqual(
      changed.sort(),
      LEAVES.flatMap(prefix => [`${prefix}master-1.crt`, `${prefix}master-1.key`]).sort(),
    );
    const message = etcd.events.findLast(({ reason }) => reason === 'TargetUpdateRequired')?.message ?? '';
    assert.match(message, /"10.0.0.2" are existing and not required, "10.100.100.1" are required and not existing/);
  });

  test('a deleted aggregate is put together again from the leaves that are there', async t => {
    const etcd = await cluster(t);
    await etcd.settle();
    const leaves = await etcd.secret('etcd-all-certs');
    await etcd.kube.delete(SECRETS, { namespace: ETCD_NAMESPACE, name: 'etcd-all-certs' });
    await etcd.cutRevision();
    await etcd.sync();
    assert.deepEqual((await etcd.secret('etcd-all-certs')).data, leaves.data);
  });

  test('clients that are deleted come back also while leaves are held', async t => {
    const etcd = await cluster(t);
    await etcd.settle();
    await etcd.forget('etcd-signer');
    await etcd.sync();
    await etcd.kube.delete(SECRETS, { namespace: ETCD_NAMESPACE, name: 'etcd-client' });
    await etcd.sync();
    const client = await etcd.certificate('etcd-client');
    assert.deepEqual(client.authorityKeyId, (await etcd.certificate('etcd-signer', CONFIG_NAMESPACE)).subjectKeyId);
    assert.deepEqual(client.subject.organizations.toSorted(), ['etcd-client', 'system:etcd']);
  });
});

test('the gauges show the signers in use, and every leaf with its end', async t => {
  const registry = createRegistry();
  const etcd = await cluster(t, { metrics: expirationMetrics(registry) });
  await etcd.sync();
  const text = await registry.metrics();
  assert.match(text, /openshift_etcd_operator_signer_expiration_days\{name="signer-ca"\} 1825/);
  assert.match(text, /openshift_etcd_operator_signer_expiration_days\{name="metrics-signer-ca"\} 1825/);
  const end = (await etcd.certificate('etcd-peer-master-0')).notAfter.getTime() / 1000;
  assert.match(
    text,
    new RegExp(`name="etcd-peer-master-0",node="master-0",issuer="openshift-etcd_etcd-signer@\\d+"\\} ${end}`),
  );
  await etcd.removeNode('master-0');
  await etcd.sync();
  assert.doesNotMatch(await registry.metrics(), /master-0/);
});
