/** What adoption of a kubeadm cluster installs, on a real kube-apiserver: it is taken, and each account may what it has to and nothing else. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { withCertificate } from '../../src/certrotation/secret.ts';
import { install } from '../../src/cli/adopt/install.ts';
import { planAdoption } from '../../src/cli/adopt/plan.ts';
import { readRelease } from '../../src/cli/adopt/release-sight.ts';
import { readAdoption } from '../../src/cli/adopt/sight.ts';
import { GOOD_REPORT } from '../../src/cli/adopt/testing.ts';
import { undo } from '../../src/cli/adopt/undo.ts';
import { HttpKube } from '../../src/kube/client.ts';
import { days } from '../../src/kube/duration.ts';
import { KubeError } from '../../src/kube/error.ts';
import { loadAccess } from '../../src/kube/kubeconfig.ts';
import type { Kube } from '../../src/kube/port.ts';
import {
  CERTIFICATE_SIGNING_REQUESTS,
  CONFIG_MAPS,
  EVENTS,
  type KubeObject,
  LEASES,
  NODES,
  PODS,
  SECRETS,
  SERVICE_ACCOUNTS,
} from '../../src/kube/resource.ts';
import { AGENT, CONTROL_PLANE_AGENT, OPERATOR } from '../../src/kubeadm/adopt/accounts.ts';
import { POLICIES } from '../../src/kubeadm/adopt/policies.ts';
import { KUBEADM_SIGNERS } from '../../src/kubeadm/chains.ts';
import { CLUSTER_RECORD, statusOf } from '../../src/kubeadm/cluster-record.ts';
import { CLUSTER_INFO, CONTROL_PLANE_LABEL, KUBEADM_CONFIG } from '../../src/kubeadm/names.ts';
import { encodeReport, NODE_REPORT, type NodeReport } from '../../src/kubeadm/report.ts';
import { decodeWanted, wantedKey } from '../../src/kubeadm/wanted.ts';
import { createCertificateRequest, encodeCertificateRequest } from '../../src/pki/csr.ts';
import { issueSigner } from '../../src/pki/issue.ts';
import { systemKeys } from '../../src/pki/keys.ts';
import { caDigest } from '../../src/trust/receipts.ts';
import { eventuallyDespiteErrors as eventually } from '../tools/eventually.ts';
import { accountName, describeAccess, readAccesses } from './audit.ts';
import { type ControlPlane, startControlPlane } from './control-plane.ts';
import { ComponentProcess, findNeeds, MANIFESTS } from './installed.ts';
import { describeRight, needs, rightsOf } from './rights.ts';

const found = await findNeeds();
const run = promisify(execFile);
const MAIN = join(import.meta.dirname, '..', '..', 'src', 'cli', 'main.ts');
const LEASE_SECONDS = 40;
const MASTER = 'master-0';
const WORKERS = ['worker-0', 'worker-1'] as const;
const PKI = 'rotunda-pki';
const KUBELET_SIGNER = 'kubernetes.io/kube-apiserver-client-kubelet';

/** Rights of the operator that an hour without a hand-over does not need, and what needs them. */
const RESERVES: readonly (readonly [right: RegExp, why: string])[] = [
  [/^(create|delete) secrets in rotunda-pki$/, 'a hand-over: the next and the previous CA'],
  [/^update secrets in rotunda-pki$/, 'a hand-over: the CA that signs'],
  [/^delete configmaps in rotunda-pki$/, 'a node that is gone'],
  [/^list configmaps kube-root-ca.crt$/, 'a hand-over: whether every namespace has the CA'],
  [/^update configmaps cluster-info in kube-public$/, 'a hand-over'],
  [/^get secrets in rotunda-pki$/, 'before a write'],
];

