import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { REQUESTED_AT } from '../../certrotation/annotations.ts';
import { annotationsOf, withAnnotations } from '../../certrotation/secret.ts';
import { BECAUSE, SHOWN, SINCE, TAKEN_BACK, TOOK, TURNED_ROUND } from '../../hand-over/names.ts';
import type { Receipt } from '../../hand-over/receipt.ts';
import { formatGoDuration, minutes } from '../../kube/duration.ts';
import { floorToMs, formatRfc3339, parseRfc3339 } from '../../kube/time.ts';
import {
  CURRENT_SLOT,
  joinedKeys,
  type KeySlot,
  NEXT_SLOT,
  OLDER_KEYS,
  PREVIOUS_SLOT,
  publicKeyDigests,
  SERVICE_ACCOUNT,
} from '../service-account-keys.ts';
import { acceptsReceipts, missingOf, othersSign, signsReceipts } from './account-evidence.ts';
import { type AccountKeys, accountGoal } from './account-keys.ts';
import type { NodeSight, ServiceAccountGoal } from './cluster.ts';
import { NO_SECRET_TOKENS, RETIRE, TOKENS_END, TOKENS_SINCE } from './names.ts';

/** Everything that a decision about the keys of service accounts rests on. */
export interface AccountQuestion {
  readonly keys: AccountKeys | 'unusable' | undefined;
  /** What stands on the record of the cluster: somebody wants other ones. */
  readonly requestedAt: string | undefined;
  /** Keys stay on the nodes (KA-2). */
  readonly keysOnNodes: boolean;
  /** A CA is in the middle of its hand-over, or before one: by name. */
  readonly busy: string | undefined;
  /** What is in the way on nodes: other flags than kubeadm's, files that differ; one sentence each. */
  readonly problems: readonly string[];
  readonly nodes: readonly NodeSight[];
  readonly now: Date;
}

export type AccountPhase = 'Steady' | 'Waiting' | 'Publishing' | 'Distributing' | 'Signing' | 'Retiring';

/** One thing that is written next; after it everything is looked at again. */
export type AccountStep =
  | { readonly do: 'nothing' }
  /** The request on the record has become what is in the Secret. */
  | { readonly do: 'answered' }
  | { readonly do: 'begin' }
  | { readonly do: 'keys'; readonly secret: Secret; readonly event?: AccountEvent | undefined }
  /** Everybody signs with the key in use: from now on the tokens of the one before end. */
  | { readonly do: 'note-shown' };

export interface AccountEvent {
  readonly reason: string;
  readonly text: string;
}

export interface AccountPlan {
  readonly phase: AccountPhase;
  readonly because: string;
  readonly step: AccountStep;
  readonly waitingFor: readonly Receipt[];
  /** What control-plane nodes are to have; undefined: nobody has asked for other keys yet, and they stay as they are. */
  readonly goal: ServiceAccountGoal | undefined;
  readonly againAt?: Date | undefined;
}

/** Of these it is never told which one signed a token that is around; more of them would only mean that nobody retires any. */
const MOST_KEYS = 8;
const NOTHING = { do: 'nothing' } as const;

