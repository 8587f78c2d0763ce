import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { Registry } from '@prometheus-io/client';
import type { ConfigMap, Pod } from 'kubernetes-types/core/v1.d.ts';
import { type Engine, startEngine } from '../api/engine.ts';
import { HOSTNAMES, NOT_AFTER } from '../certrotation/annotations.ts';
import { BUNDLE_KEY } from '../certrotation/bundle.ts';
import { CLUSTER_OPERATORS } from '../controller/cluster-operator-status.ts';
import { silentLog } from '../controller/log.ts';
import { days, minutes } from '../kube/duration.ts';
import { recordingEvents } from '../kube/events.ts';
import { getIfPresent } from '../kube/get.ts';
import { CONFIG_MAPS, NODES, PODS, SECRETS } from '../kube/resource.ts';
import type { Certificate } from '../pki/certificate.ts';
import { issueClient, issueSigner } from '../pki/issue.ts';
import { type Keys, seededKeys, systemKeys } from '../pki/keys.ts';
import { encodeCertificates, encodePrivateKey, readCertificates } from '../pki/pem.ts';
import { effectOfChange } from '../trust/effect.ts';
import { secret } from '../trust/object.ts';
import { KUBE_APISERVER_CHAINS } from './chains.ts';
import { CLIENT_CA, SERVER_CA } from './combined-bundles.ts';
import { CONDITION_TYPES, rotationCondition } from './conditions.ts';
import {
  CONFIG_NAMESPACE,
  ETCD_NAMESPACE,
  MANAGED_NAMESPACE,
  OPERAND_NAMESPACE,
  OPERATOR_NAMESPACE,
} from './namespaces.ts';
import { type KubeApiserverOperator, kubeApiserverOperator, runKubeApiserverOperator } from './operator.ts';
import { API_SERVERS, CLUSTER, INFRASTRUCTURES, KUBE_API_SERVERS } from './resources.ts';
import { ensureRotationBase, ROTATION_BASE, rotationBaseCondition } from './rotation/base.ts';
import { eventually, NOW, prepareCluster, testClock } from './testing.ts';

/** Made on the spot, so that only the virtual clock counts; RSA keys for tokens take long, and any key will do here. */
const seeded = seededKeys('operator');
const fastKeys: Keys = { ...seeded, generate: () => seeded.generate('P-256') };

const PROGRAM = {
  flavor: 'openshift',
  image: 'operand:1',
  operatorImage: 'operator:1',
  operatorCommand: ['rotunda'],
  version: '1.0.0',
} as const;

