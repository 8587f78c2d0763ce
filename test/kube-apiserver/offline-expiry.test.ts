/**
 * A cluster that stood still for more than a year: leaves and signers have ended, only what lives for ten years has not. The node
 * is started without the operator, and its regeneration controller brings the API back (spec 20, 5.2). The operator of the past is
 * the real one with a clock that is behind.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startApi } from '../../src/api/api.ts';
import { NOT_AFTER } from '../../src/certrotation/annotations.ts';
import { silentLog } from '../../src/controller/log.ts';
import { type Clock, systemClock } from '../../src/kube/clock.ts';
import { days, hours } from '../../src/kube/duration.ts';
import { recordingEvents } from '../../src/kube/events.ts';
import { CONFIG_MAPS, EVENTS, LEASES, NAMESPACES, SECRETS } from '../../src/kube/resource.ts';
import { KUBE_APISERVER_CHAINS, type ObjectName } from '../../src/kube-apiserver/chains.ts';
import { CLIENT_CA } from '../../src/kube-apiserver/combined-bundles.ts';
import { OPERAND_NAMESPACE } from '../../src/kube-apiserver/namespaces.ts';
import { runKubeApiserverOperator } from '../../src/kube-apiserver/operator.ts';
import { REGENERATION_LEASE } from '../../src/kube-apiserver/programs/cert-regeneration.ts';
import type { LocalNode } from '../../src/local/node.ts';
import type { ClusterPart } from '../../src/local/part.ts';
import { systemKeys } from '../../src/pki/keys.ts';
import { eventually, loadedOn, partThatIsDone, startTestCluster, statusOf } from './cluster.ts';
import { type Edges, type Foreigners, issueForeigners, startEdges } from './edges.ts';

const OFFLINE_MS = days(400);
const DECADE_DAYS = 3650;

/** Everything about the recovery path lives for ten years, and there the side containers go. */
const isRecoveryPath = (edge: string) => edge.includes('recovery path');
/** What hangs on copies, which only the operator makes. */
const NEEDS_OPERATOR = [/aggregated/, /front proxies/, /to kubelets/, /^node administrators/];

const past: Clock = {
  ...systemClock,
  now: () => new Date(Date.now() - OFFLINE_MS),
  until: (at, signal) => systemClock.until(new Date(at.getTime() + OFFLINE_MS), signal),
};

let cluster: Awaited<ReturnType<typeof startTestCluster>>;
let node: LocalNode;
let foreigners: Foreigners;
let edges: Edges;

before(async () => {
  cluster = await startTestCluster({ controlPlane: 1, parts: [nobodyRegenerates(), operatorOf(past)] });
  [node] = cluster.controlPlane as [LocalNode];
  foreigners = await issueForeigners(cluster);
  await eventually('the node serves the latest revision', async () => {
    const { latestAvailableRevision = 0, nodeStatuses = [] } = await statusOf(cluster);
    return latestAvailableRevision > 0 && nodeStatuses[0]?.currentRevision === latestAvailableRevision;
  });
  edges = await startEdges(cluster, foreigners);
});
after(async () => {
  await edges?.stop();
  await cluster?.stop();
});

test('all is over: only the recovery path can still be used', async () => {
  const reports = await probed();
  for (const { edge, accepted, refused } of reports) {
    assert.deepEqual([edge, accepted, refused], isRecoveryPath(edge) ? [edge, 1, 0] : [edge, 0, 1]);
  }
  for (const { signer, target } of KUBE_APISERVER_CHAINS) {
    for (const { validityDays, ...name } of [signer, target]) {
      if (validityDays < DECADE_DAYS) assert.ok((await endOf(name)) < new Date(), name.name);
    }
  }
});

test('everything is stopped, and the node is started again: the API is back without the operator', async t => {
  await edges.stop();
  await cluster.close();
  const api = await startApi({ dir: cluster.dir });
  await api.kube.delete(LEASES, REGENERATION_LEASE);
  await api.close();
  cluster = await startTestCluster({ dir: cluster.dir, controlPlane: 1, parts: [] });
  [node] = cluster.controlPlane as [LocalNode];
  const { pid } = await eventually('the server is up, with what it has', () => loadedOn(node));
  edges = await startEdges(cluster, foreigners);

  const reports = await eventually('clients and server accept each other', async () => {
    const found = await probed();
    const missing = found.filter(({ edge, accepted }) => accepted === 0 && !needsOperator(edge));
    if (missing.length > 0) throw new Error(JSON.stringify(missing));
    return found;
  });
  t.diagnostic(
    `${reports.filter(({ accepted }) => accepted > 0).length} of ${reports.length} edges without the operator`,
  );
  assert.equal((await loadedOn(node)).pid, pid, 'all of that by reloading');
});

