import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, test } from 'node:test';
import type { ConfigMap, Node } from 'kubernetes-types/core/v1.d.ts';
import { readManifest } from '../../staticpod/node/manifest.ts';
import { substituteTokens } from '../../staticpod/node/tokens.ts';
import { decideCleanup } from '../cert-cleaner.ts';
import { requiredEndpoints } from '../endpoints.ts';
import { foundingEndpoints, isFoundingOnPlan } from '../founding.ts';
import { nextLearner, promotable } from '../membership.ts';
import { BOOTSTRAP_IP, FOUNDING, GRACE_START } from '../names.ts';
import { preferredFamily } from '../node-address.ts';
import { profile416, profileLater } from '../profile.ts';
import { copyRules } from '../resource-sync.ts';
import { NOW } from '../testing.ts';
import { type EnvQuestion, etcdEnv } from './env.ts';
import { parseMetricsProxyOptions } from './metrics-proxy.ts';
import { etcdPod, type PodOptions } from './pod.ts';
import { parseReadyzOptions } from './readyz.ts';

const node = (name: string, ...addresses: string[]): Node => ({
  metadata: { name },
  status: { addresses: addresses.map(address => ({ type: 'InternalIP', address })) },
});
const endpoints = (data: Record<string, string>, annotations: Record<string, string> = {}): ConfigMap => ({
  metadata: { annotations },
  data,
});

const QUESTION: EnvQuestion = {
  profile: profileLater(),
  nodeNames: ['master-0', 'master-1'],
  nodes: [node('master-0', '10.0.0.1', 'fd00::1'), node('master-1', '10.0.0.2')],
  network: undefined,
  endpoints: endpoints({ a: '10.0.0.1' }),
  allCerts: { data: { 'etcd-serving-master-0.key': 'eA==', 'etcd-serving-master-1.key': 'eA==' } },
  spec: {},
  image: 'etcd:1',
};

