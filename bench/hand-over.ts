/**
 * How long does it take until a new signer has signed everything, with everybody ready? Three control-plane nodes and five kubelets, real
 * processes on local nodes (etcd itself where it is installed), days of 24 hours: each signer is asked for anew by itself, once by receipts.
 * Beside it what the clock takes, by its rule: a leaf of a new signer is made a tenth of the leaf's refresh time after the signer at the
 * earliest (spec 10, T-8). etcd has no such rule in any mode: its leaves wait for a roll-out. `npm run bench -- hand-over etcd` measures only
 * signers with that in their name.
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { NOT_AFTER } from '../src/certrotation/annotations.ts';
import { loadSecret } from '../src/certrotation/secret.ts';
import { JOIN_SIGNER } from '../src/cli/certificates/join-ca.ts';
import type { Outcome } from '../src/cli/certificates/outcome.ts';
import { handServerOver, serverNames, serverUnit } from '../src/cli/certificates/server-hand-over.ts';
import { KUBELET_CAS_RECORD } from '../src/daemon/certificates/paths.ts';
import { FAMILY_TABLE } from '../src/etcd/cert-table.ts';
import { ALL_CERTS, ETCD_NAMESPACE, CONFIG_NAMESPACE as SIGNERS_IN_USE } from '../src/etcd/names.ts';
import { ETCDS } from '../src/etcd/resources.ts';
import { days, formatGoDuration } from '../src/kube/duration.ts';
import type { Kube } from '../src/kube/port.ts';
import { NODES, type Resource, SECRETS } from '../src/kube/resource.ts';
import { KUBE_APISERVER_CHAINS, type ObjectName, signersOf } from '../src/kube-apiserver/chains.ts';
import { CLUSTER, KUBE_API_SERVERS } from '../src/kube-apiserver/resources.ts';
import { type LocalCluster, startLocalCluster } from '../src/local/cluster.ts';
import { certificatesIn } from '../src/pki/pem.ts';
import type { StaticPodOperatorResource } from '../src/staticpod/operator.ts';

const LOOK_MS = 50;
/** What one hand-over leaves to be done is over when nothing has moved for so long. */
const SETTLE_MS = 15_000;
/** A hand-over that restarts nothing is to be done by then (issue 15). */
const WITHOUT_RESTART_MS = 10_000;
const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms));

/** One signer with what it signs. */
interface Measured {
  readonly name: string;
  /** What the clock takes. */
  readonly byTheClock: string;
  readonly clockMs?: number;
  begin(): Promise<unknown>;
  /** The name of the signer in use. */
  inUse(): Promise<string | undefined>;
  /** The names of those who have signed what is in use. */
  issuers(): Promise<readonly (string | undefined)[]>;
}

