import type { Certificate } from '../pki/certificate.ts';
import { decide, type FamilyDecision, type FamilyQuestion } from './decide.ts';
import { type Asked, type Leaf, type ModelNode, ModelNodes, nameOf, pick, type Random } from './model-nodes.ts';
import type { Receipt } from './receipt.ts';

/**
 * A family and everybody who has to do with it, in memory and without keys: objects, nodes whose files follow with delay, processes that
 * load them or do not, an operator that asks the real `decide` and may stop between any two of its writes, and others who write too.
 * Whatever happens is checked against spec 90; a rule that is broken throws.
 */
export class ModelWorld {
  /** What happened, for whoever has to understand a failure. */
  readonly story: string[] = [];
  nowMs = 0;
  #nextId = 1;
  #owner: 'ours' | 'upstream' = 'ours';
  #signer: Signer | undefined;
  #next: Next | undefined;
  #bundle: readonly Certificate[] = [];
  #lastTookMs = 0;
  /** The signer of which everybody was seen to show leaves. */
  #shown: Certificate | undefined;
  #isCalm = false;
  readonly #leaves: (Leaf | undefined)[] = LEAVES.map(() => undefined);
  readonly nodes: ModelNodes;
  readonly #random: Random;
  readonly #isTold: boolean;

  constructor(random: Random, isTold: boolean) {
    this.#random = random;
    this.#isTold = isTold;
    this.nodes = new ModelNodes(random, what => this.#tell(what));
    for (let count = 0; count < 2; count++) this.addNode();
    for (let round = 0; round < 2; round++) this.#settleOnce();
  }

  /** Everybody is ready and does what is theirs to do: any hand-over ends within these rounds, two of them if one was queued. */
  settle(): void {
    this.#tell('everybody is ready');
    this.#owner = 'ours';
    this.#isCalm = true;
    for (let round = 0; round < ROUNDS_TO_SETTLE; round++) {
      this.#settleOnce();
      if (this.#isOver()) return;
    }
    this.#fail('with everybody ready it does not end');
  }

  #isOver(): boolean {
    const question = this.#question(this.#ask(), this.#look());
    const { phase } = decide(question);
    const { next, due } = question;
    return (phase === 'Steady' || phase === 'Retiring') && next === undefined && due === undefined;
  }

  #settleOnce(): void {
    this.nodes.catchUp(this.#bundle, this.#leaves);
    this.nowMs += SECOND;
    for (const index of LEAVES.keys()) this.pass(index, Number.POSITIVE_INFINITY);
    this.check();
  }

  /** A whole number below this. */
  chance(below: number): number {
    return Math.floor(this.#random() * below);
  }

  passTime(ms: number): void {
    this.nowMs += ms;
    this.#tell(`${ms} ms pass`);
  }

  /** A pass of whoever looks after the family at this moment; it stops after so many writes. */
  pass(index: number, writes: number): void {
    const stop = new Stop();
    let left = writes;
    const write = (what: string, act: () => void) => {
      if (left-- <= 0) throw stop;
      this.#tell(`${this.#owner}: ${what}`);
      act();
      this.check();
    };
    try {
      if (this.#owner === 'ours') this.#ourPass(index, write);
      else this.#upstreamPass(index, write);
    } catch (error) {
      if (error !== stop) throw error;
      this.#tell(`${this.#owner} stops`);
    }
  }

  /** The writes of `syncByReceipts`, in their order. */
  #ourPass(index: number, write: Write): void {
    const receipts = this.#ask();
    const looked = this.#look();
    const asked = { receipts, lastTookMs: this.#lastTookMs };
    // Asking takes a while, in which the world goes on.
    if (!this.#isCalm && this.#random() < 0.2) pick(MEANWHILE, this.#random)(this);
    const question = this.#question(receipts, looked);
    const decision = decide(question);
    this.#tell(`decided: ${decision.phase} ${decision.write} ${decision.leaves}: ${decision.because}`);
    const { next, current: before } = question;
    if (before !== undefined && next !== undefined && decision.write === 'nothing' && this.#bundle.includes(next)) {
      if (endOf(before) - this.nowMs <= DAY) this.#fail('a signer is let end while another one waits (HO-7)');
    }
    const isKnown = before !== undefined && this.#bundle.includes(before);
    let dropped: Certificate | undefined;
    let held = next;
    let isCleared = false;
    switch (decision.write) {
      case 'begin':
      case 'begin-again': {
        if (next !== undefined && this.nowMs < next.notAfter.getTime() - lifeOf(next) / 5)
          this.#fail('a second one begins while one waits (HO-5)');
        const ca = this.#newCA();
        held = ca;
        write(`next is ${nameOf(ca)}`, () => {
          this.#next = { ca, sinceMs: this.#next?.sinceMs ?? this.nowMs, isTakenBack: false, beside: before };
        });
        break;
      }
      case 'promote': {
        const ca = next as Certificate;
        if (question.current !== undefined) {
          if (question.isTakenBack) this.#fail(`${nameOf(ca)} was taken back (HO-6)`);
          if (question.due === undefined) this.#fail(`${nameOf(ca)} replaces a good signer needlessly (HO-4)`);
          this.#checkSigning(ca, asked, decision, endOf(question.current));
        }
        const tookMs = this.nowMs - (this.#next?.sinceMs ?? this.nowMs);
        held = undefined;
        isCleared = true;
        write(`${nameOf(ca)} becomes the signer`, () => {
          this.#signer = { ca, isForced: false };
          this.#lastTookMs = tookMs;
        });
        break;
      }
      case 'replace': {
        const ca = this.#newCA();
        write(`${nameOf(ca)} takes the place of one that is not there`, () => {
          this.#signer = { ca, isForced: false };
        });
        break;
      }
      case 'discard':
        dropped = next;
        held = undefined;
        isCleared = true;
        break;
      case 'clear':
        held = undefined;
        isCleared = true;
        break;
      case 'retire':
        write(`everybody shows leaves of ${nameOf(before as Certificate)}`, () => {
          this.#shown = before;
          // Those who were waived when somebody looked; `remove-old-trust` looks at them again.
          const waived = new Set(looked.flatMap(({ node, isWaived }) => (isWaived ? [node] : [])));
          for (const node of this.nodes)
            if (waived.has(node.name)) node.refusedOf = [...node.refusedOf, ...question.retiring];
        });
        break;
      case 'nothing':
        break;
    }
    const current = (this.#signer as Signer).ca;
    const bundle = this.#bundleWith(current, held, dropped);
    if (!isSame(bundle, this.#bundle)) write(`bundle ${bundle.map(nameOf).join()}`, () => (this.#bundle = bundle));
    if (isCleared) write('next is cleared away', () => (this.#next = undefined));
    this.#ourLeaf(index, current, asked, decision, write);
    const leaf = this.#leaves[index];
    if (isKnown && before === current && leaf?.issuer !== current && (leaf?.notAfterMs ?? 0) - this.nowMs <= DAY)
      this.#fail(`leaf ${index} is let end (HO-7)`);
  }

  #ourLeaf(index: number, ca: Certificate, asked: PassStart, decision: FamilyDecision, write: Write): void {
    const leaf = this.#leaves[index];
    const isNeeded = leaf === undefined || leaf.notAfterMs < this.nowMs || !this.#bundle.includes(leaf.issuer);
    const isOfAnother = leaf !== undefined && leaf.issuer !== ca;
    const isWanted = isOfAnother ? decision.leaves === 'follow' : leaf !== undefined && this.#isLeafDue(leaf);
    if (!isNeeded && !isWanted) return;
    let excused: Leaf['excused'] = 'everybody';
    if (!isNeeded) {
      const ends = this.#leaves.map(other => other?.notAfterMs ?? 0).filter(end => end >= this.nowMs);
      excused = isOfAnother ? this.#checkSigning(ca, asked, decision, Math.min(...ends)) : leaf.excused;
    }
    this.#writeLeaf(index, ca, excused, write);
  }

  /** HO-2 and its exceptions, judged without `decide`; gives who is left without the CA, by name. */
  #checkSigning(
    ca: Certificate,
    { receipts, lastTookMs }: PassStart,
    { leftBehind }: FamilyDecision,
    endMs: number,
  ): ReadonlySet<string> {
    const missing = (receipts.get(ca) ?? []).filter(({ isLoaded }) => !isLoaded);
    const unexcused = missing.filter(({ isWaived }) => !isWaived);
    const told = leftBehind.map(({ verifier }) => verifier).join();
    if (unexcused.length > 0) {
      const names = unexcused.map(({ verifier }) => verifier).join();
      if (told !== names)
        this.#fail(`${nameOf(ca)} signs, ${names} have no receipt for it (HO-2), and "${told}" are told`);
      const longestMs = Math.max(DAY, Math.min(3 * lastTookMs, SIGNER_LIFE / 5));
      if (endMs - this.nowMs > longestMs) this.#fail(`${names} are left behind, and there was time (HO-7)`);
    } else if (told !== '') this.#fail(`${told} are told to be left behind, and are not`);
    return new Set(missing.map(({ verifier }) => verifier));
  }

  /** Spec 10: signer in place, bundle, leaf after a tenth of the refresh time. It knows nothing of a next one. */
  #upstreamPass(index: number, write: Write): void {
    if (this.#signer === undefined || this.#dueOf(this.#signer) !== undefined || endOf(this.#signer.ca) < this.nowMs) {
      const ca = this.#newCA();
      write(`the signer becomes ${nameOf(ca)}`, () => (this.#signer = { ca, isForced: false }));
    }
    const { ca } = this.#signer as Signer;
    const bundle = this.#bundleWith(ca);
    if (!isSame(bundle, this.#bundle)) write(`bundle ${bundle.map(nameOf).join()}`, () => (this.#bundle = bundle));
    const leaf = this.#leaves[index];
    const isOldEnough = this.nowMs - ca.notBefore.getTime() > LEAF_REFRESH / 10;
    const isWanted =
      leaf === undefined ||
      leaf.notAfterMs < this.nowMs ||
      !this.#bundle.includes(leaf.issuer) ||
      (this.#isLeafDue(leaf) && isOldEnough);
    if (isWanted) this.#writeLeaf(index, ca, 'everybody', write);
  }

  /** The recovery controller: what cannot be used is replaced in place, beside whoever leads (spec 20, 5.2). */
  recover(writes: number): void {
    const isUseless = this.#signer === undefined || this.#signer.isForced || endOf(this.#signer.ca) < this.nowMs;
    if (!isUseless || writes === 0) return;
    const ca = this.#newCA();
    this.#tell(`recovery: the signer becomes ${nameOf(ca)}`);
    this.#signer = { ca, isForced: false };
    if (writes === 1) return;
    this.#bundle = this.#bundleWith(ca);
    this.check();
    for (const [index, leaf] of this.#leaves.entries()) {
      if (leaf === undefined || leaf.notAfterMs < this.nowMs)
        this.#writeLeaf(index, ca, 'everybody', (_, act) => act());
    }
  }

  request(): void {
    if (this.#signer === undefined) return;
    this.#tell('somebody asks for a new signer');
    this.#signer.isForced = true;
  }

  /** `remove-old-trust`, by somebody who goes by the phase. */
  removeOldTrust(): void {
    const question = this.#question(this.#ask(), undefined);
    if (decide(question).phase !== 'Retiring') return;
    this.#tell(`somebody removes ${question.retiring.map(nameOf).join()}`);
    this.#bundle = this.#bundle.filter(ca => !question.retiring.includes(ca));
  }

  takeBack(): void {
    if (this.#next === undefined || decide(this.#question(this.#ask(), undefined)).phase !== 'Distributing') return;
    this.#tell('somebody takes it back');
    this.#next.isTakenBack = true;
    if (this.#signer !== undefined) this.#signer.isForced = false;
  }

  loseSigner(): void {
    this.#tell('the signer is lost');
    this.#signer = undefined;
  }

  changeOwner(): void {
    this.#owner = this.#owner === 'ours' ? 'upstream' : 'ours';
    this.#tell(`${this.#owner} takes over`);
  }

  addNode(): void {
    this.nodes.add(this.#bundle, this.#leaves);
  }

  switchNode(): void {
    this.nodes.switch(this.#bundle);
  }

  deliver(): void {
    this.nodes.deliver(this.#bundle);
  }

  show(): void {
    this.nodes.show(this.#leaves);
  }

  loseLeaf(): void {
    this.#tell('a leaf is lost');
    this.#leaves[this.chance(LEAVES.length)] = undefined;
  }

  /** What must be true at every moment. */
  check(): void {
    for (const node of this.nodes) {
      for (const leaf of node.shown) {
        if (leaf === undefined || leaf.notAfterMs <= this.nowMs) continue;
        const isTrusted = this.#bundle.includes(leaf.issuer);
        if (!isTrusted && node.refusedOf.includes(leaf.issuer)) continue;
        if (!isTrusted)
          this.#fail(`${node.name} shows a leaf of ${nameOf(leaf.issuer)}, which has left the bundle (HO-3)`);
        if (leaf.excused !== 'everybody') this.#checkAccepted(node, leaf, leaf.excused);
      }
    }
  }

  #checkAccepted(presenter: ModelNode, { issuer }: Leaf, excused: ReadonlySet<string>): void {
    for (const { verifiers } of this.nodes) {
      for (const { name, isRunning, loaded } of verifiers) {
        if (!isRunning || loaded.includes(issuer) || excused.has(name)) continue;
        this.#fail(`${name} refuses the leaf of ${nameOf(issuer)} that ${presenter.name} shows`);
      }
    }
  }

  #look(): Receipt[] {
    return this.nodes.look(this.#bundle.filter(ca => ca !== this.#signer?.ca));
  }

  #ask(): Asked {
    const known = [this.#signer?.ca, this.#next?.ca].filter(ca => ca !== undefined);
    return this.nodes.ask(new Set([...this.#bundle, ...known]));
  }

  /** As `stateOf` reads it from objects. */
  #question(receipts: Asked, looked: readonly Receipt[] | undefined): FamilyQuestion {
    const current = this.#signer && endOf(this.#signer.ca) >= this.nowMs ? this.#signer.ca : undefined;
    const next = this.#next && endOf(this.#next.ca) >= this.nowMs ? this.#next.ca : undefined;
    return {
      current,
      next,
      due: this.#dueOf(this.#signer),
      isTakenBack: this.#next?.isTakenBack ?? false,
      isTurnedRound: false,
      isNextUnused: current !== undefined && this.#next?.beside === current,
      leaves: this.#leaves.flatMap((leaf, index) =>
        leaf === undefined || leaf.notAfterMs < this.nowMs
          ? []
          : [
              {
                name: `leaf ${index}`,
                isOfCurrent: leaf.issuer === current,
                notBefore: new Date(leaf.notBeforeMs),
                notAfter: new Date(leaf.notAfterMs),
              },
            ],
      ),
      bundle: this.#bundle,
      retiring: this.#bundle.filter(ca => ca !== current && ca !== next && endOf(ca) > this.nowMs),
      receipts: ca => receipts.get(ca),
      isShown: current !== undefined && this.#shown === current,
      presenters: () => looked,
      lastTookMs: this.#lastTookMs,
      dayMs: DAY,
      now: new Date(this.nowMs),
    };
  }

  #dueOf(signer: Signer | undefined): string | undefined {
    if (signer === undefined) return 'it does not exist';
    if (signer.isForced) return 'somebody asked';
    return this.nowMs - signer.ca.notBefore.getTime() > SIGNER_REFRESH ? 'past its refresh time' : undefined;
  }

  #isLeafDue({ notBeforeMs, notAfterMs }: Leaf): boolean {
    return this.nowMs > Math.min(notBeforeMs + LEAF_REFRESH, notAfterMs - (notAfterMs - notBeforeMs) / 5);
  }

  #bundleWith(current: Certificate, next?: Certificate, dropped?: Certificate): readonly Certificate[] {
    const wanted = new Set([...this.#bundle, current, ...(next === undefined ? [] : [next])]);
    return [...wanted].filter(ca => ca !== dropped && endOf(ca) > this.nowMs);
  }

  #writeLeaf(index: number, issuer: Certificate, excused: Leaf['excused'], write: Write): void {
    const notAfterMs = Math.min(this.nowMs + LEAF_LIFE, endOf(issuer));
    const leaf: Leaf = { issuer, notBeforeMs: this.nowMs, notAfterMs, excused };
    write(`leaf ${index} is of ${nameOf(issuer)}`, () => (this.#leaves[index] = leaf));
  }

  #newCA(): Certificate {
    const id = this.#nextId++;
    return {
      der: Buffer.of(id >> 8, id & 0xff),
      subject: { commonName: `ca${id}` },
      notBefore: new Date(this.nowMs),
      notAfter: new Date(this.nowMs + SIGNER_LIFE),
    } as Certificate;
  }

  #tell(what: string): void {
    if (this.#isTold) this.story.push(`${this.nowMs} ${what}`);
  }

  #fail(what: string): never {
    this.#tell(`BROKEN: ${what}`);
    throw new Error(what);
  }
}

interface Signer {
  readonly ca: Certificate;
  isForced: boolean;
}

interface Next {
  readonly ca: Certificate;
  readonly beside: Certificate | undefined;
  readonly sinceMs: number;
  isTakenBack: boolean;
}

/** What an operator knows when its pass begins. */
interface PassStart {
  readonly receipts: Asked;
  readonly lastTookMs: number;
}

type Write = (what: string, act: () => void) => void;

/** The operator is gone. */
class Stop extends Error {}

const SECOND = 1;
export const DAY = 1000 * SECOND;
const SIGNER_LIFE = 30 * DAY;
const SIGNER_REFRESH = 15 * DAY;
const LEAF_LIFE = 15 * DAY;
const LEAF_REFRESH = 7 * DAY;
const ROUNDS_TO_SETTLE = 10;
export const LEAVES = ['a', 'b', 'c'] as const;
export type Happening = (world: ModelWorld) => void;

/** What happens in the world whether or not somebody looks after the family. */
const MEANWHILE: readonly Happening[] = [
  world => world.deliver(),
  world => world.nodes.reload(),
  world => world.nodes.switchVerifier(),
  world => world.nodes.report(),
  world => world.show(),
  world => world.switchNode(),
  world => world.addNode(),
  world => world.nodes.delete(),
];

function endOf({ notAfter }: Certificate): number {
  return notAfter.getTime();
}

function lifeOf({ notBefore, notAfter }: Certificate): number {
  return notAfter.getTime() - notBefore.getTime();
}

function isSame(a: readonly Certificate[], b: readonly Certificate[]): boolean {
  return a.length === b.length && a.every((ca, index) => ca === b[index]);
}