describe('the environment', () => {
  test('a node that is no member yet joins those who vote', () => {
    const env = etcdEnv(QUESTION);
    assert.equal(env.NODE_master_0_INITIAL_CLUSTER, 'master-0=https://10.0.0.1:2380');
    assert.equal(env.NODE_master_1_INITIAL_CLUSTER, 'master-0=https://10.0.0.1:2380,master-1=https://10.0.0.2:2380');
    assert.equal(env.ETCD_INITIAL_CLUSTER_STATE, 'existing');
    assert.equal(
      env.ETCDCTL_CACERT,
      '/etc/kubernetes/static-pod-certs/configmaps/etcd-all-bundles/server-ca-bundle.crt',
    );
  });

  test('while a cluster is founded the first node begins it, and each of the others expects those before it', () => {
    const planned = endpoints({ 'master-0': '10.0.0.1', 'master-1': '10.0.0.2' }, { [FOUNDING]: 'master-0,master-1' });
    const env = etcdEnv({ ...QUESTION, endpoints: planned });
    assert.equal(env.ETCD_INITIAL_CLUSTER_STATE, undefined);
    assert.equal(env.NODE_master_0_INITIAL_CLUSTER, 'master-0=https://10.0.0.1:2380');
    assert.equal(env.NODE_master_1_INITIAL_CLUSTER, 'master-0=https://10.0.0.1:2380,master-1=https://10.0.0.2:2380');
    assert.deepEqual(
      [env.NODE_master_0_INITIAL_CLUSTER_STATE, env.NODE_master_1_INITIAL_CLUSTER_STATE],
      ['new', 'existing'],
    );
  });

  test('addresses of the preferred family, IPv6 in brackets; the installer among the endpoints', () => {
    const network = { status: { serviceNetwork: ['fd02::/112'] } };
    const env = etcdEnv({
      ...QUESTION,
      network,
      nodeNames: ['master-0'],
      endpoints: endpoints({ a: 'fd00::1' }, { [BOOTSTRAP_IP]: 'fd00::9' }),
    });
    assert.equal(env.NODE_master_0_IP, '[fd00::1]');
    assert.equal(env.ALL_ETCD_ENDPOINTS, 'https://[fd00::1]:2379,https://[fd00::9]:2379');
    assert.equal(env.ETCDCTL_ENDPOINTS, 'https://[fd00::1]:2379');
    assert.throws(() => etcdEnv({ ...QUESTION, network }), /no matches found for ip family "tcp6" for node "master-1"/);
  });

  test('the preferred family comes from the status of the network where it says something, and only from a CIDR', () => {
    const cidr = '172.30.0.0/16';
    assert.equal(preferredFamily({ status: { serviceNetwork: [] }, spec: { serviceNetwork: ['fd02::/112'] } }), 'tcp6');
    assert.equal(
      preferredFamily({ status: { serviceNetwork: [cidr] }, spec: { serviceNetwork: ['fd02::/112'] } }),
      'tcp4',
    );
    assert.equal(preferredFamily({ spec: {} }), undefined);
    for (const bad of ['10.0.0.0', '10.0.0.0/', '10.0.0.0/33', '10.0.0.0/x', 'fd00::/129', '10.0.0.0/8/8', 'x/8'])
      assert.throws(() => preferredFamily({ spec: { serviceNetwork: [bad] } }), /expected a CIDR/, bad);
  });

  test('a quota of 0 is the quota of nobody having asked', () => {
    assert.equal(
      etcdEnv({ ...QUESTION, spec: { backendQuotaGiB: 0 } }).ETCD_QUOTA_BACKEND_BYTES,
      String(8 * 1024 ** 3),
    );
    assert.equal(
      etcdEnv({ ...QUESTION, spec: { backendQuotaGiB: 9 } }).ETCD_QUOTA_BACKEND_BYTES,
      String(9 * 1024 ** 3),
    );
  });

  test('what is missing is named', () => {
    assert.throws(() => etcdEnv({ ...QUESTION, nodeNames: [] }), /empty NodeStatuses/);
    assert.throws(() => etcdEnv({ ...QUESTION, endpoints: undefined }), /"etcd-endpoints" not found/);
    assert.throws(() => etcdEnv({ ...QUESTION, endpoints: endpoints({ a: 'x' }) }), /contains invalid ip address: x/);
    assert.throws(
      () => etcdEnv({ ...QUESTION, endpoints: endpoints({ a: '10.0.0.1' }, { [BOOTSTRAP_IP]: 'x' }) }),
      /contains invalid bootstrap ip address: x/,
    );
    assert.throws(
      () => etcdEnv({ ...QUESTION, allCerts: { data: {} } }),
      /could not find serving cert for node \[master-0\]/,
    );
    assert.throws(() => etcdEnv({ ...QUESTION, spec: { controlPlaneHardwareSpeed: 'Fast' } }), /Standard or Slower/);
    assert.doesNotThrow(() => etcdEnv({ ...QUESTION, profile: profile416(), allCerts: undefined }));
  });
});