/** What is to be written next so that no token is refused that is good (spec 80, 7): a key signs when every kube-apiserver accepts it. */
export function planOfKeys(question: AccountQuestion): AccountPlan {
  const { keys, requestedAt } = question;
  const rest = { step: NOTHING, waitingFor: [], goal: undefined } as const;
  if (keys === undefined) {
    if (requestedAt === undefined) return { ...rest, phase: 'Steady', because: 'nobody has asked for others' };
    const held = heldUp(question);
    return held === undefined
      ? {
          ...rest,
          phase: 'Publishing',
          because: 'somebody asked for others; those in use are copied into a Secret first',
        }
      : { ...rest, ...held };
  }
  if (keys === 'unusable')
    return {
      ...rest,
      phase: 'Steady',
      because: 'Secret service-account-keys holds no pair of keys: bring it back from a backup',
    };
  const goal = accountGoal(keys);
  const notes = annotationsOf(keys.secret);
  const then = (
    phase: AccountPhase,
    because: string,
    step: AccountStep = NOTHING,
    waitingFor: readonly Receipt[] = [],
  ) => ({
    phase,
    because,
    step,
    waitingFor,
    goal,
  });
  if (requestedAt !== undefined && requestedAt === notes[REQUESTED_AT])
    return then(keys.next === undefined ? 'Steady' : 'Distributing', 'what was asked for is begun', { do: 'answered' });
  const meant = withoutVoid(keys);
  if (meant !== keys.secret) return then('Steady', 'a request that means nothing goes', { do: 'keys', secret: meant });
  return keys.next === undefined ? signing(keys, question, then) : distributing(keys, keys.next.digest, question, then);
}

type Then = (phase: AccountPhase, because: string, step?: AccountStep, waitingFor?: readonly Receipt[]) => AccountPlan;

function distributing(keys: AccountKeys, next: string, { nodes, now }: AccountQuestion, then: Then): AccountPlan {
  const notes = annotationsOf(keys.secret);
  if (notes[TAKEN_BACK] !== undefined) {
    const secret = moved(keys.secret, { [NEXT_SLOT.key]: undefined, [NEXT_SLOT.pub]: undefined }, FORGOTTEN);
    const event = {
      reason: 'AccountKeysTakenBack',
      text: 'the next key of service accounts has signed nothing, and goes',
    };
    return then('Distributing', 'it was taken back', { do: 'keys', secret, event });
  }
  const missing = missingOf(acceptsReceipts(nodes, next));
  if (missing.length > 0) return then('Distributing', waitingText(missing), NOTHING, missing);
  const text = `tokens are signed with another key (${next.slice(0, 12)}): every kube-apiserver accepts it`;
  const step = { do: 'keys', secret: promoted(keys, now), event: { reason: 'AccountKeysInUseChanged', text } } as const;
  return then('Distributing', 'every kube-apiserver accepts the next one', step);
}

/** The next one signs, and what signed before it stays accepted; one before that never signs again. */
function promoted({ secret, next, previous, older }: AccountKeys, now: Date): Secret {
  const data = secret.data ?? {};
  const since = parseRfc3339(annotationsOf(secret)[SINCE] ?? '');
  const tookMs = since === undefined ? 0 : Math.max(0, now.getTime() - floorToMs(since).getTime());
  const left = previous !== undefined && previous.digest !== next?.digest ? [previous.text] : [];
  const texts = [...left, ...(older === undefined ? [] : [older])];
  return moved(
    secret,
    {
      [CURRENT_SLOT.key]: data[NEXT_SLOT.key],
      [CURRENT_SLOT.pub]: data[NEXT_SLOT.pub],
      [PREVIOUS_SLOT.key]: data[CURRENT_SLOT.key],
      [PREVIOUS_SLOT.pub]: data[CURRENT_SLOT.pub],
      [NEXT_SLOT.key]: undefined,
      [NEXT_SLOT.pub]: undefined,
      [OLDER_KEYS]: texts.length === 0 ? undefined : base64(joinedKeys(texts)),
    },
    {
      ...FORGOTTEN,
      ...UNSHOWN,
      [TOOK]: formatGoDuration(tookMs),
      [RETIRE]: undefined,
    },
  );
}

