import { annotationsOf } from '../../certrotation/secret.ts';
import { TAKEN_BACK, TURNED_ROUND } from '../../hand-over/names.ts';
import { CONFIG_MAPS } from '../../kube/resource.ts';
import { formatRfc3339 } from '../../kube/time.ts';
import { CLUSTER_RECORD } from '../../kubeadm/cluster-record.ts';
import { broughtAt, KEYS_STAY, tooManyKeys } from '../../kubeadm/operator/account-hand-over.ts';
import { type AccountKeys, accountKeysIn } from '../../kubeadm/operator/account-keys.ts';
import { KEYS_REQUESTED_AT, RETIRE, TOKENS_END, TOKENS_SINCE } from '../../kubeadm/operator/names.ts';
import { SERVICE_ACCOUNT_KEYS } from '../../kubeadm/service-account-keys.ts';
import type { AccountScene } from './account-scene.ts';
import type { Aim } from './aim.ts';
import { type Request, unlessAdopted } from './request.ts';
import type { Scene } from './scene.ts';
import type { SecretToken } from './secret-tokens.ts';

/** What is to be written so that the operator begins, takes back or ends the replacement of the keys of service accounts. */
export function accountRequest(aim: Aim, scene: Scene, account: AccountScene): Request {
  const refused = unlessAdopted(scene);
  if (refused !== undefined) return refused;
  const keys = accountKeysIn(scene.pki.secrets);
  if (keys === 'unusable') {
    const { namespace, name } = SERVICE_ACCOUNT_KEYS;
    return { is: 'refused', why: `Secret ${namespace}/${name} holds no pair of keys: bring it back from a backup` };
  }
  return { rotate: rotation, 'take-back': takeBack, retire }[aim](keys, scene, account);
}

type Found = AccountKeys | undefined;

function rotation(keys: Found, { record, settings, status, now }: Scene, { problems }: AccountScene): Request {
  if (settings.keysOnNodes) return { is: 'refused', why: KEYS_STAY };
  const phase = status?.serviceAccount?.phase ?? 'Steady';
  const isAskedFor = record.metadata?.annotations?.[KEYS_REQUESTED_AT] !== undefined;
  const isSigning = keys?.previous !== undefined && !keys.isShown;
  if (isAskedFor || keys?.next !== undefined || isSigning)
    return { is: 'there', says: `other keys of service accounts are under way already (${phase}): following it` };
  const [problem] = [...(keys === undefined ? [] : [tooManyKeys(keys)]), ...problems].filter(
    text => text !== undefined,
  );
  if (problem !== undefined)
    return { is: 'refused', why: `the keys of service accounts cannot be replaced: ${problem}` };
  return {
    is: 'asked',
    kind: CONFIG_MAPS,
    key: CLUSTER_RECORD,
    notes: { [KEYS_REQUESTED_AT]: formatRfc3339(now) },
    says: 'other keys of service accounts are asked for',
  };
}

function takeBack(keys: Found, { record, now }: Scene): Request {
  const at = formatRfc3339(now);
  const notes = keys === undefined ? {} : annotationsOf(keys.secret);
  if (keys?.next !== undefined) {
    if (notes[TAKEN_BACK] !== undefined)
      return { is: 'there', says: 'the keys of service accounts are taken back already: following it' };
    return {
      is: 'asked',
      key: SERVICE_ACCOUNT_KEYS,
      notes: { [TAKEN_BACK]: at },
      says: 'the next key has signed nothing: it leaves sa.pub of all nodes and is forgotten',
    };
  }
  if (record.metadata?.annotations?.[KEYS_REQUESTED_AT] !== undefined) {
    return {
      is: 'asked',
      kind: CONFIG_MAPS,
      key: CLUSTER_RECORD,
      notes: { [KEYS_REQUESTED_AT]: null },
      says: 'no other key has been made yet: the request goes',
    };
  }
  if (keys?.previous === undefined)
    return { is: 'refused', why: 'no other key of service accounts is under way: there is nothing to take back' };
  if (notes[TURNED_ROUND] !== undefined)
    return { is: 'there', says: 'the key before is to sign again already: following it' };
  return {
    is: 'asked',
    key: SERVICE_ACCOUNT_KEYS,
    notes: { [TURNED_ROUND]: at },
    says: 'tokens are signed with the next key already: the one before signs again, and both stay accepted',
  };
}

function retire(keys: Found, { status, now }: Scene, account: AccountScene): Request {
  if (keys?.previous === undefined)
    return { is: 'refused', why: 'no older key of service accounts is accepted: there is nothing to retire' };
  const phase = status?.serviceAccount?.phase;
  if (keys.next !== undefined || !keys.isShown) {
    const why = `the keys of service accounts are still being replaced (${phase ?? 'its operator has said nothing yet'}): wait until it is Retiring`;
    return { is: 'refused', why };
  }
  const notes = annotationsOf(keys.secret);
  if (notes[RETIRE] !== undefined) return { is: 'there', says: 'it has been asked for already: following it' };
  return {
    is: 'asked',
    key: SERVICE_ACCOUNT_KEYS,
    notes: { [RETIRE]: formatRfc3339(now) },
    says: refusedText(notes, now, account),
  };
}

const MOST_NAMES = 8;

/** Who may be refused from then on, as far as anybody can know. */
function refusedText(notes: Readonly<Record<string, string>>, now: Date, { tokens, olderPods }: AccountScene): string {
  const { [TOKENS_END]: end = 'nobody knows when', [TOKENS_SINCE]: since = '' } = notes;
  const brought = broughtAt(notes);
  const pods = olderPods.map(({ metadata }) => `${metadata?.namespace}/${metadata?.name}`).toSorted();
  return [
    `Tokens of the keys before, which may be good until ${end}, are refused from then on.`,
    ...(brought !== undefined && brought > now
      ? [`That is not before ${formatRfc3339(brought)}: until then kubelets bring pods other tokens.`]
      : []),
    ...(pods.length === 0
      ? []
      : [
          `${pods.length} pods began before ${since}, and are refused where they read their token only once: ${listed(pods)}.`,
        ]),
    ...(tokens.length === 0
      ? []
      : [`These Secrets get other tokens, and whoever holds a copy is refused: ${listed(tokens.map(tokenText))}.`]),
    'kube-apiserver counts pods that use an old token in serviceaccount_stale_tokens_total, and its audit log names them.',
  ].join(' ');
}

export function tokenText({ name, lastUsed, isImmutable }: SecretToken): string {
  const used = lastUsed === undefined ? 'no use noted' : `last used ${lastUsed}`;
  return `${name} (${used}${isImmutable ? ', immutable: to be made anew by its owner' : ''})`;
}

export function listed(names: readonly string[]): string {
  const shown = names.slice(0, MOST_NAMES).join(', ');
  return names.length > MOST_NAMES ? `${shown} and ${names.length - MOST_NAMES} more` : shown;
}
