import { annotationsOf } from '../../certrotation/secret.ts';
import { TAKEN_BACK, TOOK, TURNED_ROUND } from '../../hand-over/names.ts';
import { controlPlane } from '../../kubeadm/operator/account-evidence.ts';
import { accountGoal, accountKeysIn } from '../../kubeadm/operator/account-keys.ts';
import type { ServiceAccountGoal } from '../../kubeadm/operator/cluster.ts';
import { isInRound } from '../../kubeadm/operator/cluster.ts';
import type { SeenNode } from '../../kubeadm/operator/evidence.ts';
import { KEYS_REQUESTED_AT, RETIRE, TOKENS_END } from '../../kubeadm/operator/names.ts';
import type { Aim } from './aim.ts';
import type { Scene } from './scene.ts';

/** What is so of the keys of service accounts at the end; undefined: it is not the end yet. */
export function accountFacts(aim: Aim, { record, pki, nodes, status }: Scene): readonly string[] | undefined {
  const keys = accountKeysIn(pki.secrets);
  const isAskedFor = record.metadata?.annotations?.[KEYS_REQUESTED_AT] !== undefined;
  if (isAskedFor || keys === 'unusable') return undefined;
  // Nothing was made before it was taken back.
  if (keys === undefined) return aim === 'take-back' ? ['sa.key and sa.pub are as they were'] : undefined;
  const notes = annotationsOf(keys.secret);
  const isMoving = keys.next !== undefined || notes[TURNED_ROUND] !== undefined || notes[TAKEN_BACK] !== undefined;
  const phase = status?.serviceAccount?.phase;
  if (isMoving || phase === undefined || !['Steady', 'Retiring'].includes(phase)) return undefined;
  if (aim === 'retire' && (keys.previous !== undefined || notes[RETIRE] !== undefined)) return undefined;
  if (aim === 'rotate' && keys.previous === undefined) return undefined;
  const goal = accountGoal(keys);
  if (status?.round !== undefined || !controlPlane(nodes).every(node => isThere(node, goal))) return undefined;
  const took = notes[TOOK];
  const end = notes[TOKENS_END];
  return [
    `tokens are signed with the key ${keys.current.digest.slice(0, 12)} on every control-plane node`,
    ...(aim === 'rotate' && took !== undefined ? [`it signed ${took} after it was made`] : []),
    keys.previous === undefined
      ? 'no other public key is in any sa.pub that an agent reports'
      : `tokens of the key before (${keys.previous.digest.slice(0, 12)}) are still accepted, until ${end ?? 'they have ended'} or rotunda rotate sa --retire`,
  ];
}

/** Whether a node reports what is wanted; who is away says nothing. */
function isThere(node: SeenNode, { signs, accepts }: ServiceAccountGoal): boolean {
  const { report, isWaived } = node;
  if (isWaived) return true;
  const found = report?.serviceAccount;
  if (found === undefined || isInRound(node)) return false;
  const wanted = new Set(accepts);
  return found.signs === signs && found.accepts.length === wanted.size && found.accepts.every(key => wanted.has(key));
}