describe('the operator on an API in process', () => {
  const clock = testClock();
  const stop = new AbortController();
  const events = recordingEvents();
  const registry = new Registry();
  let engine: Engine;
  let operator: KubeApiserverOperator;
  let running: Promise<void>;

  const configMap = (namespace: string, name: string) => getIfPresent(engine.kube, CONFIG_MAPS, { namespace, name });
  const operand = (name: string) => configMap(OPERAND_NAMESPACE, name);
  const operandSecret = (name: string) => getIfPresent(engine.kube, SECRETS, { namespace: OPERAND_NAMESPACE, name });
  const status = async () => (await engine.kube.get(KUBE_API_SERVERS, CLUSTER)).status ?? {};
  const conditionOf = async (type: string) => (await status()).conditions?.find(condition => condition.type === type);

  before(async () => {
    engine = await startEngine({ clock, rootCa: () => 'the CA of the API\n' });
    await prepareCluster(engine);
    await provideInputs(engine);
    operator = kubeApiserverOperator({
      kube: engine.kube,
      clock,
      keys: fastKeys,
      events,
      log: silentLog,
      program: PROGRAM,
      dayMs: days(1),
      keyAlgorithm: 'P-256',
      registry,
      kubernetesVersion: '1.29.0',
      versions: { operand: '1.29.0', operator: '1.0.0' },
    });
    running = operator.run(stop.signal);
  });
  after(async () => {
    stop.abort();
    await running;
    await engine.close();
  });

  test('from nothing to the first revision: chains, bundles, copies, keys, config and pod', async () => {
    await eventually(clock, async () => ((await status()).latestAvailableRevision ?? 0) > 0);
    for (const { signer, bundle, target } of KUBE_APISERVER_CHAINS) {
      assert.ok(await getIfPresent(engine.kube, SECRETS, signer), signer.name);
      assert.ok(await getIfPresent(engine.kube, CONFIG_MAPS, bundle), bundle.name);
      assert.ok(await getIfPresent(engine.kube, SECRETS, target), target.name);
    }
    for (const name of [
      'config',
      'kube-apiserver-pod',
      'client-ca',
      'kube-apiserver-server-ca',
      'aggregator-client-ca',
      'kubelet-serving-ca',
    ]) {
      assert.ok(await operand(name), name);
    }
    for (const name of [
      'kube-apiserver-client-ca',
      'kube-apiserver-server-ca',
      'kubelet-serving-ca',
      'bound-sa-token-signing-certs',
    ]) {
      assert.ok(await eventually(clock, () => configMap(MANAGED_NAMESPACE, name)), name);
    }
    for (const name of ['bound-service-account-signing-key', 'localhost-recovery-client-token']) {
      assert.ok(await operandSecret(name), name);
    }
    await eventually(clock, () => operandSecret('node-kubeconfigs'));
  });

  test('bundles hold the CAs of their sources, in order', async () => {
    const namesIn = (bundle: ConfigMap | undefined) =>
      readCertificates(bundle?.data?.[BUNDLE_KEY] ?? '').certificates.map(({ subject }) =>
        subject.commonName.replace(/@\d+$/, ''),
      );
    assert.deepEqual(namesIn(await operand(CLIENT_CA.destination.name)), [
      'csr-signer',
      'openshift-kube-apiserver-operator_kube-apiserver-to-kubelet-signer',
      'openshift-kube-apiserver-operator_kube-control-plane-signer',
      'openshift-kube-apiserver-operator_node-system-admin-signer',
    ]);
    assert.deepEqual(
      namesIn(await operand(SERVER_CA.destination.name)),
      ['loadbalancer', 'localhost', 'service-network', 'localhost-recovery'].map(
        name => `openshift-kube-apiserver-operator_${name}-serving-signer`,
      ),
    );
  });

  test('the pod manifest and the configuration name the files of section 4.4', async () => {
    const pod = JSON.parse((await operand('kube-apiserver-pod'))?.data?.['pod.yaml'] ?? '') as Pod;
    assert.deepEqual(
      pod.spec?.containers.map(({ name }) => name),
      [
        'kube-apiserver',
        'kube-apiserver-cert-syncer',
        'kube-apiserver-cert-regeneration-controller',
        'kube-apiserver-insecure-readyz',
        'kube-apiserver-check-endpoints',
      ],
    );
    const config = JSON.parse((await operand('config'))?.data?.['config.yaml'] ?? '') as Record<string, never>;
    const args = config.apiServerArguments as unknown as Record<string, string[]>;
    assert.deepEqual(args['client-ca-file'], ['/etc/kubernetes/static-pod-certs/configmaps/client-ca/ca-bundle.crt']);
    assert.deepEqual(args['etcd-servers'], ['https://10.0.0.1:2379', 'https://localhost:2379']);
    assert.deepEqual(args['service-account-jwks-uri'], ['https://api.c.example.com:6443/openid/v1/jwks']);
    const { namedCertificates } = config.servingInfo as unknown as { namedCertificates: { certFile: string }[] };
    assert.equal(namedCertificates.length, 5);
    assert.equal(
      namedCertificates[4]?.certFile,
      '/etc/kubernetes/static-pod-resources/secrets/localhost-recovery-serving-certkey/tls.crt',
    );
  });

  test('an installer is sent to the node', async () => {
    const { items } = await eventually(clock, async () => {
      const list = await engine.kube.list(PODS, { namespace: OPERAND_NAMESPACE });
      return list.items.length > 0 && list;
    });
    assert.match(items[0]?.metadata?.name ?? '', /^installer-\d+-master-0$/);
    assert.deepEqual(items[0]?.spec?.containers[0]?.command, ['rotunda', 'installer']);
  });

  test('every condition is one of the catalogue, and those of rotation are all well', async () => {
    const conditions = (await status()).conditions ?? [];
    for (const { type } of conditions) assert.ok(CONDITION_TYPES.includes(type), type);
    for (const { controller } of KUBE_APISERVER_CHAINS) {
      assert.equal((await conditionOf(rotationCondition(controller)))?.status, 'False', controller);
    }
    for (const type of [
      'TargetConfigControllerDegraded',
      'ResourceSyncControllerDegraded',
      'ConfigObservationDegraded',
      'NodeKubeconfigControllerDegraded',
    ]) {
      await eventually(clock, async () => (await conditionOf(type))?.status === 'False');
    }
    assert.equal((await conditionOf('CertRotationTimeUpgradeable'))?.reason, 'DefaultCertRotationBase');
    const missing = CONDITION_TYPES.filter(type => !conditions.some(condition => condition.type === type));
    // Others only speak up when something is wrong, or when there is a node that runs something.
    for (const type of missing)
      assert.match(type, /^(StaticPod|Installer|NodeInstaller|MissingStaticPod|Guard|Startup|KubeletMinor|NodeKube)/);
  });

  test('at rest nothing is written and nothing happens, however long', async () => {
    const revision = async () =>
      (await engine.kube.list(CONFIG_MAPS, { namespace: OPERAND_NAMESPACE })).metadata.resourceVersion;
    await clock.advance(minutes(15));
    const [before, told] = [await revision(), events.events.length];
    await clock.advance(minutes(30));
    assert.deepEqual(events.events.slice(told), []);
    assert.equal(await revision(), before);
  });

  test('a ClusterOperator tells the union', async () => {
    const found = await eventually(clock, () =>
      getIfPresent(engine.kube, CLUSTER_OPERATORS, { name: 'kube-apiserver' }),
    );
    const types = (
      await eventually(clock, async () => {
        const { status: current } = await engine.kube.get(CLUSTER_OPERATORS, { name: 'kube-apiserver' });
        return current?.conditions;
      })
    ).map(({ type }) => type);
    assert.deepEqual(types.sort(), [
      'Available',
      'Degraded',
      'EvaluationConditionsDetected',
      'Progressing',
      'Upgradeable',
    ]);
    assert.ok(found);
    // Of the operand nothing is said before it runs (spec 20, 6.4.5).
    const { status: told } = await engine.kube.get(CLUSTER_OPERATORS, { name: 'kube-apiserver' });
    assert.deepEqual(told?.versions, [{ name: 'raw-internal', version: '1.0.0' }]);
  });

  test('a change of the internal URL is followed without a restart of the operator', async () => {
    const infrastructure = await engine.kube.get(INFRASTRUCTURES, CLUSTER);
    const next = { ...infrastructure.status, apiServerInternalURI: 'https://moved.c.example.com' };
    await engine.kube.updateStatus(INFRASTRUCTURES, { ...infrastructure, status: next });
    await eventually(clock, async () => {
      const found = await operandSecret('internal-loadbalancer-serving-certkey');
      return found?.metadata?.annotations?.[HOSTNAMES] === 'moved.c.example.com';
    });
  });

  test('bad input becomes a condition with a reason, and the other chains go on', async () => {
    const infrastructure = await engine.kube.get(INFRASTRUCTURES, CLUSTER);
    await engine.kube.updateStatus(INFRASTRUCTURES, {
      ...infrastructure,
      status: { controlPlaneTopology: 'HighlyAvailable' },
    });
    const bad = await eventually(clock, async () => {
      const found = await conditionOf('CertRotationHostnamesDegraded');
      return found?.status === 'True' && found;
    });
    assert.match(bad.message ?? '', /apiServerURL.*is empty\n.*apiServerInternalURI.*is empty/);
    // The names that were known stay, and forcing another chain works.
    const before = await operandSecret('aggregator-client');
    await removeExpiry('aggregator-client');
    await eventually(clock, async () => {
      const now = await operandSecret('aggregator-client');
      return now?.data?.['tls.crt'] !== before?.data?.['tls.crt'] && now?.metadata?.annotations?.[NOT_AFTER];
    });
    assert.equal(
      (await operandSecret('external-loadbalancer-serving-certkey'))?.metadata?.annotations?.[HOSTNAMES],
      'api.c.example.com',
    );
    const healthy = await engine.kube.get(INFRASTRUCTURES, CLUSTER);
    await engine.kube.updateStatus(INFRASTRUCTURES, { ...healthy, status: { ...infrastructure.status } });
    await eventually(clock, async () => (await conditionOf('CertRotationHostnamesDegraded'))?.status === 'False');
  });

  test('garbage in the CA of the user is reported and changes nothing; its repair joins the bundle', async () => {
    const before = (await operand('client-ca'))?.data?.[BUNDLE_KEY];
    await engine.kube.create(CONFIG_MAPS, {
      metadata: { namespace: CONFIG_NAMESPACE, name: 'mine' },
      data: { [BUNDLE_KEY]: 'garbage' },
    });
    const apiServer = await engine.kube.get(API_SERVERS, CLUSTER);
    await engine.kube.update(API_SERVERS, { ...apiServer, spec: { clientCA: { name: 'mine' } } });
    const bad = await eventually(clock, async () => {
      const found = await conditionOf('TargetConfigControllerDegraded');
      return found?.status === 'True' && found;
    });
    assert.equal(bad.reason, 'SynchronizationError');
    assert.match(
      bad.message ?? '',
      /"configmap\/client-ca": configmap\/user-client-ca in "openshift-kube-apiserver" is malformed/,
    );
    assert.equal((await operand('client-ca'))?.data?.[BUNDLE_KEY], before);

    const ca = await authority('user CA');
    const mine = await engine.kube.get(CONFIG_MAPS, { namespace: CONFIG_NAMESPACE, name: 'mine' });
    await engine.kube.update(CONFIG_MAPS, { ...mine, data: { [BUNDLE_KEY]: encodeCertificates(ca.chain) } });
    await eventually(clock, async () =>
      (await operand('client-ca'))?.data?.[BUNDLE_KEY]?.includes(encodeCertificates(ca.chain)),
    );
    await eventually(clock, async () => (await conditionOf('TargetConfigControllerDegraded'))?.status === 'False');
  });

  test('a certificate of the user gets a slot, a place in the configuration and in the graph', async () => {
    const pair = await pairSigned('www.example.com');
    await engine.kube.create(SECRETS, {
      metadata: { namespace: CONFIG_NAMESPACE, name: 'www' },
      type: 'kubernetes.io/tls',
      data: pair,
    });
    const apiServer = await engine.kube.get(API_SERVERS, CLUSTER);
    const namedCertificates = [{ names: ['www.example.com'], servingCertificate: { name: 'www' } }];
    await engine.kube.update(API_SERVERS, {
      ...apiServer,
      spec: { ...apiServer.spec, servingCerts: { namedCertificates } },
    });
    await eventually(
      clock,
      async () => (await operandSecret('user-serving-cert-000'))?.data?.['tls.crt'] === pair['tls.crt'],
    );
    await eventually(clock, async () =>
      (await operand('config'))?.data?.['config.yaml']?.includes('user-serving-cert-000'),
    );
    const [effect] = effectOfChange(operator.trust(), secret(CONFIG_NAMESPACE, 'www'));
    assert.equal(effect?.kind, 'reload');
  });

  test('a forced signer: new CA, both in the bundle, the leaf stays with its old issuer (spec 70, 1.3)', async () => {
    const key = { namespace: OPERATOR_NAMESPACE, name: 'aggregator-client-signer' };
    const leaf = await operandSecret('aggregator-client');
    const signer = await engine.kube.get(SECRETS, key);
    const { [NOT_AFTER]: _gone, ...annotations } = signer.metadata?.annotations ?? {};
    await engine.kube.update(SECRETS, { ...signer, metadata: { ...signer.metadata, annotations } });
    await eventually(clock, async () => {
      const bundle = (await operand('aggregator-client-ca'))?.data?.[BUNDLE_KEY] ?? '';
      return readCertificates(bundle).certificates.length === 2;
    });
    assert.deepEqual((await operandSecret('aggregator-client'))?.data, leaf?.data);
  });

  test('nothing is managed while unmanaged, but certificates go on rotating (spec 20, 6.1)', async () => {
    const current = await engine.kube.get(KUBE_API_SERVERS, CLUSTER);
    await engine.kube.update(KUBE_API_SERVERS, { ...current, spec: { ...current.spec, managementState: 'Unmanaged' } });
    await eventually(clock, () => conditionOf('RevisionControllerDegraded'));
    await clock.advance(minutes(2));
    const published = (await configMap(MANAGED_NAMESPACE, 'kube-apiserver-server-ca'))?.metadata?.resourceVersion;
    const before = await operandSecret('kubelet-client');
    await removeExpiry('kubelet-client');
    await removeServerCA();
    await eventually(
      clock,
      async () => (await operandSecret('kubelet-client'))?.data?.['tls.crt'] !== before?.data?.['tls.crt'],
    );
    await clock.advance(minutes(2));
    assert.equal(await operand('kube-apiserver-server-ca'), undefined);
    assert.equal(
      (await configMap(MANAGED_NAMESPACE, 'kube-apiserver-server-ca'))?.metadata?.resourceVersion,
      published,
    );
  });

  test('metrics: when each certificate ends, old CAs marked as superseded', async () => {
    const text = await registry.metrics();
    const lines = text.split('\n').filter(line => line.startsWith('rotunda_certificate_not_after_timestamp_seconds{'));
    for (const { signer, target } of KUBE_APISERVER_CHAINS) {
      for (const { namespace, name } of [signer, target]) {
        assert.ok(
          lines.some(line => line.includes(`namespace="${namespace}",name="${name}"`)),
          name,
        );
      }
    }
    const aggregator = lines.filter(line => line.includes('name="kube-apiserver-aggregator-client-ca"'));
    const superseded = aggregator.filter(line => line.includes('superseded="true"'));
    assert.deepEqual([aggregator.length, superseded.length], [2, 1]);
    assert.match(text, /rotunda_certificate_source_up 1/);
    assert.doesNotMatch(text, /PRIVATE KEY/);
  });

  async function removeExpiry(name: string): Promise<void> {
    const found = (await operandSecret(name))!;
    const { [NOT_AFTER]: _gone, ...annotations } = found.metadata?.annotations ?? {};
    await engine.kube.update(SECRETS, { ...found, metadata: { ...found.metadata, annotations } });
  }

  function removeServerCA(): Promise<void> {
    return engine.kube.delete(CONFIG_MAPS, { namespace: OPERAND_NAMESPACE, name: 'kube-apiserver-server-ca' });
  }
});