export async function bench([part = '']: string[] = []): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'rotunda-bench-'));
  const cluster = await startLocalCluster({
    dir,
    controlPlane: 3,
    workers: 2,
    keyAlgorithm: 'P-256',
    programs: { useRealBinaries: ['etcd'] },
  });
  try {
    await cluster.ready();
    await pause(SETTLE_MS);
    console.log(`stand-ins: ${cluster.standIns.join(', ') || 'none'}; load ${load()}`);
    const head = [
      'signer'.padEnd(36),
      'signs after',
      'all signed',
      'by the clock'.padStart(12),
      '  ratio',
      ' restarts',
    ];
    console.log(head.join('  '));
    const { kube } = cluster;
    // The first CA of the machine-config server is made at once: there is none to hand over from.
    await runServerCommand(kube);
    const signers = [...ofKubeApiserver(kube), ...ofEtcd(kube), ofMachineConfigServer(kube)];
    for (const signer of signers.filter(({ name }) => name.includes(part))) await measure(cluster, signer);
    console.log(`load ${load()}`);
  } finally {
    await cluster.close();
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function measure(cluster: LocalCluster, signer: Measured): Promise<void> {
  const before = await signer.inUse();
  const state = await standOf(cluster);
  const begun = performance.now();
  const begin = signer.begin();
  let current = before;
  while (current === before) {
    await pause(LOOK_MS);
    current = await signer.inUse();
  }
  const distributedMs = performance.now() - begun;
  while (!(await signer.issuers()).every(issuer => issuer === current)) await pause(LOOK_MS);
  const signedMs = performance.now() - begun;
  await begin;
  await settled(cluster);
  const restarts = restartsBetween(state, await standOf(cluster));
  const ratio = signer.clockMs === undefined ? '-' : `${Math.round(signer.clockMs / signedMs)}x`;
  const isLate = restarts.length === 0 && signedMs > WITHOUT_RESTART_MS;
  console.log(
    [
      signer.name.padEnd(36),
      seconds(distributedMs).padStart(11),
      seconds(signedMs).padStart(10),
      signer.byTheClock.padStart(12),
      ratio.padStart(7),
      ` ${restarts.join(', ') || 'nothing'}${isLate ? `  TOO LONG, with load ${load()}` : ''}`,
    ].join('  '),
  );
}

function ofKubeApiserver(kube: Kube): Measured[] {
  return signersOf(KUBE_APISERVER_CHAINS).map(({ signer, chains }) => {
    const clockMs = Math.min(...chains.map(({ target }) => (target.refreshDays * days(1)) / 10));
    return {
      name: signer.name,
      byTheClock: formatGoDuration(clockMs),
      clockMs,
      begin: () => force(kube, signer),
      inUse: async () => (await certificateOf(kube, signer))?.subject.commonName,
      issuers: () =>
        Promise.all(chains.map(async ({ target }) => (await certificateOf(kube, target))?.issuer.commonName)),
    };
  });
}

function ofEtcd(kube: Kube): Measured[] {
  return (['server', 'metrics'] as const).map(family => {
    const { signer: name } = FAMILY_TABLE[family];
    const isOfFamily = (file: string) => file.endsWith('.crt') && file.includes('-metrics') === (family === 'metrics');
    return {
      name,
      byTheClock: 'no rule',
      begin: () => force(kube, { namespace: ETCD_NAMESPACE, name }),
      inUse: async () => (await certificateOf(kube, { namespace: SIGNERS_IN_USE, name }))?.subject.commonName,
      issuers: async () => {
        const { data = {} } = await kube.get(SECRETS, { namespace: ETCD_NAMESPACE, name: ALL_CERTS });
        return Object.entries(data)
          .filter(([file]) => isOfFamily(file))
          .map(([, text]) => certificatesIn(Buffer.from(text, 'base64').toString('latin1'))[0]?.issuer.commonName);
      },
    };
  });
}

/** Whose command is run once; nobody is on the way to join. */
function ofMachineConfigServer(kube: Kube): Measured {
  const unit = async () => serverUnit(await serverNames(kube));
  return {
    name: 'machine-config-server-ca',
    byTheClock: 'no rule',
    begin: async () => {
      await force(kube, JOIN_SIGNER);
      await runServerCommand(kube);
    },
    inUse: async () => (await certificateOf(kube, JOIN_SIGNER))?.subject.commonName,
    issuers: async () => [(await certificateOf(kube, (await unit()).target))?.issuer.commonName],
  };
}

async function runServerCommand(kube: Kube): Promise<void> {
  const outcomes: Outcome[] = [];
  await handServerOver(kube, { unit: serverUnit(await serverNames(kube)), updateIgnition: true }, outcomes);
}

async function certificateOf(kube: Kube, { namespace, name }: ObjectName) {
  const found = await kube.get(SECRETS, { namespace, name }).catch((): Secret | undefined => undefined);
  return found && loadSecret(found).chain[0];
}

function force(kube: Kube, { namespace, name }: ObjectName): Promise<unknown> {
  const body = { metadata: { annotations: { [NOT_AFTER]: 'force-regeneration' } } };
  return kube.patch(SECRETS, { namespace, name }, { type: 'merge', body });
}

/** What tells that something was restarted. */
interface Stand {
  readonly servers: number;
  readonly members: number;
  /** When the agent of a node last noted with which CAs its kubelet was started. */
  readonly kubelets: readonly number[];
}

async function standOf({ kube, nodes }: LocalCluster): Promise<Stand> {
  const revision = async (resource: Resource<StaticPodOperatorResource>) =>
    (await kube.get(resource, CLUSTER)).status?.latestAvailableRevision ?? 0;
  const kubelets = nodes.map(
    ({ root }) => statSync(join(root, KUBELET_CAS_RECORD), { throwIfNoEntry: false })?.mtimeMs ?? 0,
  );
  return { servers: await revision(KUBE_API_SERVERS), members: await revision(ETCDS), kubelets };
}

function restartsBetween(before: Stand, after: Stand): string[] {
  const times = (count: number, what: string) => (count === 0 ? [] : [count === 1 ? what : `${what} ${count} times`]);
  const kubelets = after.kubelets.filter((at, index) => at !== before.kubelets[index]).length;
  return [
    ...times(after.servers - before.servers, 'kube-apiserver'),
    ...times(after.members - before.members, 'etcd'),
    ...(kubelets === 0 ? [] : [`${kubelets} kubelets`]),
  ];
}

/** Roll-outs are over, nodes are as they are to be. */
async function settled({ kube }: LocalCluster): Promise<void> {
  const standing = async () => {
    const operators = await Promise.all(
      [KUBE_API_SERVERS, ETCDS].map((resource: Resource<StaticPodOperatorResource>) => kube.get(resource, CLUSTER)),
    );
    const isDone = operators.every(({ status }) =>
      status?.nodeStatuses?.every(({ currentRevision }) => currentRevision === (status.latestAvailableRevision ?? 0)),
    );
    const { items } = await kube.list(NODES);
    const said = items.map(({ metadata }) => metadata?.annotations?.['rotunda.dev/receipts']).join();
    return isDone ? said : undefined;
  };
  for (let [last, since] = [await standing(), performance.now()]; ; await pause(LOOK_MS)) {
    const now = await standing();
    if (now === undefined || now !== last) [last, since] = [now, performance.now()];
    else if (performance.now() - since > SETTLE_MS) return;
  }
}

function load(): string {
  return loadavg()[0]?.toFixed(1) ?? '';
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
