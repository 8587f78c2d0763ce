import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { NAME_FREE_AT } from '../../certrotation/annotations.ts';
import type { Rotation } from '../../certrotation/ensure.ts';
import {
  annotationsOf,
  dataText,
  loadSecret,
  TLS_CERT,
  TLS_KEY,
  TLS_SECRET,
  withAnnotations,
  withCertificate,
} from '../../certrotation/secret.ts';
import { store } from '../../certrotation/store.ts';
import type { FamilyDecision } from '../../hand-over/decide.ts';
import { nextKey, previousKey } from '../../hand-over/family.ts';
import { tellLeftBehind } from '../../hand-over/left-behind.ts';
import { BECAUSE, BESIDE, PRESENTERS, RECEIPTS, SHOWN, SINCE, TOOK, TURNED_ROUND } from '../../hand-over/names.ts';
import { formatGoDuration } from '../../kube/duration.ts';
import { isConflict, isNotFound } from '../../kube/error.ts';
import { CONFIG_MAPS, keyOf, SECRETS } from '../../kube/resource.ts';
import { floorToMs, formatRfc3339, parseRfc3339 } from '../../kube/time.ts';
import { type CertificateAndKey, ownCertificate } from '../../pki/authority.ts';
import { issueSigner } from '../../pki/issue.ts';
import { certificatesIn } from '../../pki/pem.ts';
import { caDigest } from '../../trust/receipts.ts';
import type { FamilyState } from './families.ts';
import type { FamilyStep } from './hand-over.ts';
import { JOIN_TOKENS, JOINS_END, PODS_HOLD, RETIRE } from './names.ts';

/** Writes what was decided about a family; false: another writer was first, and everything has to be looked at again. */
export async function carryOut(
  family: FamilyState,
  step: FamilyStep,
  decision: FamilyDecision,
  rotation: Rotation,
  joinTokens: string | undefined,
): Promise<boolean> {
  const { objects } = family;
  switch (step.do) {
    case 'nothing':
      return true;
    case 'bundle':
      return (await store(CONFIG_MAPS, objects.bundle, step.bundle, rotation)) !== undefined;
    case 'signer':
      return (await store(SECRETS, objects.signer, step.signer, rotation)) !== undefined;
    case 'note-next':
      return (await store(SECRETS, objects.next, step.next, rotation)) !== undefined;
    case 'begin':
    case 'begin-again':
      return begin(family, decision.because, rotation);
    case 'promote':
      return promote(family, decision, rotation, joinTokens);
    case 'delete-next':
      return remove(objects.next, rotation);
    case 'delete-previous':
      return remove(objects.previous, rotation);
  }
}

/** A key pair beside the one in use, or the one before it, which is to sign again. */
async function begin(family: FamilyState, because: string, rotation: Rotation): Promise<boolean> {
  const { objects, question, config, current } = family;
  const back = question.isTurnedRound && objects.previous !== undefined ? loadSecret(objects.previous) : undefined;
  const pair = back ?? (await newPair(family, rotation));
  const before: Secret = objects.next ?? { metadata: nextKey(config) };
  const made = withCertificate({ ...before, type: TLS_SECRET }, pair, 'signer', config.refreshMs);
  const annotations = {
    [SINCE]: formatRfc3339(sinceOf(objects.next) ?? question.now),
    [BECAUSE]: because,
    // A pair that signed before and is to sign again must never be taken for one that has signed nothing.
    ...(back === undefined && { [BESIDE]: caDigest(current) }),
  };
  const wanted = { ...made, metadata: { ...before.metadata, annotations } };
  if ((await store(SECRETS, objects.next, wanted, rotation)) === undefined) return false;
  const name = ownCertificate(pair).subject.commonName;
  rotation.events.event('Normal', 'SignerHandOverBegun', `"${name}" is made known to everybody: ${because}`);
  return true;
}