describe('the static pod', () => {
  const options: PodOptions = {
    profile: profileLater(),
    env: etcdEnv(QUESTION),
    image: 'etcd:1',
    operatorImage: 'rotunda:1',
    command: ['rotunda'],
    logLevel: 'info',
    listenOn: 'all',
    withMetricsProxy: true,
  };
  const onNode = (pod: object) =>
    readManifest(
      substituteTokens(Buffer.from(JSON.stringify(pod)), { revision: '7', nodeName: 'master-0' }).toString(),
      'test',
    );
  const commandOf = (pod: ReturnType<typeof onNode>, name: string) =>
    pod.spec?.containers.find(container => container.name === name)?.command ?? [];

  test('names the files and the trust of its layout, and nothing is left to be filled in', () => {
    const pod = onNode(etcdPod(options));
    const etcd = commandOf(pod, 'etcd');
    const certs = '/etc/kubernetes/static-pod-certs';
    for (const flag of [
      `--cert-file=${certs}/secrets/etcd-all-certs/etcd-serving-master-0.crt`,
      `--peer-key-file=${certs}/secrets/etcd-all-certs/etcd-peer-master-0.key`,
      `--trusted-ca-file=${certs}/configmaps/etcd-all-bundles/server-ca-bundle.crt`,
      `--peer-trusted-ca-file=${certs}/configmaps/etcd-all-bundles/server-ca-bundle.crt`,
      '--client-cert-auth=true',
      '--peer-client-cert-auth=true',
      '--advertise-client-urls=https://$(NODE_master_0_IP):2379',
    ]) {
      assert.ok(etcd.includes(flag), flag);
    }
    assert.equal(pod.metadata?.labels?.revision, '7');
    assert.doesNotMatch(JSON.stringify(pod), /REVISION|NODE_NAME|NODE_ENVVAR_NAME/);
    const old = onNode(etcdPod({ ...options, profile: profile416() }));
    assert.ok(
      commandOf(old, 'etcd').includes(`--peer-trusted-ca-file=${certs}/configmaps/etcd-peer-client-ca/ca-bundle.crt`),
    );
  });

  test('the side containers understand what they are told', () => {
    const pod = onNode(etcdPod({ ...options, listenOn: 'node' }));
    const [, readyz, ...readyzFlags] = commandOf(pod, 'etcd-readyz');
    const [, proxy, ...proxyFlags] = commandOf(pod, 'etcd-metrics');
    assert.deepEqual([readyz, proxy], ['etcd-readyz', 'etcd-metrics-proxy']);
    assert.equal(parseReadyzOptions(readyzFlags).listenPort, 9980);
    assert.match(parseMetricsProxyOptions(proxyFlags).serving.clientCa ?? '', /metrics-ca-bundle.crt$/);
    assert.throws(() => parseReadyzOptions([]), /--target is required/);
    assert.throws(() => parseMetricsProxyOptions(['--nonsense=1']), /unknown flag/);
  });

  test('the container that only waits ends where it cannot, instead of trying without a pause', () => {
    const [command = '', ...args] =
      etcdPod(options).spec?.containers.find(({ name }) => name === 'etcdctl')?.command ?? [];
    const { status, signal } = spawnSync(command, args, { env: { PATH: '/nowhere' }, timeout: 60_000 });
    assert.deepEqual([status, signal], [0, null]);
  });

  test('no flag of etcd is also in its environment, which would stop it', () => {
    const etcd = etcdPod(options).spec?.containers.find(({ name }) => name === 'etcd');
    const flags = new Set(
      (etcd?.command ?? []).map(word => /^--([a-z-]+)/.exec(word)?.[1]?.toUpperCase().replaceAll('-', '_')),
    );
    const both = (etcd?.env ?? []).filter(
      ({ name }) => name.startsWith('ETCD_') && flags.has(name.slice('ETCD_'.length)),
    );
    assert.deepEqual(both, []);
    const names = (etcd?.env ?? []).map(({ name }) => name);
    assert.equal(new Set(names).size, names.length);
  });
});

