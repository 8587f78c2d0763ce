import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { NOT_AFTER, NOT_BEFORE, REQUESTED_AT } from '../../certrotation/annotations.ts';
import { annotationsOf } from '../../certrotation/secret.ts';
import { nextKey } from '../../hand-over/family.ts';
import { TAKEN_BACK, TURNED_ROUND } from '../../hand-over/names.ts';
import type { Kube } from '../../kube/port.ts';
import { type ObjectKey, type Resource, SECRETS } from '../../kube/resource.ts';
import { formatRfc3339 } from '../../kube/time.ts';
import type { SignerName } from '../../kubeadm/chains.ts';
import type { FamilyState } from '../../kubeadm/operator/families.ts';
import { RETIRE, signerKey } from '../../kubeadm/operator/names.ts';
import type { Scene } from './scene.ts';

/** What is asked for, and what would be written for it. */
export type Request =
  /** It is under way, or over, already: there is nothing to write. */
  | { readonly is: 'there'; readonly says: string }
  | { readonly is: 'refused'; readonly why: string }
  | {
      readonly is: 'asked';
      readonly key: ObjectKey;
      /** Secrets, unless said. */
      readonly kind?: Resource | undefined;
      readonly notes: Readonly<Record<string, string | null>>;
      readonly says: string;
    };

export function rotationRequest(name: SignerName, scene: Scene): Request {
  const family = familyIn(name, scene);
  if ('is' in family) return family;
  if (!family.hasKey) {
    const why = `the keys of the CAs stay on the nodes (--keys-on-nodes), so that another ${name} cannot be handed over to; adopt the cluster without it first`;
    return { is: 'refused', why };
  }
  const { question, objects } = family;
  const phase = scene.status?.families[name]?.phase ?? 'Steady';
  const isMoving = question.due !== undefined || objects.next !== undefined || phase === 'Signing';
  if (isMoving) return { is: 'there', says: `another ${name} is under way already (${phase}): following it` };
  const at = formatRfc3339(scene.now);
  return {
    is: 'asked',
    key: signerKey(name),
    notes: { [REQUESTED_AT]: at, [NOT_AFTER]: null, [NOT_BEFORE]: null },
    says: `another ${name} is asked for`,
  };
}

export function takeBackRequest(name: SignerName, scene: Scene): Request {
  const family = familyIn(name, scene);
  if ('is' in family) return family;
  const { objects, question, current } = family;
  const at = formatRfc3339(scene.now);
  if (objects.next !== undefined) {
    if (question.isTakenBack)
      return { is: 'there', says: `the hand-over of ${name} is taken back already: following it` };
    return {
      is: 'asked',
      key: nextKey(signerKey(name)),
      notes: { [TAKEN_BACK]: at },
      says: `"${question.next?.subject.commonName}" has signed nothing: it leaves all files and is forgotten`,
    };
  }
  if (annotationsOf(objects.signer as Secret)[REQUESTED_AT] !== undefined && question.due !== undefined) {
    return {
      is: 'asked',
      key: signerKey(name),
      notes: { [NOT_BEFORE]: formatRfc3339(current.notBefore), [NOT_AFTER]: formatRfc3339(current.notAfter) },
      says: `no other ${name} has been made yet: the request goes`,
    };
  }
  if (objects.previous === undefined)
    return { is: 'refused', why: `nothing of ${name} is being handed over: there is nothing to take back` };
  const [before] = question.retiring;
  return {
    is: 'asked',
    key: signerKey(name),
    notes: { [TURNED_ROUND]: at },
    says: `"${current.subject.commonName}" signs already: "${before?.subject.commonName ?? 'the CA before'}" is handed over to again, and leaves are made anew once more`,
  };
}

export function retireRequest(name: SignerName, scene: Scene): Request {
  const family = familyIn(name, scene);
  if ('is' in family) return family;
  const { question, objects } = family;
  if (question.retiring.length === 0)
    return { is: 'refused', why: `no older ${name} is in any file: there is nothing to retire` };
  const phase = scene.status?.families[name]?.phase;
  if (phase !== 'Retiring')
    return {
      is: 'refused',
      why: `${name} is still being handed over (${phase ?? 'its operator has said nothing yet'}): wait until it is Retiring`,
    };
  if (annotationsOf(objects.signer as Secret)[RETIRE] !== undefined)
    return { is: 'there', says: `it has been asked for already: following it` };
  const names = question.retiring.map(({ subject }) => `"${subject.commonName}"`).join(', ');
  return {
    is: 'asked',
    key: signerKey(name),
    notes: { [RETIRE]: formatRfc3339(scene.now) },
    says: `${names} leaves every file${name === 'ca' ? ' and cluster-info' : ''}. ${AFTER_IT[name]}`,
  };
}

const AFTER_IT: Readonly<Record<SignerName, string>> = {
  ca: 'Whatever still shows a certificate of it, such as copies of admin.conf, is refused from then on.',
  'front-proxy-ca': 'Aggregated API servers refuse whatever still shows a certificate of it from then on.',
  'etcd-ca': 'Whoever still asks etcd with a certificate of it, for a backup for instance, is refused from then on.',
};

export async function write(kube: Kube, request: Extract<Request, { is: 'asked' }>): Promise<void> {
  const { key, kind = SECRETS, notes } = request;
  const body = { metadata: { annotations: notes } };
  await kube.patch(kind, key, { type: 'merge', body }, { fieldManager: 'rotunda-rotate' });
}

/** A cluster that nobody keeps is not changed. */
export function unlessAdopted({ status }: Scene): Extract<Request, { is: 'refused' }> | undefined {
  if (status?.adopted === true) return undefined;
  const why = status?.differences[0] ?? 'its operator has not said yet that all nodes agree';
  return { is: 'refused', why: `the cluster is not adopted: ${why}` };
}

function familyIn(name: SignerName, scene: Scene): FamilyState | Extract<Request, { is: 'refused' }> {
  const { families } = scene;
  const refused = unlessAdopted(scene);
  if (refused !== undefined) return refused;
  const family = families.find(candidate => candidate.name === name);
  return family ?? { is: 'refused', why: `there is no ${name} whose key is ours: what it signs is only watched` };
}
