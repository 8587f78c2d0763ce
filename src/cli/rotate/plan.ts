import { annotationsOf } from '../../certrotation/secret.ts';
import { TOOK } from '../../hand-over/names.ts';
import { formatGoDuration, minutes, parseGoDuration, seconds } from '../../kube/duration.ts';
import { KUBEADM_CHAINS, type SignerName, signerNamed } from '../../kubeadm/chains.ts';
import { joinTokens } from '../../kubeadm/operator/join-tokens.ts';
import type { OlderPod } from '../../kubeadm/operator/older-pods.ts';
import { wrap } from './lines.ts';
import type { Scene } from './scene.ts';

/** Which nodes a CA concerns, and what of theirs is restarted when its file changes. */
export interface Restarts {
  readonly controlPlane: readonly string[];
  readonly workers: readonly string[];
  /** What begins anew on a control-plane node: programs that read the CA only then. */
  readonly onControlPlane: readonly string[];
  readonly onWorkers: readonly string[];
}

/** What is restarted when the file of a CA changes, by the table of who reads it only at its start (spec 80, 2). */
export function restartsFor(name: SignerName, scene: Pick<Scene, 'nodes'>): Restarts {
  const readers = [
    ...signerNamed(name).uses.filter(({ takes }) => takes === 'restart'),
    ...KUBEADM_CHAINS.filter(({ signer, target }) => signer === name && target.kind === 'kubeconfig').flatMap(
      ({ uses }) => uses.filter(({ takes }) => takes === 'restart'),
    ),
  ].map(({ process }) => process);
  const servers = scene.nodes.filter(({ isControlPlane }) => isControlPlane);
  const programs = [...new Set(readers)].toSorted();
  return {
    controlPlane: servers.map(node => node.name).toSorted(),
    workers:
      name === 'ca'
        ? scene.nodes
            .filter(({ isControlPlane }) => !isControlPlane)
            .map(node => node.name)
            .toSorted()
        : [],
    onControlPlane: programs,
    onWorkers: programs.filter(program => program === 'kubelet'),
  };
}

/** What would happen, the answer first: phases, what restarts where, who holds older trust, how long, and how to go back. */
export function planText(name: SignerName, scene: Scene, older: readonly OlderPod[]): string {
  const { settings, families, clusterInfo, now } = scene;
  const family = families.find(candidate => candidate.name === name);
  if (family === undefined) throw new Error(`there is no CA ${name} in this cluster that could be used`);
  const restarts = restartsFor(name, scene);
  const { controlPlane, workers, onControlPlane, onWorkers } = restarts;
  const all = [...controlPlane, ...workers];
  const { commonName } = family.current.subject;
  const next = `${commonName.replace(/@\d+$/, '')}@<seconds>`;
  const ends = family.current.notAfter.toISOString().slice(0, 10);
  const begins = restartText(onControlPlane, onWorkers, workers.length);
  const tokens = name === 'ca' ? joinTokens(clusterInfo, now) : [];
  const lines = [
    `Another ${name}: "${commonName}" (ends ${ends}) is followed by "${next}", on ${countText(all.length, 'node')}. ` +
      'No process of the cluster refuses another meanwhile: every node is changed and checked before the next one.',
    '',
    ...(name === 'ca'
      ? [`1 Separate    kube-controller-manager restarts on each control-plane node, to sign with a file of its own.`]
      : []),
    `${name === 'ca' ? 2 : 1} Distribute  ${signerNamed(name).base}.crt gets the next CA beside the one in use. ${begins}${name === 'ca' ? ' cluster-info and kube-root-ca.crt get both.' : ''}`,
    `${name === 'ca' ? 3 : 2} Sign        once everybody has loaded it: the next CA takes over, and ${leavesText(name)} are made anew. ${begins}`,
    `${name === 'ca' ? 4 : 3} Retire      the CA before stays trusted until ${ends}, or until rotunda rotate ${name} --retire. ${begins}`,
    '',
    `Nodes, in this order: ${[...controlPlane, ...workers].join(', ')}.`,
    ...(name === 'ca' ? [podsText(older, settings.pods)] : []),
    ...(tokens.length === 0
      ? []
      : [`Join tokens that are good now: ${tokens.join(', ')}. --retire waits for their end and two hours more.`]),
    ...(name === 'ca'
      ? [
          'Copies of admin.conf that people and CI have know the CA before alone: from Sign on they refuse kube-apiserver. New ones can be taken from a control-plane node as soon as Distribute is done there.',
        ]
      : []),
    `Expected duration until it signs everywhere: about ${durationText(restarts, family.objects.signer && annotationsOf(family.objects.signer)[TOOK])}${older.length > 0 && settings.pods === 'wait' && name === 'ca' ? ', and as long as pods are waited for' : ''}.`,
    'Point of no return: Retire. Before Sign, --take-back leaves no trace; after it, --take-back hands over to the CA before.',
  ];
  return `${lines.map(line => wrap(line)).join('\n')}\n`;
}

function restartText(onControlPlane: readonly string[], onWorkers: readonly string[], workers: number): string {
  if (onControlPlane.length === 0) return 'Nothing restarts.';
  const elsewhere = onWorkers.length > 0 && workers > 0 ? `; ${onWorkers.join(', ')} on each worker` : '';
  return `Restarts ${onControlPlane.join(', ')} on each control-plane node${elsewhere}.`;
}

function leavesText(name: SignerName): string {
  const leaves = KUBEADM_CHAINS.filter(({ signer }) => signer === name).map(leaf => leaf.name);
  return leaves.length > 4 ? `its ${leaves.length} kinds of leaves` : leaves.join(', ');
}

function podsText(older: readonly OlderPod[], policy: string): string {
  if (older.length === 0) return 'Pods: none is known that would have to be restarted to trust the next CA.';
  const owners = [
    ...new Set(
      older.map(({ namespace, name, owner }) =>
        owner === undefined ? `${namespace}/${name}` : `${namespace}/${owner.kind.toLowerCase()}/${owner.name}`,
      ),
    ),
  ].toSorted();
  const shown = owners.slice(0, 10).join(', ');
  const rest = owners.length > 10 ? ` and ${owners.length - 10} more` : '';
  const what = {
    wait: 'it is waited for until each has been restarted (--pods wait)',
    restart: 'their owners are restarted, one workload at a time (--pods restart)',
    ignore: 'nobody waits for them (--pods ignore)',
  }[policy];
  return `Pods whose client may not read a CA again by itself: ${older.length}; ${what}: ${shown}${rest}.`;
}

const CONTROL_PLANE_RESTART_MS = seconds(90);
const WORKER_RESTART_MS = seconds(45);
const QUIET_MS = seconds(20);

export function durationText(
  { controlPlane, workers, onControlPlane, onWorkers }: Restarts,
  took: string | undefined,
): string {
  const last = took === undefined ? undefined : parseGoDuration(took);
  if (last !== undefined && last > minutes(1))
    return `${formatGoDuration(Math.round(last / 1000) * 1000)}, as the last time`;
  const server = onControlPlane.length > 0 ? CONTROL_PLANE_RESTART_MS : QUIET_MS;
  const worker = onWorkers.length > 0 ? WORKER_RESTART_MS : QUIET_MS;
  const rounds = onWorkers.length > 0 ? 3 : 2;
  const ms = rounds * (controlPlane.length * server) + 2 * workers.length * worker;
  return `${Math.max(1, Math.round(ms / minutes(1)))} min`;
}

export function countText(count: number, word: string): string {
  return `${count} ${count === 1 ? word : `${word}s`}`;
}
