import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { MANAGED_CERTIFICATE_TYPE, NOT_AFTER, NOT_BEFORE, REQUESTED_AT } from '../../certrotation/annotations.ts';
import { BUNDLE_KEY } from '../../certrotation/bundle.ts';
import { annotationsOf, dataText, TLS_CERT, withAnnotations } from '../../certrotation/secret.ts';
import { decide, type FamilyDecision } from '../../hand-over/decide.ts';
import { withoutRequest } from '../../hand-over/forget.ts';
import { PRESENTERS, RECEIPTS, SHOWN } from '../../hand-over/names.ts';
import { noteOf, type Receipt } from '../../hand-over/receipt.ts';
import { formatRfc3339 } from '../../kube/time.ts';
import { mergeBundle } from '../../pki/bundle.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { certificatesIn, encodeCertificates } from '../../pki/pem.ts';
import { caDigest } from '../../trust/receipts.ts';
import { type FamilyState, isWithoutDates } from './families.ts';
import { joinNotes, joinsHoldUp } from './join-tokens.ts';
import { bundleKey, JOIN_TOKENS, JOINS_END, RETIRE } from './names.ts';

/** What others say that a family's decision depends on, and what else goes on in the cluster. */
export interface Surroundings {
  /** By the digest of the CA; absent: nobody has been asked. */
  readonly receipts: ReadonlyMap<string, readonly Receipt[]>;
  readonly presenters: readonly Receipt[] | undefined;
  /** Another family is in the middle of a hand-over: by name. */
  readonly busy: string | undefined;
  /** kube-controller-manager of every control-plane node signs with files of its own; else who does not yet. */
  readonly notSeparate: readonly string[];
  /** What nodes that join are told. */
  readonly clusterInfo: ConfigMap | undefined;
}

/** One thing that is written next; after it everything is looked at again, so that a stop between any two costs nothing. */
export type FamilyStep =
  | { readonly do: 'nothing' }
  | { readonly do: 'bundle'; readonly bundle: ConfigMap }
  | { readonly do: 'signer'; readonly signer: Secret }
  | { readonly do: 'note-next'; readonly next: Secret }
  | { readonly do: 'begin' | 'begin-again' | 'promote' }
  | { readonly do: 'delete-next' | 'delete-previous' };

export interface FamilyPlan {
  readonly decision: FamilyDecision;
  readonly step: FamilyStep;
  /** `Phase`, or `Separating` before it, or `Waiting` for its turn. */
  readonly phase: string;
  /** A sentence, in place of that of the decision where something else holds it up. */
  readonly because: string;
}

/** What a family's decision depends on of what only others know. */
export function asksAbout({ question }: FamilyState): { readonly cas: readonly Certificate[]; readonly look: boolean } {
  const cas: Certificate[] = [];
  let look = false;
  const receipts = (ca: Certificate) => {
    cas.push(ca);
    return undefined;
  };
  const presenters = () => {
    look = true;
    return undefined;
  };
  decide({ ...question, receipts, presenters });
  // What comes of leaves while a next one waits is asked about too.
  if (question.next !== undefined && question.leaves.some(({ isOfCurrent }) => !isOfCurrent) && question.current)
    cas.push(question.current);
  return { cas, look };
}

/** What is to be written for a family now (spec 80, 6; spec 90): the decision as one step, in the order in which a stop harms nobody. */
export function planOf(family: FamilyState, surroundings: Surroundings): FamilyPlan {
  const { question, objects } = family;
  const decision = decide({
    ...question,
    receipts: ca => surroundings.receipts.get(caDigest(ca)),
    presenters: () => surroundings.presenters,
  });
  const plan = (step: FamilyStep, phase: string = decision.phase, because = decision.because): FamilyPlan => ({
    decision,
    step,
    phase,
    because,
  });
  const signer = objects.signer as Secret;
  if (isWithoutDates(signer) && annotationsOf(signer)[REQUESTED_AT] === undefined)
    return plan({ do: 'signer', signer: withDates(signer, family.current) });
  const bundle = bundleFor(family, decision, surroundings);
  if (bundle !== undefined && decision.write !== 'discard') return plan({ do: 'bundle', bundle });
  switch (decision.write) {
    case 'begin':
    case 'begin-again': {
      const held = heldUp(family, surroundings, decision);
      if (held !== undefined) return plan({ do: 'nothing' }, held.phase, held.because);
      return plan({ do: decision.write });
    }
    case 'promote':
      return plan({ do: 'promote' });
    case 'discard':
    case 'clear': {
      const { next } = objects;
      const state = { ...question, next: question.next && { chain: [question.next] } };
      const forgotten = question.isTakenBack && next !== undefined ? withoutRequest(signer, next, state) : signer;
      if (forgotten !== signer) return plan({ do: 'signer', signer: forgotten });
      return plan(bundle === undefined ? { do: 'delete-next' } : { do: 'bundle', bundle });
    }
    case 'retire': {
      const notes = { [SHOWN]: caDigest(family.current), [RECEIPTS]: undefined, [PRESENTERS]: undefined };
      return plan({ do: 'signer', signer: withAnnotations(signer, notes) });
    }
    case 'replace':
      return plan({ do: 'nothing' }, decision.phase, 'the CA in use cannot be used: nobody but you can replace it');
    case 'nothing':
      return restOf(family, decision, surroundings, plan);
  }
}