function signing(keys: AccountKeys, question: AccountQuestion, then: Then): AccountPlan {
  const { requestedAt, nodes } = question;
  const { secret, current, previous, isShown } = keys;
  if (annotationsOf(secret)[TURNED_ROUND] !== undefined) {
    const { busy } = question;
    if (busy !== undefined) return then('Waiting', waitsFor(busy));
    return then('Signing', 'the one before is to sign again', turnRound(keys));
  }
  if (requestedAt !== undefined && (previous === undefined || isShown)) {
    const held = heldUp(question);
    if (held === undefined) return then('Steady', 'somebody asked for others', { do: 'begin' });
    if (previous === undefined) return then(held.phase, held.because);
    const plan = retiring(keys, question, then);
    return plan.step.do === 'nothing' ? { ...plan, because: `${plan.because}; ${held.because}` } : plan;
  }
  if (previous === undefined) return then('Steady', 'tokens are signed with one key, and no other one is accepted');
  const [other] = othersSign(nodes, current.digest);
  if (isShown && other !== undefined) {
    const step = { do: 'keys', secret: withAnnotations(secret, UNSHOWN) } as const;
    return then('Signing', `${other} signs with a key from before again: it has joined with it, or got it back`, step);
  }
  if (isShown) return retiring(keys, question, then);
  const missing = missingOf(signsReceipts(nodes, current.digest));
  return missing.length > 0
    ? then('Signing', waitingText(missing), NOTHING, missing)
    : then('Signing', 'everybody signs with it', { do: 'note-shown' });
}

function turnRound({ secret, previous }: AccountKeys): AccountStep {
  const { [PREVIOUS_SLOT.key]: key, [PREVIOUS_SLOT.pub]: pub } = secret.data ?? {};
  const text = `the key before (${previous?.digest.slice(0, 12)}) is to sign again`;
  return {
    do: 'keys',
    secret: moved(
      secret,
      { [NEXT_SLOT.key]: key, [NEXT_SLOT.pub]: pub },
      { [TURNED_ROUND]: undefined, [BECAUSE]: text },
    ),
    event: { reason: 'AccountKeysTurnedRound', text },
  };
}

function retiring(keys: AccountKeys, { nodes, now }: AccountQuestion, then: Then): AccountPlan {
  const { secret, current } = keys;
  const notes = annotationsOf(secret);
  const { [RETIRE]: retire, [TOKENS_END]: end = '' } = notes;
  const at = parseRfc3339(end);
  const endsAt = at && floorToMs(at);
  const command = `rotunda rotate ${SERVICE_ACCOUNT} --retire`;
  if (retire === undefined && (endsAt === undefined || endsAt > now)) {
    const unless = hasLooked(notes)
      ? ''
      : ' if somebody has looked whether Secrets hold tokens of it, which do not end';
    const because = `tokens of the key before may be good until ${end || 'nobody knows when'}; it leaves then${unless}, or with ${command}`;
    return { ...then('Retiring', because), againAt: endsAt };
  }
  const brought = broughtAt(notes);
  if (brought === undefined || brought > now) {
    const because = `kubelets bring pods tokens of the key in use until ${formatRfc3339(brought ?? now)}; the key before leaves then`;
    return { ...then('Retiring', because), againAt: brought };
  }
  // What has been seen may have changed since.
  const missing = missingOf(signsReceipts(nodes, current.digest));
  if (missing.length > 0) return then('Retiring', waitingText(missing), NOTHING, missing);
  if (!hasLooked(notes))
    return then(
      'Retiring',
      `nobody has looked whether Secrets hold tokens of the key before, which do not end: ${command} does`,
    );
  const gone = [PREVIOUS_SLOT.key, PREVIOUS_SLOT.pub, OLDER_KEYS].map(name => [name, undefined] as const);
  const text = 'the keys before are accepted no more: no token of theirs is to be good';
  const event = { reason: 'AccountKeysRetired', text };
  const retired = moved(secret, Object.fromEntries(gone), { ...UNSHOWN, [SHOWN]: current.digest, [RETIRE]: undefined });
  return then('Retiring', text, { do: 'keys', secret: retired, event });
}

/** Somebody has found no Secret with a token of the keys before. */
function hasLooked(notes: Readonly<Record<string, string>>): boolean {
  return notes[NO_SECRET_TOKENS] === notes[TOKENS_SINCE];
}

