import { annotationsOf } from '../../certrotation/secret.ts';
import { TOOK, TURNED_ROUND } from '../../hand-over/names.ts';
import { againWhileTransient } from '../../kube/again.ts';
import { type Clock, sleep, systemClock } from '../../kube/clock.ts';
import { seconds } from '../../kube/duration.ts';
import { isForbidden, isTransient } from '../../kube/error.ts';
import type { Kube } from '../../kube/port.ts';
import type { SignerName } from '../../kubeadm/chains.ts';
import type { Published } from '../../kubeadm/exchange.ts';
import { familiesOn, isInRound } from '../../kubeadm/operator/cluster.ts';
import type { SeenNode } from '../../kubeadm/operator/evidence.ts';
import type { FamilyState } from '../../kubeadm/operator/families.ts';
import { retirementHeldUp } from '../../kubeadm/operator/hand-over.ts';
import { SERVICE_ACCOUNT } from '../../kubeadm/service-account-keys.ts';
import { caDigest } from '../../trust/receipts.ts';
import { accountFacts } from './account-facts.ts';
import type { Aim } from './aim.ts';
import { readScene, type Scene } from './scene.ts';

export interface FollowOptions {
  readonly kube: Kube;
  readonly clock?: Clock | undefined;
  readonly signal?: AbortSignal | undefined;
  print(line: string): void;
}

const LOOK_AGAIN_MS = seconds(1);

/** Tells of every step until the aim is reached, or only time is waited for; ends with what is so now. */
export async function follow(name: Published, aim: Aim, options: FollowOptions): Promise<void> {
  const { kube, clock = systemClock, signal, print } = options;
  let told: string | undefined;
  const tell = (line: string) => {
    if (line !== told) print(`${clock.now().toISOString().slice(11, 19)}  ${line}`);
    told = line;
  };
  for (;;) {
    const look = () => readScene(kube, clock.now());
    const scene = await againWhileTransient(look, { signal, clock, passes, onError: error => tell(whyNot(error)) });
    const facts = name === SERVICE_ACCOUNT ? accountFacts(aim, scene) : factsOf(name, aim, scene);
    if (facts !== undefined) {
      for (const line of facts) print(line);
      return;
    }
    tell(lineOf(name, scene));
    await sleep(clock, LOOK_AGAIN_MS, signal);
  }
}

/** kube-apiserver is restarted on the way; one that has just started knows no roles yet, and whoever asked for a CA had them. */
function passes(error: unknown): boolean {
  return isTransient(error) || isForbidden(error);
}

function whyNot(error: unknown): string {
  return `kube-apiserver cannot be asked, again in a moment: ${error instanceof Error ? error.message : String(error)}`;
}

function lineOf(name: Published, { status }: Scene): string {
  const family = name === SERVICE_ACCOUNT ? status?.serviceAccount : status?.families[name];
  const phase = family?.phase ?? 'Steady';
  const { round, waitingFor = [] } = status ?? {};
  if (round !== undefined) {
    const why = waitingFor.find(({ who }) => who === `node/${round.node}`)?.why;
    const problem = why === undefined || why.startsWith('it works on') ? '' : ` (${why})`;
    return `${phase}: node/${round.node}: ${round.because}${problem}`;
  }
  const [first] = waitingFor;
  if (first === undefined) return `${phase}: ${family?.because ?? 'its operator has not looked yet'}`;
  const more = waitingFor.length > 1 ? ` and ${waitingFor.length - 1} more` : '';
  return `${phase}: waiting for ${first.who} (${first.why})${more}`;
}

/** What is so at the end; undefined: it is not the end yet. */
export function factsOf(name: SignerName, aim: Aim, scene: Scene): readonly string[] | undefined {
  const { families, status, now, clusterInfo, nodes } = scene;
  const family = families.find(candidate => candidate.name === name);
  const phase = status?.families[name]?.phase;
  if (family === undefined || phase === undefined) return undefined;
  const { objects, question, current } = family;
  const annotations = annotationsOf(objects.signer ?? {});
  const isMoving = objects.next !== undefined || question.due !== undefined || annotations[TURNED_ROUND] !== undefined;
  if (isMoving || !['Steady', 'Retiring'].includes(phase)) return undefined;
  const signs = `"${current.subject.commonName}" signs on every control-plane node, until ${current.notAfter.toISOString().slice(0, 10)}`;
  const older = question.retiring.map(({ subject }) => `"${subject.commonName}"`).join(', ');
  if (aim === 'retire') {
    if (question.retiring.length > 0) {
      const held = objects.signer && retirementHeldUp(objects.signer, now, clusterInfo);
      return held === undefined ? undefined : [`${older} leaves by itself later: ${held}`];
    }
    if (status?.round !== undefined || status?.message.startsWith('waiting')) return undefined;
    if (!nodes.every(node => isThere(family, node))) return undefined;
    return [`${signs}; no older ${name} is in any file that an agent reports`];
  }
  if (aim === 'rotate' && question.retiring.length === 0) return undefined;
  if (status?.round !== undefined || !nodes.every(node => isThere(family, node))) return undefined;
  const took = annotations[TOOK];
  return [
    signs,
    ...(aim === 'rotate' && took !== undefined ? [`it signed ${took} after it was made`] : []),
    ...(older === ''
      ? [`no other ${name} is in any file that an agent reports`]
      : [
          `${older} is still trusted, until its end or rotunda rotate ${name} --retire`,
          ...(name === 'ca'
            ? ['copies of admin.conf from before refuse kube-apiserver: take new ones from a control-plane node']
            : []),
        ]),
  ];
}

/** Whether a node reports what is wanted of this family by now: what the operator said last may be older. Who is away says nothing. */
function isThere({ name, current, question }: FamilyState, node: SeenNode): boolean {
  const found = node.report?.signers[name];
  if (found === undefined || node.isWaived || familiesOn(node, [{ name }]).length === 0) return true;
  const wanted = new Set([current, ...question.bundle].map(caDigest));
  return !isInRound(node) && found.cas.length === wanted.size && found.cas.every(ca => wanted.has(ca));
}