function restOf(
  { question, objects, current }: FamilyState,
  decision: FamilyDecision,
  { receipts, presenters, clusterInfo }: Surroundings,
  plan: (step: FamilyStep, phase?: string, because?: string) => FamilyPlan,
): FamilyPlan {
  const signer = objects.signer as Secret;
  if (decision.phase === 'Distributing' && objects.next !== undefined) {
    const said = question.next && receipts.get(caDigest(question.next));
    const noted = said && withAnnotations(objects.next, { [RECEIPTS]: noteOf(said) });
    return plan(noted === undefined || noted === objects.next ? { do: 'nothing' } : { do: 'note-next', next: noted });
  }
  const isHeld = decision.leaves === 'hold';
  const said = isHeld ? receipts.get(caDigest(current)) : undefined;
  const shown = !isHeld && decision.waitingFor.length > 0 ? presenters : undefined;
  const notes = {
    [RECEIPTS]: said && noteOf(said),
    [PRESENTERS]: shown && noteOf(shown),
    ...joinNotes(signer, clusterInfo, question.now),
    // Whoever asks again, once nothing of it is left, asks for the next time.
    ...(question.retiring.length === 0 &&
      decision.phase === 'Steady' && { [RETIRE]: undefined, [JOINS_END]: undefined, [JOIN_TOKENS]: undefined }),
  };
  const noted = withAnnotations(signer, notes);
  if (noted !== signer) return plan({ do: 'signer', signer: noted });
  const [before] = certificatesIn(objects.previous && dataText(objects.previous, TLS_CERT));
  const isTrusted = question.bundle.some(ca => before?.der.equals(ca.der));
  if (objects.previous !== undefined && !isTrusted) return plan({ do: 'delete-previous' });
  if (decision.phase !== 'Retiring') return plan({ do: 'nothing' });
  const held = retirementHeldUp(signer, question.now, clusterInfo);
  return plan({ do: 'nothing' }, decision.phase, `${decision.because}; ${held ?? 'it leaves'}`);
}

/** Why the CAs before the one in use stay for now; undefined: they go. */
export function retirementHeldUp(signer: Secret, now: Date, clusterInfo: ConfigMap | undefined): string | undefined {
  if (annotationsOf(signer)[RETIRE] === undefined) {
    const name = signer.metadata?.name ?? '';
    const unseen =
      name === 'ca' ? 'copies of admin.conf that people have' : 'certificates of it that somebody else was given';
    return `${unseen} are not seen, so that it stays until its end, or until somebody runs rotunda rotate ${name} --retire`;
  }
  return joinsHoldUp(signer, clusterInfo, now);
}

/** The bundle as it has to be; undefined: it is. */
function bundleFor(
  family: FamilyState,
  decision: FamilyDecision,
  { clusterInfo }: Surroundings,
): ConfigMap | undefined {
  const { question, objects, current, name } = family;
  const { next, now } = question;
  const isRetired =
    decision.phase === 'Retiring' &&
    question.isShown &&
    retirementHeldUp(objects.signer as Secret, now, clusterInfo) === undefined;
  const kept = isRetired
    ? question.bundle.filter(({ der }) => question.retiring.every(ca => !ca.der.equals(der)))
    : question.bundle;
  const isDropped = decision.write === 'discard';
  const others = kept.filter(({ der }) => !(isDropped && next?.der.equals(der)));
  const joining = next !== undefined && !isDropped && decision.write !== 'clear' && decision.write !== 'begin-again';
  const text = encodeCertificates(mergeBundle(joining ? [...others, next] : others, current, now));
  if (objects.bundle?.data?.[BUNDLE_KEY] === text) return undefined;
  const before: ConfigMap = objects.bundle ?? { metadata: bundleKey(name) };
  const labels = { ...before.metadata?.labels, [MANAGED_CERTIFICATE_TYPE]: 'ca-bundle' };
  return { ...before, metadata: { ...before.metadata, labels }, data: { ...before.data, [BUNDLE_KEY]: text } };
}

/** Why a new key pair is not made now, although it is due. */
function heldUp(
  { name, hasKey, question }: FamilyState,
  { busy, notSeparate }: Surroundings,
  { because }: FamilyDecision,
): { readonly phase: string; readonly because: string } | undefined {
  if (!hasKey) {
    const sentence = `the key of ${name} stays on the nodes (--keys-on-nodes): another CA can be made only where operator and agents share keys; run rotunda adopt kubeadm without it first`;
    return { phase: 'Steady', because: sentence };
  }
  if (question.next !== undefined) return undefined;
  if (busy !== undefined) return { phase: 'Waiting', because: `${because}; it waits for the hand-over of ${busy}` };
  if (name !== 'ca' || notSeparate.length === 0) return undefined;
  return {
    phase: 'Separating',
    because: `${because}; kube-controller-manager gets signing files of its own first: ${notSeparate.join(', ')}`,
  };
}

function withDates(signer: Secret, { notBefore, notAfter }: Certificate): Secret {
  return withAnnotations(signer, { [NOT_BEFORE]: formatRfc3339(notBefore), [NOT_AFTER]: formatRfc3339(notAfter) });
}
