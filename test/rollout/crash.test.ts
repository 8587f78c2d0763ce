import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { after, test } from 'node:test';
import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { CONFIG_MAPS, PODS } from '../../src/kube/resource.ts';
import { killProcess } from '../../src/local/process.ts';
import { RESOURCE_DIRECTORY } from '../../src/staticpod/config.ts';
import { protectedRevisions } from '../../src/staticpod/prune/protect.ts';
import { isRevisionStatus, revisionOfStatus } from '../../src/staticpod/revision/number.ts';
import { seeded, shuffledForever } from '../informer/seeded.ts';
import { eventually } from '../tools/eventually.ts';
import { Cluster, REVISION_LIMITS } from './cluster.ts';
import { NAMESPACE, POD_CONFIG_MAP, REVISIONED_SECRET } from './operand.ts';
import { Witness } from './witness.ts';

/** How often something is killed; `ROTUNDA_CRASH_POINTS=50` for the long run. */
const POINTS = Number(process.env.ROTUNDA_CRASH_POINTS ?? 12);
const SEED = Number(process.env.ROTUNDA_CRASH_SEED ?? 1);
/** Most of a run is waiting: an installer that died is tried again after 15 s. So several clusters crash side by side. */
const CLUSTERS = 2;
const KILLS_A_ROLLOUT = 4;
/** About as long as a roll-out, an installer and the absence of a process take. */
const ROLLOUT_MS = 3000;
const INSTALLER_MS = 500;
const ABSENCE_MS = 400;

type Victim = 'operator' | 'supervisor' | 'installer';
const VICTIMS: readonly Victim[] = ['operator', 'installer', 'supervisor'];

const clusters: Cluster[] = [];
after(() => Promise.all(clusters.map(cluster => cluster.stop())));

test(`${POINTS} times kill -9 in the middle of roll-outs: always the same end, never a gap`, async t => {
  let left = POINTS;
  const ends: { why: string; state: object }[] = [];
  const kills: string[] = [];
  const runs = Array.from({ length: CLUSTERS }, async (_, index) => {
    const cluster = await Cluster.start();
    clusters.push(cluster);
    const random = seeded(SEED * 1000 + index);
    const nextVictim = shuffledForever(random, VICTIMS);
    const witness = new Witness(cluster);
    // The first one shows how it ends when nobody is killed.
    let isUndisturbed = index === 0;
    for (let revision = 2; left > 0; revision++) {
      const data = await cluster.changeRevisioned();
      const killed: string[] = [];
      while (!isUndisturbed && left > 0 && killed.length < KILLS_A_ROLLOUT && !isRolledOut(cluster, revision)) {
        left--;
        const victim = nextVictim();
        const was = await killDuring(cluster, victim, revision, random);
        if (was === undefined) left++;
        else killed.push(was);
      }
      isUndisturbed = false;
      const why = `seed ${SEED}, cluster ${index}, revision ${revision}, killed: ${killed.join(', ') || 'nobody'}`;
      assert.equal(await cluster.converged(revision), revision, why);
      ends.push({ why, state: await finalState(cluster, revision) });
      for (const node of cluster.nodes) {
        const path = cluster.revisionPath(node, revision, `secrets/${REVISIONED_SECRET}/tls.key`);
        assert.equal(readFileSync(path, 'utf8'), Buffer.from(data['tls.key'] ?? '', 'base64').toString(), why);
      }
      kills.push(...killed);
      t.diagnostic(why);
    }
    assert.deepEqual(await witness.end(), [], `seed ${SEED}, cluster ${index}`);
  });
  const failing = runs.map(run =>
    run.catch((error: unknown) => {
      // The others need not go on.
      left = 0;
      throw error;
    }),
  );
  for (const run of await Promise.allSettled(failing)) if (run.status === 'rejected') throw run.reason;
  const undisturbed = ends.find(({ why }) => why.endsWith('nobody'))?.state;
  for (const { state, why } of ends) assert.deepEqual(state, undisturbed, why);
  assert.equal(kills.length, POINTS);
});