test('it came in this order: signer, bundle, leaf; then the client CA; then its file', async () => {
  for (const { signer, bundle, target } of KUBE_APISERVER_CHAINS) {
    if (signer.validityDays >= DECADE_DAYS) continue;
    const made = [
      await versionOf(SECRETS, signer),
      await versionOf(CONFIG_MAPS, bundle),
      await versionOf(SECRETS, target),
    ];
    assert.deepEqual(
      made,
      made.toSorted((a, b) => a - b),
      target.name,
    );
    assert.ok(made[1]! < (await versionOf(CONFIG_MAPS, CLIENT_CA.destination)) || bundle.name.includes('aggregator'));
  }
  const { items } = await cluster.kube.list(EVENTS, { namespace: OPERAND_NAMESPACE });
  const written = items.filter(({ message }) => message?.endsWith(`${OPERAND_NAMESPACE}/client-ca`)).at(-1);
  assert.equal(written?.reason, 'CertificateUpdated');
  assert.ok(Number(written?.metadata.resourceVersion) > (await versionOf(CONFIG_MAPS, CLIENT_CA.destination)));
});

test('at last the operator works again, and every edge is well', async t => {
  const stop = new AbortController();
  const operator = runKubeApiserverOperator(operatorDeps(systemClock), stop.signal);
  t.after(async () => {
    stop.abort();
    await operator;
  });
  await eventually('every edge is well', async () => {
    const missing = (await probed()).filter(({ accepted }) => accepted === 0);
    if (missing.length > 0) throw new Error(JSON.stringify(missing));
    return true;
  });
});

async function probed() {
  const prober = edges.newProber();
  await prober.probe();
  return prober.snapshot().edges;
}

function needsOperator(edge: string): boolean {
  return NEEDS_OPERATOR.some(pattern => pattern.test(edge));
}

async function endOf(name: ObjectName): Promise<Date> {
  return new Date((await cluster.kube.get(SECRETS, name)).metadata?.annotations?.[NOT_AFTER] ?? '');
}

/** The embedded API counts its writes: a larger number is a later write. */
async function versionOf(resource: typeof SECRETS | typeof CONFIG_MAPS, name: ObjectName): Promise<number> {
  const { metadata } = await cluster.kube.get(resource as typeof SECRETS, name);
  return Number(metadata?.resourceVersion);
}

/** Takes the place of the leader among the regeneration controllers: in the past, nothing was expired. */
function nobodyRegenerates(): ClusterPart {
  return {
    name: 'no-regeneration',
    async start({ kube, signal }) {
      const { namespace } = REGENERATION_LEASE;
      await kube.create(NAMESPACES, { metadata: { name: namespace } });
      const now = new Date().toISOString().replace('Z', '000Z');
      await kube.create(LEASES, {
        metadata: REGENERATION_LEASE,
        spec: { holderIdentity: 'nobody', leaseDurationSeconds: hours(1) / 1000, acquireTime: now, renewTime: now },
      });
      return partThatIsDone(signal);
    },
  };
}

function operatorOf(clock: Clock): ClusterPart {
  return {
    name: 'kube-apiserver',
    start: async ({ kube, signal }) => ({
      ended: runKubeApiserverOperator({ ...operatorDeps(clock), kube }, signal),
      state: () => ({ ready: true, text: '' }),
    }),
  };
}

function operatorDeps(clock: Clock): Parameters<typeof runKubeApiserverOperator>[0] {
  const program = {
    flavor: 'kubernetes',
    image: 'kube-apiserver',
    operatorImage: 'rotunda',
    operatorCommand: ['rotunda'],
    version: '0.0.0',
  } as const;
  const { kube } = cluster ?? {};
  const events = recordingEvents();
  return { kube, clock, keys: systemKeys, events, log: silentLog, program, keyAlgorithm: 'P-256', minReadyMs: 0 };
}
