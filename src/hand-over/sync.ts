import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { ensureBundle } from '../certrotation/bundle.ts';
import type { RotationUnit } from '../certrotation/config.ts';
import type { Rotation } from '../certrotation/ensure.ts';
import {
  annotationsOf,
  dataText,
  TLS_CERT,
  TLS_KEY,
  TLS_SECRET,
  withAnnotations,
  withCertificate,
} from '../certrotation/secret.ts';
import { ensureSigner, newSigner, type SignerChoice } from '../certrotation/signer.ts';
import { store } from '../certrotation/store.ts';
import { ensureTarget } from '../certrotation/target.ts';
import type { Sync, SyncResult } from '../certrotation/unit.ts';
import { formatGoDuration, seconds } from '../kube/duration.ts';
import { isConflict, isNotFound } from '../kube/error.ts';
import { keyOf, SECRETS } from '../kube/resource.ts';
import { floorToMs, formatRfc3339, parseRfc3339 } from '../kube/time.ts';
import type { Certificate } from '../pki/certificate.ts';
import { certificatesIn } from '../pki/pem.ts';
import { secret as secretRef } from '../trust/object.ts';
import { caDigest } from '../trust/receipts.ts';
import { askedAbout, decide, type FamilyDecision, type FamilyQuestion, isLookWanted, signedSince } from './decide.ts';
import {
  type Family,
  type FamilyObjects,
  type FamilyState,
  familiesOf,
  nextKey,
  previousKey,
  readFamily,
  stateOf,
} from './family.ts';
import { followingSigner } from './following.ts';
import { withoutRequest } from './forget.ts';
import { tellLeftBehind } from './left-behind.ts';
import { BECAUSE, BESIDE, PRESENTERS, RECEIPTS, SHOWN, SINCE, TOOK, TURNED_ROUND } from './names.ts';
import { noteOf, type Receipt, type Receipts } from './receipt.ts';

/** How a new signer comes to sign: when everybody has loaded it, or after upstream's wait (spec 10, T-8). */
export type HandOverMode = 'receipts' | 'clock';

export interface HandOverOptions {
  readonly receipts: Receipts;
  /** How long a day of rotation lasts. */
  readonly dayMs: number;
  /** Told after every pass where a family stands. */
  readonly onDecision?: ((family: Family, decision: FamilyDecision, since: Date | undefined) => void) | undefined;
}

/** While somebody is waited for, everybody is asked again after a tenth of the time it has taken so far, between these. */
const SHORTEST_WAIT_MS = seconds(1);
const LONGEST_WAIT_MS = seconds(30);

/**
 * A pass over a unit in which a new signer is first known everywhere and only then signs (spec 90): signer, bundle and target as in
 * `syncUnit`, with `decide` in place of upstream's clock. Units that share a signer share its hand-over.
 */
export function syncByReceipts(units: readonly RotationUnit[], options: HandOverOptions): Sync {
  const families = new Map(familiesOf(units).flatMap(family => family.units.map(unit => [unit.name, family] as const)));
  return async (unit, rotation) => {
    const family = families.get(unit.name);
    if (family === undefined) throw new RangeError(`${unit.name} is none of the units`);
    return new Pass(family, unit, rotation, options).run();
  };
}

class Pass {
  readonly #family: Family;
  readonly #unit: RotationUnit;
  readonly #rotation: Rotation;
  readonly #options: HandOverOptions;
  /** What verifiers said in this pass, by the digest of the CA. */
  readonly #receipts = new Map<string, readonly Receipt[]>();
  /** What presenters showed in this pass, and of which signer they were to. */
  #shown: { readonly current: string; readonly sights: readonly Receipt[] } | undefined;
  /** The leaf that the decision was made on; undefined: there was none. */
  #leafVersion: string | undefined;

  constructor(family: Family, unit: RotationUnit, rotation: Rotation, options: HandOverOptions) {
    this.#family = family;
    this.#unit = unit;
    this.#rotation = rotation;
    this.#options = options;
  }