/** Kills at a random moment and brings back what was killed. Undefined: the roll-out was over before. */
async function killDuring(
  cluster: Cluster,
  victim: Victim,
  revision: number,
  random: () => number,
): Promise<string | undefined> {
  const begun = performance.now();
  if (victim === 'installer') {
    const pid = await eventually(
      'an installer runs',
      () => cluster.installers()[0] ?? (isRolledOut(cluster, revision) ? 0 : undefined),
    );
    await pause(random() * INSTALLER_MS);
    if (pid === 0 || !cluster.installers().includes(pid)) return undefined;
    killProcess(pid);
    return `installer ${pid} after ${Math.round(performance.now() - begun)} ms`;
  }
  await pause(random() * ROLLOUT_MS);
  if (isRolledOut(cluster, revision)) return undefined;
  await cluster.kill(victim);
  const afterMs = Math.round(performance.now() - begun);
  await pause(random() * ABSENCE_MS);
  if (victim === 'operator') cluster.startOperator();
  else await cluster.startSupervisor();
  return `${victim} after ${afterMs} ms`;
}

function isRolledOut(cluster: Cluster, revision: number): boolean {
  return cluster.nodes.every(node => manifestOf(cluster, node).metadata?.labels?.revision === String(revision));
}

function manifestOf(cluster: Cluster, node: string): Pod {
  return JSON.parse(readFileSync(cluster.manifestPath(node), 'utf8')) as Pod;
}

/** Everything that must be the same after every roll-out, but for the number of the revision. Waits until it is at rest. */
async function finalState(cluster: Cluster, revision: number): Promise<object> {
  const without = (text: string) =>
    text.replaceAll(`${POD_CONFIG_MAP}-${revision}`, '').replaceAll(`"${revision}"`, '');
  const visible = (path: string) =>
    readdirSync(path, { recursive: true, encoding: 'utf8' })
      .filter(name => !/(^|\/)\./.test(name))
      .sort();
  // What is kept depends on what has failed.
  const protectedNow = async () => {
    const { succeededRevisionLimit: succeeded, failedRevisionLimit: failed } = REVISION_LIMITS;
    const kept = protectedRevisions(await cluster.nodeStatuses(), revision, { succeeded, failed });
    return kept ?? Array.from({ length: revision }, (_, index) => index + 1);
  };
  const nodes: Record<string, object> = {};
  for (const node of cluster.nodes) {
    const containers = await cluster.eventually(`only the pod of revision ${revision} runs on ${node}`, async () => {
      const pod = await cluster.kube.get(PODS, { namespace: NAMESPACE, name: `kube-apiserver-${node}` });
      const isReady = pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True');
      const running = cluster
        .processes(node)
        .map(({ mark }) => mark.split('/').at(-1) ?? '')
        .sort();
      return pod.metadata?.labels?.revision === String(revision) && isReady && running.length === 2
        ? running
        : undefined;
    });
    const resources = cluster.path(node, RESOURCE_DIRECTORY);
    await cluster.eventually(`old revisions are pruned on ${node}`, async () => {
      const kept = await protectedNow();
      const found = readdirSync(resources).filter(name => name.startsWith(`${POD_CONFIG_MAP}-`));
      return found.every(name => kept.includes(Number(name.split('-').at(-1))));
    });
    nodes[node] = {
      manifest: without(JSON.stringify(manifestOf(cluster, node))),
      manifests: visible(cluster.path(node, 'etc/kubernetes/manifests')),
      files: visible(cluster.revisionPath(node, revision)),
      containers,
    };
  }
  const { nodeStatuses = [], conditions = [] } = await cluster.eventually('the operator is at rest', async () => {
    const status = await cluster.status();
    const isBad = ({ type, status: is }: { type: string; status: string }) =>
      (type.endsWith('Degraded') || type.endsWith('Progressing')) && is !== 'False';
    return status.conditions?.some(isBad) ? undefined : status;
  });
  await cluster.eventually('old revisions are gone from the API', async () => {
    const [kept, { items }] = [await protectedNow(), await cluster.kube.list(CONFIG_MAPS, { namespace: NAMESPACE })];
    return items.filter(isRevisionStatus).every(status => kept.includes(revisionOfStatus(status) ?? 0));
  });
  return {
    nodes,
    nodeStatuses: nodeStatuses.map(({ nodeName, currentRevision, targetRevision = 0 }) => ({
      nodeName,
      isCurrent: currentRevision === revision,
      targetRevision,
    })),
    conditions: Object.fromEntries(conditions.map(({ type, status }) => [type, status])),
  };
}

const pause = (milliseconds: number) => new Promise(resolve => setTimeout(resolve, milliseconds));