test('a shorter day counts for every chain, for the programs on the nodes, and stands in the way of an upgrade', async t => {
  const clock = testClock();
  const engine = await startEngine({ clock });
  await prepareCluster(engine);
  await provideInputs(engine);
  const stop = new AbortController();
  const { kube } = engine;
  const deps = { kube, clock, keys: fastKeys, events: recordingEvents(), log: silentLog, program: PROGRAM };
  const running = runKubeApiserverOperator({ ...deps, keyAlgorithm: 'P-256', dayMs: minutes(1) }, stop.signal);
  t.after(async () => {
    stop.abort();
    await running;
    await engine.close();
  });
  for (const { signer, target } of KUBE_APISERVER_CHAINS) {
    for (const object of [signer, target]) {
      const secret = await eventually(clock, () => getIfPresent(kube, SECRETS, object));
      const days = Math.min(object.validityDays, signer.validityDays);
      const end = Date.parse(secret.metadata?.annotations?.[NOT_AFTER] ?? '');
      assert.ok(Math.abs(end - NOW.getTime() - minutes(days)) < minutes(1), object.name);
    }
  }
  const condition = await eventually(clock, async () => {
    const { status: current } = await kube.get(KUBE_API_SERVERS, CLUSTER);
    return current?.conditions?.find(({ type }) => type === 'CertRotationTimeUpgradeable');
  });
  assert.deepEqual([condition.status, condition.reason], ['False', 'CertRotationBaseOverridden']);
  assert.deepEqual((await kube.get(CONFIG_MAPS, ROTATION_BASE)).data, { base: '1m0s' });

  const odd = rotationBaseCondition({ data: { base: '1\u0007"' } }).message;
  assert.equal(odd, 'configmap["openshift-config"]/unsupported-cert-rotation-config .data["base"]=="1\\a\\""');

  // What somebody has set counts more than a flag, and a day of 24 hours is worth no word.
  await ensureRotationBase(kube, minutes(5));
  assert.deepEqual((await kube.get(CONFIG_MAPS, ROTATION_BASE)).data, { base: '1m0s' });
  await kube.delete(CONFIG_MAPS, ROTATION_BASE);
  await ensureRotationBase(kube, days(1));
  assert.equal(await getIfPresent(kube, CONFIG_MAPS, ROTATION_BASE), undefined);
});