  async run(): Promise<SyncResult> {
    const { signer, bundle, target } = this.#unit;
    const { locks } = this.#rotation;
    const regenerated: ('signer' | 'bundle' | 'target')[] = [];
    // Asking takes as long as the slowest server: nobody else is kept waiting for it.
    await this.#ask();
    const s = await locks.run(`secret/${signer.namespace}/${signer.name}`, () => this.#signer());
    if (s === undefined) return { outcome: 'lost', object: 'signer' };
    if (s.regenerated) regenerated.push('signer');

    const { next, dropped, current } = s;
    const certificate = current.chain[0] as Certificate;
    const held = { namespace: signer.namespace, name: signer.name, certificate, next, dropped };
    const b = await locks.run(`configmap/${bundle.namespace}/${bundle.name}`, async () =>
      (await this.#isSigner(certificate)) ? ensureBundle(bundle, held, this.#rotation) : LOST,
    );
    if (b.outcome === 'lost') return { outcome: 'lost', object: 'bundle' };
    if (b.rewritten) regenerated.push('bundle');
    // Only now: as long as the Secret is there, whoever comes next knows which CA has to leave.
    if (s.clears !== undefined) await this.#clear(s.clears);

    const creator = followingSigner(target.creator, s.decision.leaves);
    const t = await locks.run(`secret/${target.namespace}/${target.name}`, async () =>
      (await this.#isSigner(certificate)) && (await this.#isLeafAsSeen())
        ? ensureTarget({ ...target, creator }, current, b.certificates, this.#rotation)
        : LOST,
    );
    if (t.outcome === 'lost') return { outcome: 'lost', object: 'target' };
    if (t.regenerated) {
      regenerated.push('target');
      tellLeftBehind(this.#rotation.events, target, s.decision.leftBehind);
    }

    // A fresh object that is due again at once would spin; the caller's resync covers it.
    const ends = [s.until, ...[b.decision, t.decision].map(d => (d.action === 'keep' ? d.until : undefined))];
    const earliest = Math.min(...ends.map(end => end?.getTime() ?? Number.NaN));
    const until = Number.isNaN(earliest) ? this.#rotation.clock.now() : new Date(earliest);
    return { outcome: 'done', until, regenerated };
  }

  /** Asks about the CAs that the decision will need, if it needs any: nobody is asked while nothing changes (HO-11). */
  async #ask(): Promise<void> {
    const { signer } = this.#family;
    const { receipts } = this.#options;
    const now = this.#rotation.clock.now();
    const state = stateOf(await readFamily(this.#family, this.#rotation), signer, now);
    const ref = secretRef(signer.namespace, signer.name);
    const ask = async (ca: Certificate) => this.#receipts.set(caDigest(ca), await receipts.of(ref, ca));
    await Promise.all(askedAbout({ ...state, next: state.next?.chain[0] }).map(ask));
    const { current, retiring } = state;
    if (current === undefined || !isLookWanted(this.#question(state, now))) return;
    this.#shown = { current: caDigest(current), sights: await receipts.shown(ref, { current, retiring }) };
  }

  #question(state: FamilyState, now: Date): FamilyQuestion {
    const { current, next } = state;
    return {
      ...state,
      next: next?.chain[0],
      receipts: ca => this.#receipts.get(caDigest(ca)),
      presenters: () =>
        current !== undefined && this.#shown?.current === caDigest(current) ? this.#shown.sights : undefined,
      dayMs: this.#options.dayMs,
      now,
    };
  }

  /**
   * An operator that was overtaken since it decided must not make a leaf with a signer that is none any more, nor bring back a CA that has
   * left the bundle (W-1).
   */
  async #isSigner(ca: Certificate): Promise<boolean> {
    const { namespace, name } = this.#unit.signer;
    const secret = await this.#rotation.objects.read(SECRETS, { namespace, name });
    return certificatesIn(secret && dataText(secret, TLS_CERT))[0]?.der.equals(ca.der) === true;
  }

  async #isLeafAsSeen(): Promise<boolean> {
    const { namespace, name } = this.#unit.target;
    const leaf = await this.#rotation.objects.read(SECRETS, { namespace, name });
    return leaf?.metadata?.resourceVersion === this.#leafVersion;
  }

  async #signer(): Promise<SignerStep | undefined> {
    const { signer } = this.#family;
    const { onDecision } = this.#options;
    const now = this.#rotation.clock.now();
    const objects = await readFamily(this.#family, this.#rotation);
    this.#leafVersion = objects.leaves.find(({ metadata }) =>
      isSame(metadata, this.#unit.target),
    )?.metadata?.resourceVersion;
    const state = stateOf(objects, signer, now);
    const decision = decide(this.#question(state, now));
    const since = sinceOf(objects.next) ?? signedSince(state, decision);
    onDecision?.(this.#family, decision, since);
    switch (decision.write) {
      case 'begin':
      case 'begin-again':
        return this.#begin(objects, state, decision);
      case 'promote':
        return this.#promote(objects, state, decision, since ?? now);
      case 'replace':
        return this.#keep(undefined, decision, { others: othersIn(state) });
      case 'discard':
        if (!(await this.#forgetRequest(objects, state))) return undefined;
        return this.#keep('keep', decision, { dropped: state.next?.chain[0], clears: objects.next });
      case 'clear':
        if (state.isTakenBack && !(await this.#forgetRequest(objects, state))) return undefined;
        return this.#keep('keep', decision, { clears: objects.next });
      case 'retire':
        return this.#retire(objects, state, decision);
      case 'nothing': {
        const waiting =
          decision.phase === 'Distributing' || decision.leaves === 'hold' || decision.waitingFor.length > 0;
        if (decision.phase === 'Distributing') {
          const receipts = this.#receiptsOf(state.next?.chain[0]);
          if (receipts !== undefined) await this.#note(objects.next, { [RECEIPTS]: receipts });
        } else if (!(await this.#noteOnSigner(objects.signer, state, decision))) return undefined;
        const waitedMs = now.getTime() - (since ?? now).getTime();
        const againMs = Math.min(LONGEST_WAIT_MS, Math.max(SHORTEST_WAIT_MS, waitedMs / 10));
        const until = waiting ? new Date(now.getTime() + againMs) : undefined;
        if (objects.previous !== undefined && !isTrusted(state)) await this.#clear(objects.previous);
        return this.#keep('keep', decision, { next: state.isNextUnused ? state.next?.chain[0] : undefined, until });
      }
    }
  }

  /** Metadata and type of the signer are looked after in every phase. */
  async #keep(
    pair: SignerChoice['pair'] | undefined,
    decision: FamilyDecision,
    step: Partial<SignerStep> = {},
    seen?: SignerChoice['seen'],
    annotations?: SignerChoice['annotations'],
  ): Promise<SignerStep | undefined> {
    const choice = pair && { pair, seen, annotations };
    const others = async () => step.others ?? [];
    const result = await ensureSigner(this.#family.signer, this.#rotation, choice, others);
    if (result.outcome === 'lost') return undefined;
    const until = step.until ?? (result.decision.action === 'keep' ? result.decision.until : undefined);
    return { ...step, until, decision, current: result.signer, regenerated: result.regenerated };
  }

  async #begin(objects: FamilyObjects, state: FamilyState, decision: FamilyDecision): Promise<SignerStep | undefined> {
    const { signer } = this.#family;
    const now = this.#rotation.clock.now();
    const back = state.isTurnedRound ? state.previous : undefined;
    const names = { before: objects.signer, others: othersIn(state) };
    const pair = back ?? (await newSigner(signer, this.#rotation, decision.because, names));
    const before: Secret = objects.next ?? { metadata: nextKey(signer) };
    const made = withCertificate({ ...before, type: TLS_SECRET }, pair, 'signer', signer.refreshMs);
    // Nothing on it that upstream takes for the mark of a signer of its own (HO-4).
    const annotations = {
      [SINCE]: formatRfc3339(sinceOf(objects.next) ?? now),
      [BECAUSE]: decision.because,
      // A pair that signed before and is to sign again must never be taken for one that has signed nothing.
      ...(state.current && back === undefined && { [BESIDE]: caDigest(state.current) }),
    };
    const wanted = { ...made, metadata: { ...before.metadata, annotations } };
    const stored = await store(SECRETS, objects.next, wanted, this.#rotation);
    if (stored === undefined) return undefined;
    const soon = new Date(now.getTime() + SHORTEST_WAIT_MS);
    // A pair that signed before is in the bundle; has it left meanwhile, it does not come back.
    const announced = back === undefined ? pair.chain[0] : undefined;
    return this.#keep('keep', decision, { next: announced, until: soon, regenerated: true });
  }

  async #promote(
    objects: FamilyObjects,
    state: FamilyState,
    decision: FamilyDecision,
    since: Date,
  ): Promise<SignerStep | undefined> {
    const { signer } = this.#family;
    const { clock, events } = this.#rotation;
    const next = state.next as NonNullable<FamilyState['next']>;
    const took = formatGoDuration(Math.max(0, clock.now().getTime() - since.getTime()));
    // First, so that it is there whenever the new one signs (HO-6).
    if (!(await this.#keepPrevious(objects))) return undefined;
    // Cleared away by somebody else, its CA may have left the bundle.
    const stillNext = await this.#rotation.objects.read(SECRETS, nextKey(signer));
    if (stillNext?.metadata?.resourceVersion !== objects.next?.metadata?.resourceVersion) return undefined;
    const step = await this.#keep(
      next,
      decision,
      { clears: objects.next },
      { secret: objects.signer },
      // Who was seen to show leaves of this signer when it signed before may show others since then.
      { [TOOK]: took, [TURNED_ROUND]: undefined, [RECEIPTS]: undefined, [PRESENTERS]: undefined, [SHOWN]: undefined },
    );
    if (step === undefined) return undefined;
    const name = `"${signer.name}" in "${signer.namespace}"`;
    events.event(
      'Normal',
      'SignerInUseChanged',
      `${name} becomes "${next.chain[0]?.subject.commonName}" because ${decision.because}`,
    );
    tellLeftBehind(events, signer, decision.leftBehind);
    return step;
  }

  /** False: another writer was first. */
  async #keepPrevious({ signer, previous }: FamilyObjects): Promise<boolean> {
    if (signer?.data === undefined) return true;
    const { [TLS_CERT]: certificate = '', [TLS_KEY]: key = '' } = signer.data;
    const before: Secret = previous ?? { metadata: previousKey(this.#family.signer) };
    if (before.data?.[TLS_CERT] === certificate) return true;
    const wanted: Secret = { ...before, type: TLS_SECRET, data: { [TLS_CERT]: certificate, [TLS_KEY]: key } };
    return (await store(SECRETS, previous, wanted, this.#rotation)) !== undefined;
  }

  /** False: another writer was first. */
  async #forgetRequest({ signer, next }: FamilyObjects, state: FamilyState): Promise<boolean> {
    if (signer === undefined || next === undefined) return true;
    return (await store(SECRETS, signer, withoutRequest(signer, next, state), this.#rotation)) !== undefined;
  }

  /** From now on nobody looks any more (HO-11). */
  async #retire(
    { signer }: FamilyObjects,
    { current }: FamilyState,
    decision: FamilyDecision,
  ): Promise<SignerStep | undefined> {
    const notes = { [SHOWN]: caDigest(current as Certificate), [RECEIPTS]: undefined, [PRESENTERS]: undefined };
    const wanted = withAnnotations(signer as Secret, notes);
    if ((await store(SECRETS, signer, wanted, this.#rotation)) === undefined) return undefined;
    return this.#keep('keep', decision);
  }

  #receiptsOf(ca: Certificate | undefined): readonly Receipt[] | undefined {
    return ca && this.#receipts.get(caDigest(ca));
  }

  /** Who is waited for without a next signer: for leaves of one that somebody else put in place, or for what is shown. */
  #noteOnSigner(signer: Secret | undefined, { current }: FamilyState, decision: FamilyDecision): Promise<boolean> {
    const isHeld = decision.leaves === 'hold';
    const isForPresenters = !isHeld && decision.waitingFor.length > 0;
    return this.#note(signer, {
      [RECEIPTS]: isHeld ? this.#receiptsOf(current) : undefined,
      [PRESENTERS]: isForPresenters ? this.#shown?.sights : undefined,
    });
  }

  /** Who has answered stands on the Secret, for people; only what changed is written. False: another writer was first. */
  async #note(
    secret: Secret | undefined,
    notes: Readonly<Record<string, readonly Receipt[] | undefined>>,
  ): Promise<boolean> {
    if (secret === undefined) return true;
    const texts = Object.entries(notes).map(([name, receipts]) => [name, receipts && noteOf(receipts)]);
    const wanted = withAnnotations(secret, Object.fromEntries(texts));
    // Refused, it costs nothing but the sight of it.
    return (await store(SECRETS, secret, wanted, this.#rotation).catch(() => secret)) !== undefined;
  }

  async #clear(next: Secret): Promise<void> {
    const { uid, resourceVersion } = next.metadata ?? {};
    try {
      await this.#rotation.kube.delete(SECRETS, keyOf(next), { preconditions: { uid, resourceVersion } });
    } catch (error) {
      // Another pass was first, or the copy here was old: the next one looks again.
      if (!isNotFound(error) && !isConflict(error)) throw error;
    }
  }
}

const LOST = { outcome: 'lost' } as const;

interface SignerStep {
  readonly decision: FamilyDecision;
  readonly current: Parameters<typeof ensureTarget>[1];
  readonly next?: Certificate | undefined;
  readonly dropped?: Certificate | undefined;
  /** The Secret of a next signer that is not needed any more. */
  readonly clears?: Secret | undefined;
  readonly until?: Date | undefined;
  /** The CAs whose names a new signer must not have. */
  readonly others?: readonly Certificate[] | undefined;
  readonly regenerated: boolean;
}

function isSame(metadata: Secret['metadata'], { namespace, name }: { namespace: string; name: string }): boolean {
  return metadata?.namespace === namespace && metadata.name === name;
}

function othersIn({ bundle, next, previous }: FamilyState): Certificate[] {
  return [...bundle, ...[next, previous].flatMap(pair => pair?.chain[0] ?? [])];
}

/** Whether the pair before the current one can still be wanted back: its CA is in the bundle. */
function isTrusted({ previous, bundle }: FamilyState): boolean {
  return bundle.some(({ der }) => previous?.chain[0]?.der.equals(der));
}

function sinceOf(next: Secret | undefined): Date | undefined {
  const since = next && parseRfc3339(annotationsOf(next)[SINCE] ?? '');
  return since && floorToMs(since);
}