/** `<old common name>@<seconds>` (KA-8): nobody has had this name before, so that names tell two generations apart. */
async function newPair(
  { objects, config, current, question }: FamilyState,
  rotation: Rotation,
): Promise<CertificateAndKey> {
  const { keys } = rotation;
  const base = current.subject.commonName.replace(/@\d+$/, '');
  const older = certificatesIn(objects.previous && dataText(objects.previous, TLS_CERT));
  const next = question.next === undefined ? [] : [question.next];
  const taken = new Set([...question.bundle, ...older, ...next, current].map(({ subject }) => subject.commonName));
  const first = Math.floor(question.now.getTime() / 1000);
  const free = Number(annotationsOf(objects.signer as Secret)[NAME_FREE_AT] ?? 0);
  let second = free > first && free - first <= FURTHEST_NAME_SECONDS ? free : first;
  while (taken.has(`${base}@${second}`)) second++;
  const commonName = `${base}@${second}`;
  const { validityMs: lifetimeMs, keyAlgorithm: algorithm } = config;
  return issueSigner({ commonName, lifetimeMs, now: question.now, keys, algorithm });
}

/** A note from a clock that went wrong must not name CAs for years to come. */
const FURTHEST_NAME_SECONDS = 3600;

async function promote(
  { name, objects, config, question, current }: FamilyState,
  decision: FamilyDecision,
  rotation: Rotation,
  joinTokens: string | undefined,
): Promise<boolean> {
  const { events } = rotation;
  const signer = objects.signer as Secret;
  const next = loadSecret(objects.next as Secret);
  // First, so that it is there whenever the new one signs (HO-6).
  if (!(await keepPrevious(objects.signer as Secret, objects.previous, config, rotation))) return false;
  const since = sinceOf(objects.next) ?? question.now;
  const annotations = {
    [TOOK]: formatGoDuration(Math.max(0, question.now.getTime() - since.getTime())),
    [TURNED_ROUND]: undefined,
    [RECEIPTS]: undefined,
    [PRESENTERS]: undefined,
    [SHOWN]: undefined,
    [RETIRE]: undefined,
    [JOINS_END]: undefined,
    [JOIN_TOKENS]: name === 'ca' ? joinTokens : undefined,
    // Nothing signs without their receipts, and the one before has been in their files all the time.
    [PODS_HOLD]: name === 'ca' ? [ownCertificate(next), current].map(caDigest).join() : undefined,
  };
  const wanted = withAnnotations(withCertificate(signer, next, 'signer', config.refreshMs), annotations);
  if ((await store(SECRETS, signer, wanted, rotation)) === undefined) return false;
  const commonName = ownCertificate(next).subject.commonName;
  events.event('Normal', 'SignerInUseChanged', `${name} becomes "${commonName}" because ${decision.because}`);
  tellLeftBehind(events, config, decision.leftBehind);
  return true;
}

async function keepPrevious(
  signer: Secret,
  previous: Secret | undefined,
  config: FamilyState['config'],
  rotation: Rotation,
): Promise<boolean> {
  const { [TLS_CERT]: certificate = '', [TLS_KEY]: key = '' } = signer.data ?? {};
  if (previous?.data?.[TLS_CERT] === certificate) return true;
  const before: Secret = previous ?? { metadata: previousKey(config) };
  const wanted: Secret = { ...before, type: TLS_SECRET, data: { [TLS_CERT]: certificate, [TLS_KEY]: key } };
  return (await store(SECRETS, previous, wanted, rotation)) !== undefined;
}

async function remove(secret: Secret | undefined, { kube }: Rotation): Promise<boolean> {
  if (secret === undefined) return true;
  const { uid, resourceVersion } = secret.metadata ?? {};
  try {
    await kube.delete(SECRETS, keyOf(secret), { preconditions: { uid, resourceVersion } });
    return true;
  } catch (error) {
    if (!isNotFound(error) && !isConflict(error)) throw error;
    return false;
  }
}

export function sinceOf(next: Secret | undefined): Date | undefined {
  const since = next && parseRfc3339(annotationsOf(next)[SINCE] ?? '');
  return since && floorToMs(since);
}