/** A kubelet brings its pods another token when four fifths of the hour of the last one are over, and looks every minute or two. */
const BROUGHT_MS = minutes(55);

/** From when on every pod has a token of the key in use, those of ours among them: the key before does not leave earlier, whoever asks. */
export function broughtAt(notes: Readonly<Record<string, string>>): Date | undefined {
  const since = parseRfc3339(notes[TOKENS_SINCE] ?? '');
  return since && new Date(floorToMs(since).getTime() + BROUGHT_MS);
}

/** Why no others are made now, although somebody wants them. */
function heldUp(question: AccountQuestion): Pick<AccountPlan, 'phase' | 'because'> | undefined {
  const { keysOnNodes, problems, busy, keys } = question;
  if (keysOnNodes) return { phase: 'Steady', because: KEYS_STAY };
  const tooMany = keys === undefined || keys === 'unusable' ? undefined : tooManyKeys(keys);
  const problem = tooMany ?? problems[0];
  if (problem !== undefined) return { phase: 'Steady', because: `other keys are not made: ${problem}` };
  return busy === undefined ? undefined : { phase: 'Waiting', because: waitsFor(busy) };
}

function waitsFor(busy: string): string {
  return `other keys are not made yet: it waits for the hand-over of ${busy}`;
}

/** Every control-plane node has the same `sa.key`, so that one that is made somewhere has to get to the others. */
export const KEYS_STAY =
  'keys stay on the nodes (--keys-on-nodes), and another key of service accounts would have to travel to all of them: run rotunda adopt kubeadm without it first';

/** Why a key cannot be made beside these. */
export function tooManyKeys(keys: AccountKeys): string | undefined {
  const count = publicKeyDigests(accountGoal(keys).publicKeys).length;
  return count < MOST_KEYS
    ? undefined
    : `${count} keys are accepted: rotunda rotate ${SERVICE_ACCOUNT} --retire takes those out that sign no more`;
}

/** Without requests that mean nothing any more: what they were about is over. */
function withoutVoid({ secret, next, previous }: AccountKeys): Secret {
  const isVoid = {
    [TAKEN_BACK]: next === undefined,
    [TURNED_ROUND]: previous === undefined || next !== undefined,
    [RETIRE]: previous === undefined || next !== undefined,
  };
  const gone = Object.entries(isVoid).filter(([, is]) => is);
  return withAnnotations(secret, Object.fromEntries(gone.map(([name]) => [name, undefined])));
}

const UNSHOWN = {
  [SHOWN]: undefined,
  [TOKENS_SINCE]: undefined,
  [TOKENS_END]: undefined,
  [NO_SECRET_TOKENS]: undefined,
};
const FORGOTTEN = { [SINCE]: undefined, [BECAUSE]: undefined, [TAKEN_BACK]: undefined, [TURNED_ROUND]: undefined };

/** The Secret with other data and notes; what is undefined goes. */
function moved(
  secret: Secret,
  data: Readonly<Record<string, string | undefined>>,
  notes: Readonly<Record<string, string | undefined>>,
): Secret {
  const next = Object.entries({ ...secret.data, ...data }).filter(([, value]) => value !== undefined);
  return withAnnotations({ ...secret, data: Object.fromEntries(next) as Record<string, string> }, notes);
}

/** The Secret with a key beside the one in use. */
export function withNext(
  { secret }: AccountKeys,
  next: Readonly<Record<keyof KeySlot, string>>,
  notes: Readonly<Record<string, string | undefined>>,
): Secret {
  return moved(secret, { [NEXT_SLOT.key]: base64(next.key), [NEXT_SLOT.pub]: base64(next.pub) }, notes);
}

function waitingText(missing: readonly Receipt[]): string {
  const [first] = missing;
  const more = missing.length > 1 ? ` and ${missing.length - 1} more` : '';
  return `waiting for ${first?.verifier} (${first?.evidence})${more}`;
}

function base64(text: string): string {
  return Buffer.from(text, 'latin1').toString('base64');
}
