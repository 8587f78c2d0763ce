/**
 * What do the components cost on a real Kubernetes API? Memory, processor time and requests of each, at rest and while every leaf of
 * kube-apiserver is made anew. The bundled program against a real etcd and kube-apiserver; each component is its own
 * ServiceAccount, the requests are counted in the audit log. `npm run bench -- real 600` watches ten minutes at rest instead of one.
 */

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { NOT_AFTER } from '../src/certrotation/annotations.ts';
import { bundleProgram } from '../src/cli/bundle.ts';
import { listAll } from '../src/kube/list.ts';
import { SECRETS } from '../src/kube/resource.ts';
import { accountName, readAccesses } from '../test/cluster/audit.ts';
import { findNeeds, LEADING } from '../test/cluster/installed.ts';
import { DAEMON, Scenario, SERVER, WORKER } from '../test/cluster/scenario.ts';
import { eventuallyDespiteErrors as eventually } from '../test/tools/eventually.ts';

const IDLE_SECONDS = 60;
const SETTLE_MS = 30_000;
const HOUR_MS = 3_600_000;
/** Linux counts the time of processes in these. */
const TICK_MS = 10;
const ROTATED_NAMESPACES = ['openshift-kube-apiserver', 'openshift-kube-apiserver-operator'];
const COMPONENTS = [...LEADING, SERVER, DAEMON];

export async function bench([seconds = String(IDLE_SECONDS)]: string[]): Promise<void> {
  const idleMs = Number(seconds) * 1000;
  if (!(idleMs >= 1000)) throw new RangeError(`expected seconds, found "${seconds}"`);
  const needs = await findNeeds();
  if ('missing' in needs) return console.log(`skipped: ${needs.missing}`);
  const out = mkdtempSync(join(tmpdir(), 'rotunda-bundle-'));
  const scenario = await Scenario.start(needs, { program: await bundleProgram(out) });
  try {
    await scenario.etcdOperator();
    await scenario.kubeApiserverOperator();
    await scenario.machineConfig();
    await scenario.machineConfigServer();
    await scenario.agent();
    await pause(SETTLE_MS);
    await measure(scenario, `at rest, ${seconds} s`, () => pause(idleMs));
    await measure(scenario, 'while every leaf is made anew', () => rotateLeaves(scenario));
  } finally {
    await scenario.stop();
    rmSync(out, { recursive: true, force: true });
  }
}

async function measure(scenario: Scenario, what: string, work: () => Promise<unknown>): Promise<void> {
  const began = new Date();
  const before = new Map([...scenario.processes].map(([name, { pid }]) => [name, cpuMs(pid)]));
  await work();
  const tookMs = Date.now() - began.getTime();
  console.log(`\n${what} (${(tookMs / 1000).toFixed(1)} s)`);
  console.log('component                   RSS MiB   CPU %   requests   writes   requests/h');
  for (const { command, namespace } of COMPONENTS) {
    const pid = scenario.processes.get(command)?.pid ?? 0;
    const users = [accountName({ namespace, name: command })];
    if (command === DAEMON.command) users.push(`system:node:${WORKER}`);
    const { auditLog } = scenario.installed;
    const asked = users.flatMap(user => readAccesses(auditLog, user)).filter(({ at }) => at >= began);
    const writes = asked.filter(({ verb }) => !['get', 'list', 'watch'].includes(verb));
    const percent = ((cpuMs(pid) - (before.get(command) ?? 0)) / tookMs) * 100;
    const figures = [
      residentMib(pid).toFixed(0).padStart(10),
      percent.toFixed(2).padStart(8),
      String(asked.length).padStart(11),
      String(writes.length).padStart(9),
      Math.round((asked.length * HOUR_MS) / tookMs)
        .toString()
        .padStart(13),
    ];
    console.log(command.padEnd(25) + figures.join(''));
  }
}

/** Takes the validity off every leaf, as an administrator who forces a rotation, and waits until all of them are others. */
async function rotateLeaves({ kube }: Scenario): Promise<void> {
  const leaves = async () => {
    const lists = await Promise.all(ROTATED_NAMESPACES.map(namespace => listAll(kube, SECRETS, { namespace })));
    return lists.flatMap(({ items }) => items).filter(isLeaf);
  };
  const old = new Map((await leaves()).map(leaf => [idOf(leaf), certificateOf(leaf)]));
  for (const leaf of await leaves()) {
    const { namespace, name = '' } = leaf.metadata ?? {};
    const body = { metadata: { annotations: { [NOT_AFTER]: null } } };
    await kube.patch(SECRETS, { namespace, name }, { type: 'merge', body });
  }
  await eventually('new leaves', async () => {
    const replaced = (await leaves()).filter(leaf => certificateOf(leaf) !== old.get(idOf(leaf)));
    return replaced.length >= old.size || undefined;
  });
  console.log(`${old.size} leaves replaced`);
}

/** Neither a signer, nor a copy in a revision, nor the certificate that etcd's operator made. */
function isLeaf({ metadata, type }: Secret): boolean {
  const { name = '', annotations = {} } = metadata ?? {};
  return (
    type === 'kubernetes.io/tls' && annotations[NOT_AFTER] !== undefined && !/-signer$|-\d+$|^etcd-client$/.test(name)
  );
}

function idOf({ metadata }: Secret): string {
  return `${metadata?.namespace}/${metadata?.name}`;
}

function certificateOf({ data = {} }: Secret): string {
  return data['tls.crt'] ?? '';
}

function residentMib(pid: number): number {
  const [, kib = '0'] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kib) / 1024;
}

function cpuMs(pid: number): number {
  const afterName = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1] ?? '';
  const [user = 0, system = 0] = afterName.split(' ').slice(11, 13).map(Number);
  return (user + system) * TICK_MS;
}

function pause(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms));
}
