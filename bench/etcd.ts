/**
 * How long does a real etcd of three members take to be founded, and to get a new signer from the moment somebody asks for one to
 * the moment every member shows leaves of it? How often is each member restarted for that?
 *
 * Twice is the least there can be: etcd reads its CA bundle at the start only, so every member is restarted once to trust the new
 * signer, and no leaf of it may be shown before the last one has been. The leaves then come with a revision of their own, which is
 * the second restart. (A leaf alone is read at every handshake; the restart brings the revision that carries it.)
 */
import assert from 'node:assert/strict';
import { materialFromCluster } from '../src/etcd/client/material.ts';
import { findEtcd, NO_ETCD } from '../test/etcd/binary.ts';
import { RealCluster } from '../test/etcd/cluster.ts';
import { Load } from '../test/etcd/load.ts';

const ROTATIONS = 3;
const RESTARTS = 2;

export async function bench(): Promise<void> {
  const binary = findEtcd();
  if (binary === undefined) {
    console.log(`not measured: ${NO_ETCD}`);
    return;
  }
  const begun = performance.now();
  const cluster = await RealCluster.start(binary);
  try {
    await cluster.founded();
    console.log(`\nthree members from nothing, each with a vote: ${seconds(performance.now() - begun)}`);
    const runs: number[] = [];
    for (let run = 0; run < ROTATIONS; run++) runs.push(await rotate(cluster));
    console.log(
      `\nsigner asked for to leaves of it on all three members: median ${seconds(median(runs))} of ${ROTATIONS} (${runs.map(seconds).join(', ')})`,
    );
    console.log(
      `  restarts of each member: ${RESTARTS}, the least there can be: one for the CA bundle, one for the leaves`,
    );
  } finally {
    await cluster.close();
  }
}

async function rotate(cluster: RealCluster): Promise<number> {
  const revision = (await cluster.settled()) as number;
  const starts = cluster.nodes.map(({ starts: count }) => count);
  const endpoints = cluster.nodes.map(({ address }) => `https://${address}:2379`);
  const load = new Load(endpoints, materialFromCluster(cluster.kube));
  const begun = performance.now();
  await cluster.force('etcd-signer');
  await cluster.until('the signer in use', () => cluster.follows('etcd-signer'));
  await cluster.until('the leaves on every node', () => cluster.settled(revision + 2));
  const tookMs = performance.now() - begun;
  const { failures, fewestUp, acknowledged, retries } = await load.stop();
  assert.deepEqual(failures, []);
  assert.ok(fewestUp >= 2, `at some moment only ${fewestUp} members answered`);
  const restarts = cluster.nodes.map(({ starts: count }, index) => count - (starts[index] as number));
  assert.deepEqual(restarts, [RESTARTS, RESTARTS, RESTARTS]);
  console.log(
    `  ${seconds(tookMs)}; meanwhile ${acknowledged.size} writes, none lost, ${retries} tried again elsewhere, never fewer than ${fewestUp} members`,
  );
  return tookMs;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