describe('what adoption installs, on a real kube-apiserver', { skip: 'missing' in found && found.missing }, () => {
  let cluster: ControlPlane;
  let kube: Kube;
  const clients: HttpKube[] = [];
  const processes: ComponentProcess[] = [];
  let master: HttpKube;
  let worker: HttpKube;

  const kubectl = async (args: readonly string[], kubeconfig = cluster.kubeconfig) =>
    run('missing' in found ? '' : found.kubectl, ['--kubeconfig', kubeconfig, ...args], { maxBuffer: 1 << 26 });
  const client = async (kubeconfig: string) => {
    const made = new HttpKube(await loadAccess({ path: kubeconfig }));
    clients.push(made);
    return made;
  };
  /** As a pod of this account on this node. */
  const inPod = async (account: string, node: string): Promise<HttpKube> => {
    const name = `${account}-${node}`;
    const pod = await kube.create(PODS, {
      metadata: { namespace: 'rotunda', name },
      spec: { serviceAccountName: account, nodeName: node, containers: [{ name: 'x', image: 'x' }] },
    });
    const bound = ['--bound-object-kind=Pod', `--bound-object-name=${name}`, `--bound-object-uid=${pod.metadata?.uid}`];
    const { stdout } = await kubectl(['create', 'token', account, '-n', 'rotunda', '--duration=1h', ...bound]);
    return client(cluster.kubeconfigWithToken(name, stdout.trim()));
  };
  const apply = async () => {
    const planned = planAdoption(await readAdoption(kube), { image: 'rotunda:test' });
    assert.ok('plan' in planned, JSON.stringify(planned));
    const changes: string[] = [];
    const onChange = ({ kind, metadata }: KubeObject, what: string) => {
      changes.push(`${what} ${kind} ${metadata?.name}`);
    };
    await install(kube, planned.plan, { onChange });
    return changes;
  };

  before(async () => {
    if ('missing' in found) return;
    cluster = await startControlPlane(found.binaries, { audit: true });
    ({ kube } = cluster);
    await kube.create(CONFIG_MAPS, {
      metadata: { ...KUBEADM_CONFIG },
      data: { ClusterConfiguration: 'kind: ClusterConfiguration\nkubernetesVersion: v1.36.3\n' },
    });
    for (const name of [MASTER, ...WORKERS]) {
      const labels = { 'kubernetes.io/os': 'linux', ...(name === MASTER && { [CONTROL_PLANE_LABEL]: '' }) };
      await kube.create(NODES, { metadata: { name, labels, annotations: { 'example.com/theirs': 'stays' } } });
      await kube.patch(
        NODES,
        { name },
        { type: 'merge', body: { status: { conditions: [{ type: 'Ready', status: 'True' }] } } },
        { subresource: 'status' },
      );
    }
  });

  after(async () => {
    await Promise.all(processes.map(each => each.kill('SIGKILL')));
    await Promise.all(clients.map(each => each.close()));
    await cluster?.stop();
  });

  test('it is applied once; the same again, by us and by kubectl, changes nothing of it', async () => {
    const first = await apply();
    assert.ok(
      first.every(change => change.startsWith('created ')),
      first.join('\n'),
    );
    assert.deepEqual(await apply(), []);
    const { stderr } = await kubectl([
      'apply',
      '--server-side',
      '--dry-run=server',
      '--force-conflicts',
      '-k',
      join(MANIFESTS, 'kubeadm'),
    ]);
    assert.equal(stderr, '');
    await eventually('pods of the agents', async () => {
      const { items } = await kube.list(PODS, { namespace: 'rotunda' });
      return items.length >= 3 || undefined;
    });
  });

  test('the policies are understood: no expression of them is warned about', async () => {
    for (const name of ['rotunda-kubeadm-agents', 'rotunda-kubeadm-reports']) {
      await eventually(`${name} to be looked at`, async () => {
        const { status, metadata } = (await kube.get(POLICIES, { name })) as KubeObject & {
          status?: { observedGeneration?: number; typeChecking?: { expressionWarnings?: object[] } };
        };
        if (status?.observedGeneration !== metadata?.generation || status?.typeChecking === undefined) return undefined;
        assert.deepEqual(status.typeChecking.expressionWarnings ?? [], []);
        return true;
      });
    }
  });

  test('an agent reports on its own Node, and writes nothing else of it', async () => {
    master = await inPod(CONTROL_PLANE_AGENT, MASTER);
    worker = await inPod(AGENT, WORKERS[0]);
    // A policy holds a moment after it was made.
    await eventually('the policy to hold', async () => {
      await refused(
        worker.patch(NODES, { name: WORKERS[0] }, annotation('rotunda.dev/probe', 'x')),
        /and nothing else/,
      );
      return true;
    });
    const reports = [
      [worker, WORKERS[0]],
      [master, MASTER],
    ] as const;
    for (const [agent, name] of reports) {
      await agent.patch(NODES, { name }, annotation(NODE_REPORT, 'one'));
      await agent.patch(NODES, { name }, annotation(NODE_REPORT, 'two'));
      assert.equal((await agent.list(NODES, { fieldSelector: `metadata.name=${name}` })).items.length, 1);
      await agent.patch(NODES, { name }, annotation(NODE_REPORT, null));
      for (const other of [MASTER, ...WORKERS].filter(candidate => candidate !== name)) {
        await refused(agent.patch(NODES, { name: other }, annotation(NODE_REPORT, 'x')), /and no other/);
      }
      for (const body of [
        annotation('example.com/ours', 'x').body,
        annotation('example.com/theirs', 'other').body,
        annotation('example.com/theirs', null).body,
        annotation('rotunda.dev/hand-over-waived', 'x').body,
        { metadata: { labels: { more: 'x' }, annotations: { [NODE_REPORT]: 'x' } } },
        { metadata: { labels: { 'kubernetes.io/os': null } } },
        { metadata: { finalizers: ['example.com/stay'] } },
        { spec: { unschedulable: true } },
        { spec: { taints: [{ key: 'x', effect: 'NoSchedule' }] } },
      ]) {
        await refused(agent.patch(NODES, { name }, { type: 'merge', body }), /and nothing else/);
      }
      const status = { status: { conditions: [{ type: 'Ready', status: 'False' }] } };
      await refused(agent.patch(NODES, { name }, { type: 'merge', body: status }, { subresource: 'status' }));
      await refused(agent.delete(NODES, { name }));
    }
  });

  test('a token that no pod on a node was given writes no Node, and neither does one for another node', async () => {
    const { stdout } = await kubectl(['create', 'token', AGENT, '-n', 'rotunda', '--duration=1h']);
    const loose = await client(cluster.kubeconfigWithToken('loose', stdout.trim()));
    for (const name of [MASTER, ...WORKERS])
      await refused(loose.patch(NODES, { name }, annotation(NODE_REPORT, 'x')), /and no other/);
  });

  test('nobody else writes a report, but anybody who may write Nodes takes one away; a kubelet goes on as before', async () => {
    const name = WORKERS[0];
    await worker.patch(NODES, { name }, annotation(NODE_REPORT, 'mine'));
    const kubelet = await client(await cluster.kubeconfigOf(`system:node:${name}`, ['system:nodes']));
    for (const somebody of [kube, kubelet]) {
      await refused(somebody.patch(NODES, { name }, annotation(NODE_REPORT, 'theirs')), /only the agent/);
      await refused(
        somebody.patch(NODES, { name }, annotation(NODE_REPORT, 'theirs'), { subresource: 'status' }),
        /only the agent/,
      );
      await somebody.patch(NODES, { name }, annotation('example.com/more', 'x'));
    }
    const ready = { status: { conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady' }] } };
    await kubelet.patch(NODES, { name }, { type: 'merge', body: ready }, { subresource: 'status' });
    await refused(
      kube.create(NODES, { metadata: { name: 'new', annotations: { [NODE_REPORT]: 'x' } } }),
      /only the agent/,
    );
    await kube.create(NODES, { metadata: { name: 'new' } });
    await kube.delete(NODES, { name: 'new' });
    await kube.patch(NODES, { name }, annotation(NODE_REPORT, null));
  });

  test('what agents read and write beside it is what they need', async () => {
    const key = wantedKey(WORKERS[0]);
    await kube.create(CONFIG_MAPS, { metadata: key });
    for (const agent of [master, worker]) {
      await agent.list(CONFIG_MAPS, { namespace: PKI, fieldSelector: `metadata.name=${key.name}` });
      await agent.get(CONFIG_MAPS, CLUSTER_RECORD);
      await agent.list(PODS, { namespace: 'kube-system', fieldSelector: `spec.nodeName=${MASTER}` });
      await missing(agent.get(LEASES, { namespace: 'kube-node-lease', name: MASTER }));
      await agent.create(EVENTS, eventAbout(MASTER));
      await refused(agent.update(CONFIG_MAPS, { metadata: key, data: { 'wanted.json': '{}' } }));
      await refused(agent.create(CONFIG_MAPS, { metadata: { namespace: PKI, name: 'x' } }));
      await refused(agent.list(CONFIG_MAPS, { namespace: 'kube-system' }));
      await refused(agent.list(PODS, {}));
      for (const namespace of [undefined, 'kube-system', 'default', 'rotunda', PKI])
        await refused(agent.list(SECRETS, { namespace }));
      await refused(agent.list(SERVICE_ACCOUNTS, { namespace: 'rotunda' }));
    }
    await kube.delete(CONFIG_MAPS, key);
    const secret = { namespace: PKI, name: 'probe' };
    await refused(worker.get(SECRETS, secret));
    await refused(worker.create(SECRETS, { metadata: secret }));
    await master.create(SECRETS, { metadata: secret });
    await master.get(SECRETS, secret);
    await refused(master.update(SECRETS, { metadata: secret, data: {} }));
    await refused(master.delete(SECRETS, secret));
    await refused(master.get(SECRETS, { namespace: 'kube-system', name: 'x' }));
    await kube.delete(SECRETS, secret);
  });

  test('the operator does its work with its rights, and holds none without a reason', async () => {
    // CAs as kubeadm made them, copied by the agent.
    const digests = new Map<string, string>();
    const pairs = await Promise.all(
      KUBEADM_SIGNERS.map(async ({ name, commonName, validityDays }) => {
        const common = {
          keys: systemKeys,
          now: new Date(),
          lifetimeMs: days(validityDays),
          algorithm: 'P-256',
        } as const;
        const pair = await issueSigner({ ...common, commonName });
        digests.set(name, caDigest(pair.chain[0]!));
        return { name, pair };
      }),
    );
    const digest = (name: string) => digests.get(name) as string;
    const report = (done: string | undefined): NodeReport => ({
      ...GOOD_REPORT,
      done,
      signers: Object.fromEntries(
        KUBEADM_SIGNERS.map(({ name }) => [name, { cas: [digest(name)], key: 'fits' as const }]),
      ),
      signing: { ca: digest('ca'), isSeparate: false },
    });
    const tell = (done: string | undefined) =>
      master.patch(NODES, { name: MASTER }, annotation(NODE_REPORT, encodeReport(report(done))));
    await kube.create(CONFIG_MAPS, {
      metadata: { ...CLUSTER_INFO },
      data: { kubeconfig: 'kind: Config\napiVersion: v1\nclusters: []\n' },
    });
    const account = { namespace: 'rotunda', name: OPERATOR };
    const { stdout } = await kubectl(['create', 'token', OPERATOR, '-n', 'rotunda', '--duration=1h']);
    const kubeconfig = cluster.kubeconfigWithToken('operator', stdout.trim());
    const { items: pods } = await kube.list(PODS, { namespace: 'rotunda', labelSelector: `app=${OPERATOR}` });
    const env = { POD_NAME: pods[0]?.metadata?.name ?? '' };
    const quick = `--leader-elect-lease-duration ${LEASE_SECONDS}s --leader-elect-renew-deadline 30s --leader-elect-retry-period 1s`;
    processes.push(
      new ComponentProcess(
        join(cluster.dir, 'operator.log'),
        [MAIN, OPERATOR, '--kubeconfig', kubeconfig, ...quick.split(' ')],
        env,
      ),
    );
    const status = async () => statusOf(await kube.get(CONFIG_MAPS, CLUSTER_RECORD));
    const detail = () => processes.map(({ log }) => log.slice(-3000)).join('\n');
    await eventually('differences', async () => (await status())?.differences.length || undefined, detail);
    await tell(undefined);
    const asked = async () => {
      const { items } = await kube.list(CONFIG_MAPS, { namespace: PKI });
      return decodeWanted(items.find(({ metadata }) => metadata?.name === wantedKey(MASTER).name));
    };
    const { publishes } = await eventually('the CAs to be asked for', asked, detail);
    assert.equal(publishes.length, KUBEADM_SIGNERS.length);
    for (const { name, pair } of pairs) {
      const bare = { metadata: { namespace: PKI, name }, type: 'kubernetes.io/tls' };
      await master.create(SECRETS, withCertificate(bare, pair, 'signer', days(2920)));
    }
    const settled = async () => {
      const now = await status();
      if (now?.adopted && now.round === undefined) return true;
      // Between two of the Secrets it may have asked once more.
      await tell((await asked())?.round);
      return undefined;
    };
    await eventually('the cluster to be adopted', settled, detail);
    // A kubelet whose certificate has ended: its agent asks, the operator approves.
    const request = async (name: string, node: string) => {
      const algorithm = await systemKeys.generate('P-256');
      const text = encodeCertificateRequest(
        await createCertificateRequest({
          keys: systemKeys,
          key: algorithm,
          subject: { commonName: `system:node:${node}`, organizations: ['system:nodes'] },
        }),
      );
      return worker.create(CERTIFICATE_SIGNING_REQUESTS, {
        metadata: { name },
        spec: {
          request: Buffer.from(text).toString('base64'),
          signerName: KUBELET_SIGNER,
          usages: ['digital signature', 'client auth'],
        },
      });
    };
    await request('own', WORKERS[0]);
    await request('other', WORKERS[1]);
    const verdict = (name: string) =>
      eventually(
        `a verdict on ${name}`,
        async () => (await worker.get(CERTIFICATE_SIGNING_REQUESTS, { name })).status?.conditions?.[0]?.type,
        detail,
      );
    assert.equal(await verdict('own'), 'Approved');
    assert.equal(await verdict('other'), 'Denied');
    await refused(
      master.create(CERTIFICATE_SIGNING_REQUESTS, {
        metadata: { name: 'm' },
        spec: { request: '', signerName: KUBELET_SIGNER },
      }),
    );

    const accesses = readAccesses(cluster.auditLog as string, accountName(account));
    assert.deepEqual([...new Set(accesses.filter(({ code }) => code === 403).map(describeAccess))], []);
    const rights = await rightsOf(kube, account);
    const unused = rights
      .filter(({ group, resource }) => group === '' && ['secrets', 'configmaps', 'nodes', 'pods'].includes(resource))
      .filter(right => !accesses.some(access => needs(access, right)))
      .map(describeRight);
    assert.deepEqual(
      unused.filter(right => !RESERVES.some(([pattern]) => pattern.test(right))),
      [],
    );
    assert.deepEqual(
      RESERVES.filter(([pattern]) => !rights.some(right => pattern.test(describeRight(right)))).map(([, why]) => why),
      [],
    );
  });

  test('the operator approves for no other signer, reads no Secret of others, and writes no role', async () => {
    const { stdout } = await kubectl(['create', 'token', OPERATOR, '-n', 'rotunda', '--duration=1h']);
    const operator = await client(cluster.kubeconfigWithToken('operator-2', stdout.trim()));
    for (const namespace of [undefined, 'kube-system', 'default', 'rotunda'])
      await refused(operator.list(SECRETS, { namespace }));
    await refused(operator.patch(NODES, { name: MASTER }, annotation('example.com/a', 'b')));
    await refused(operator.list(CONFIG_MAPS, { namespace: 'kube-system' }));
    const key = { kind: 'ClusterRole', verbs: ['create', 'update', 'patch', 'bind', 'escalate'] };
    const dangerous = (await rightsOf(kube, { namespace: 'rotunda', name: OPERATOR })).filter(
      ({ group, verb }) => group === 'rbac.authorization.k8s.io' && key.verbs.includes(verb),
    );
    assert.deepEqual(dangerous, []);
    const client_ = await kube.create(CERTIFICATE_SIGNING_REQUESTS, {
      metadata: { name: 'people' },
      spec: {
        ...(await kube.get(CERTIFICATE_SIGNING_REQUESTS, { name: 'own' })).spec,
        signerName: 'kubernetes.io/kube-apiserver-client',
        usages: ['client auth'],
        username: undefined as never,
        uid: undefined as never,
        groups: undefined as never,
        extra: undefined as never,
      },
    });
    const condition = { type: 'Approved', status: 'True', reason: 'x', message: 'x' };
    await refused(
      operator.patch(
        CERTIFICATE_SIGNING_REQUESTS,
        { name: client_.metadata?.name ?? '' },
        { type: 'merge', body: { status: { conditions: [condition] } } },
        { subresource: 'approval' },
      ),
    );
  });

  test('release takes all of it away', async () => {
    await Promise.all(processes.map(each => each.kill('SIGTERM')));
    // There are no kubelets here that would end pods.
    const conditions = [{ type: 'Ready', status: 'Unknown' }];
    for (const name of [MASTER, ...WORKERS])
      await kube.patch(NODES, { name }, { type: 'merge', body: { status: { conditions } } }, { subresource: 'status' });
    const ending = setInterval(() => void endPods(kube), 500);
    try {
      await undo(kube, { timeoutMs: 300_000, onProgress: () => undefined });
    } finally {
      clearInterval(ending);
    }
    const { present, noted } = await readRelease(kube);
    assert.deepEqual([present, noted], [[], []]);
    const { metadata } = await kube.get(NODES, { name: MASTER });
    assert.equal(metadata?.annotations?.['example.com/theirs'], 'stays');
  });
});

/** As a kubelet does with a pod that is to end. */
async function endPods(kube: Kube): Promise<void> {
  const { items } = await kube.list(PODS, { namespace: 'rotunda' }).catch(() => ({ items: [] }));
  for (const { metadata } of items.filter(({ metadata }) => metadata?.deletionTimestamp !== undefined))
    await kube
      .delete(PODS, { namespace: 'rotunda', name: metadata?.name ?? '' }, { gracePeriodSeconds: 0 })
      .catch(() => undefined);
}

function annotation(name: string, value: string | null) {
  return { type: 'merge', body: { metadata: { annotations: { [name]: value } } } } as const;
}

async function refused(attempt: Promise<unknown>, why = /./): Promise<void> {
  await assert.rejects(attempt, error => {
    assert.ok(error instanceof KubeError, String(error));
    // Roles answer 403, policies 422.
    assert.ok(error.code === 403 || error.code === 422, `${error.code} ${error.message}`);
    assert.match(error.message, why);
    return true;
  });
}

async function missing(attempt: Promise<unknown>): Promise<void> {
  await assert.rejects(attempt, error => error instanceof KubeError && error.code === 404);
}

function eventAbout(node: string) {
  return {
    metadata: { namespace: 'default', generateName: 'rotunda-' },
    involvedObject: { kind: 'Node', name: node },
    reason: 'Test',
    message: 'x',
    type: 'Normal',
  };
}