describe('endpoints', () => {
  const nodes = [node('master-0', '10.0.0.1'), node('master-1', '10.0.0.2')];
  const nodeStatuses = [{ nodeName: 'master-0' }, { nodeName: 'master-1' }];
  test('the first listed node founds a cluster, and nobody else once a revision says so', () => {
    const founding = foundingEndpoints(nodes, { nodeStatuses }, undefined);
    assert.deepEqual(founding?.data, { 'master-0': '10.0.0.1', 'master-1': '10.0.0.2' });
    assert.equal(founding?.metadata?.annotations?.[FOUNDING], 'master-0,master-1');
    assert.equal(foundingEndpoints(nodes, { nodeStatuses: [] }, undefined), undefined);
    assert.equal(
      foundingEndpoints(nodes, { nodeStatuses: nodeStatuses.toReversed(), latestAvailableRevision: 1 }, founding),
      undefined,
    );
  });

  test('the founding is left alone while it goes as planned, and ends when all have their vote or it goes otherwise', () => {
    const member = (host: number, isLearner = false) => ({
      id: String(host),
      name: `master-${host - 1}`,
      isLearner,
      peerURLs: [`https://10.0.0.${host}:2380`],
      clientURLs: [],
    });
    const plan = endpoints({ 'master-0': '10.0.0.1', 'master-1': '10.0.0.2' }, { [FOUNDING]: 'master-0,master-1' });
    const cases = [
      ['only the first is a member', [member(1)], {}, true],
      ['the second has no vote yet', [member(1), member(2, true)], {}, true],
      ['all have their vote', [member(1), member(2)], {}, false],
      ['the second came first', [member(2)], {}, false],
      ['somebody else is a member', [member(1), member(9)], {}, false],
      ['a node failed', [member(1)], { lastFailedRevision: 1 }, false],
    ] as const;
    for (const [name, members, failure, expected] of cases) {
      const status = { nodeStatuses: nodeStatuses.map(entry => ({ ...entry, ...failure })) };
      assert.equal(isFoundingOnPlan(plan, members, status), expected, name);
    }
    assert.equal(isFoundingOnPlan(plan, [member(1)], { nodeStatuses: nodeStatuses.slice(1) }), false, 'a node is gone');
    assert.equal(isFoundingOnPlan(endpoints({ a: '10.0.0.1' }), [member(1)], { nodeStatuses }), false, 'no plan');
  });

  test('voters only, by the hexadecimal id of the member; the mark of the founder goes', () => {
    const member = (id: string, isLearner: boolean, name = 'x') => ({
      id,
      name,
      isLearner,
      peerURLs: [`https://10.0.0.${id}:2380`],
      clientURLs: [],
    });
    const members = [member('11', false), member('12', true), member('13', false, 'etcd-bootstrap')];
    const required = requiredEndpoints(members, endpoints({}, { [FOUNDING]: 'master-0' }), false);
    assert.deepEqual(required.data, { b: '10.0.0.11' });
    assert.deepEqual(required.metadata?.annotations, { [`${FOUNDING}-`]: '' });
    assert.throws(() => requiredEndpoints([member('12', true)], undefined, false), /no etcd members are present/);
  });
});

test('membership: one after the other, and only nodes that wait', () => {
  const candidate = {
    name: 'a',
    address: '10.0.0.1',
    isDeleting: false,
    machine: undefined,
    container: { running: true, ready: false },
  };
  assert.equal(nextLearner([{ ...candidate, isDeleting: true }, candidate], []), 'https://10.0.0.1:2380');
  const learner = { id: '1', name: 'a', peerURLs: ['https://10.0.0.1:2380'], clientURLs: [], isLearner: true };
  assert.equal(nextLearner([candidate], [learner]), undefined);
  assert.deepEqual(promotable([candidate], [learner, { ...learner, id: '2', isLearner: false }]), [learner]);
  assert.deepEqual(promotable([{ ...candidate, machine: 'missing' }], [learner]), []);
});

test('the cleaner compares whole names: a node whose name ends like another one is another one (X-5)', () => {
  const secrets = ['etcd-peer-old-master-1', 'etcd-peer-master-1', 'etcd-serving-metrics-master-1', 'etcd-client'].map(
    name => ({ metadata: { name } }),
  );
  const steps = decideCleanup(secrets, ['master-1'], NOW);
  assert.deepEqual(
    steps.map(({ do: what, secret }) => `${what} ${secret.metadata?.name}`),
    ['mark etcd-peer-old-master-1'],
  );
  const broken = decideCleanup(
    [{ metadata: { name: 'etcd-peer-gone', annotations: { [GRACE_START]: 'yesterday' } } }],
    [],
    NOW,
  );
  assert.equal(broken[0]?.do, 'report');
});

test('the later layout copies less: nothing within the namespace of etcd but the cluster configuration', () => {
  const inside = copyRules(profileLater()).filter(({ destination }) => destination.namespace === 'openshift-etcd');
  assert.deepEqual(
    inside.map(({ destination }) => destination.name),
    ['cluster-config-v1'],
  );
  assert.ok(
    copyRules(profileLater()).some(
      ({ destination }) => destination.name === 'etcd-serving-ca' && destination.namespace === 'openshift-config',
    ),
  );
});