async function authority(commonName: string) {
  return issueSigner({ commonName, lifetimeMs: days(365), now: NOW, keys: systemKeys, algorithm: 'P-256' });
}

async function pairSigned(name: string): Promise<Record<string, string>> {
  const signer = await authority('somebody');
  const made = await issueClient({
    signer,
    user: { name },
    lifetimeMs: days(90),
    now: NOW,
    keys: systemKeys,
    algorithm: 'P-256',
  });
  return {
    'tls.crt': Buffer.from(encodeCertificates([made.chain[0] as Certificate])).toString('base64'),
    'tls.key': Buffer.from(encodePrivateKey(made.key)).toString('base64'),
  };
}

/** What the installer and other operators put into a cluster. */
async function provideInputs({ kube }: Engine): Promise<void> {
  const [etcd, csr] = [await authority('etcd-signer'), await authority('csr-signer')];
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const bundle = (ca: Awaited<ReturnType<typeof authority>>) => ({ [BUNDLE_KEY]: encodeCertificates(ca.chain) });
  await kube.create(CONFIG_MAPS, {
    metadata: { namespace: CONFIG_NAMESPACE, name: 'etcd-serving-ca' },
    data: bundle(etcd),
  });
  await kube.create(SECRETS, {
    metadata: { namespace: CONFIG_NAMESPACE, name: 'etcd-client' },
    type: 'kubernetes.io/tls',
    data: await pairSigned('etcd-client'),
  });
  await kube.create(CONFIG_MAPS, {
    metadata: { namespace: MANAGED_NAMESPACE, name: 'csr-controller-ca' },
    data: bundle(csr),
  });
  await kube.create(CONFIG_MAPS, {
    metadata: { namespace: MANAGED_NAMESPACE, name: 'sa-token-signing-certs' },
    data: { 'service-account-001.pub': String(publicKey.export({ format: 'pem', type: 'spki' })) },
  });
  await kube.create(CONFIG_MAPS, {
    metadata: { namespace: ETCD_NAMESPACE, name: 'etcd-endpoints' },
    data: { one: '10.0.0.1' },
  });
  const node = await kube.create(NODES, {
    metadata: { name: 'master-0', labels: { 'node-role.kubernetes.io/master': '' } },
  });
  await kube.updateStatus(NODES, {
    ...node,
    status: { conditions: [{ type: 'Ready', status: 'True' }], nodeInfo: { kubeletVersion: 'v1.29.0' } as never },
  });
}
