import type { Certificate } from '../pki/certificate.ts';
import type { Receipt } from './receipt.ts';

/** The nodes of a model: files that follow with delay, processes that have loaded them or not, and what is shown from there. */
export class ModelNodes {
  readonly #nodes = new Map<string, ModelNode>();
  readonly #random: Random;
  readonly #tell: (what: string) => void;
  #count = 0;

  constructor(random: Random, tell: (what: string) => void) {
    this.#random = random;
    this.#tell = tell;
  }

  [Symbol.iterator](): Iterator<ModelNode> {
    return this.#nodes.values();
  }

  /** A node that joins has the files of that moment. */
  add(bundle: readonly Certificate[], leaves: readonly (Leaf | undefined)[]): void {
    if (this.#nodes.size === MOST_NODES) return;
    const name = `n${++this.#count}`;
    const verifiers = VERIFIERS.map(
      ({ process, kind, isReloading }): ModelVerifier => ({
        name: `${process} on ${name}`,
        kind,
        isReloading,
        isRunning: true,
        loaded: bundle,
        reported: [],
      }),
    );
    this.#tell(`${name} is added`);
    const shown = [...leaves];
    const node = { name, isUp: true, isWaived: false, file: bundle, verifiers, shown, saidShown: [], refusedOf: [] };
    this.#nodes.set(name, node);
  }

  delete(): void {
    if (this.#nodes.size === 1) return;
    const { name } = this.#any();
    this.#tell(`${name} is deleted`);
    this.#nodes.delete(name);
  }

  /** Away it can neither be asked nor reached; its processes may run on. Back, it gets its files before anything else (HO-8). */
  switch(bundle: readonly Certificate[]): void {
    const node = this.#any();
    node.isUp = !node.isUp;
    this.#tell(`${node.name} ${node.isUp ? 'comes back' : 'goes away'}`);
    if (node.isUp) {
      node.isWaived = false;
      node.file = bundle;
    } else if (this.#random() < 0.5) for (const verifier of node.verifiers) verifier.isRunning = false;
  }

  waive(): void {
    const node = this.#any();
    this.#tell(`${node.name} is waived`);
    node.isWaived = true;
  }

  deliver(bundle: readonly Certificate[]): void {
    const node = this.#any();
    if (node.isUp) node.file = bundle;
  }

  /** A process that reads again by itself. */
  reload(): void {
    const { node, verifier } = this.#anyVerifier();
    if (verifier.isRunning && verifier.isReloading) verifier.loaded = node.file;
  }

  /** A process ends, or begins with what its file holds then (HO-10). */
  switchVerifier(): void {
    const { node, verifier } = this.#anyVerifier();
    verifier.isRunning = !verifier.isRunning;
    if (verifier.isRunning) verifier.loaded = node.file;
    this.#tell(`${verifier.name} ${verifier.isRunning ? `starts with ${node.file.map(nameOf).join()}` : 'dies'}`);
  }

  /** The agent of a node writes what it sees. Until then its last words stand. */
  report(): void {
    const node = this.#any();
    if (!node.isUp) return;
    for (const verifier of node.verifiers) verifier.reported = verifier.isRunning ? verifier.loaded : [];
    node.saidShown = [...node.shown];
  }

  forgetReports(): void {
    const node = this.#any();
    for (const verifier of node.verifiers) verifier.reported = [];
    node.saidShown = [];
  }

  show(leaves: readonly (Leaf | undefined)[]): void {
    const node = this.#any();
    const index = Math.floor(this.#random() * leaves.length);
    if (node.isUp) node.shown[index] = leaves[index];
  }

  /** Everybody has what there is, and runs. */
  catchUp(bundle: readonly Certificate[], leaves: readonly (Leaf | undefined)[]): void {
    for (const node of this) {
      node.isUp = true;
      node.file = bundle;
      for (const verifier of node.verifiers) {
        Object.assign(verifier, { isRunning: true, loaded: bundle, reported: bundle });
      }
      node.shown = [...leaves];
      node.saidShown = [...leaves];
    }
  }

  /** What everybody says about these CAs at this moment. */
  ask(cas: Iterable<Certificate>): Asked {
    const about = (ca: Certificate) =>
      [...this].flatMap(node =>
        node.verifiers.map(({ name, kind, isRunning, loaded, reported }): Receipt => {
          const isLoaded = kind === 'asked' ? node.isUp && isRunning && loaded.includes(ca) : reported.includes(ca);
          return { verifier: name, node: node.name, kind, isLoaded, evidence: '', isWaived: node.isWaived };
        }),
      );
    return new Map([...cas].map(ca => [ca, about(ca)]));
  }

  /** Who is seen to show nothing that these have signed: the first leaf is a server's, the others are reported. */
  look(older: readonly Certificate[]): Receipt[] {
    return [...this].flatMap(node =>
      node.shown.map((served, index): Receipt => {
        const isServed = index === 0;
        const leaf = isServed ? served : node.saidShown[index];
        const isSeen = isServed ? node.isUp : node.saidShown.length > 0;
        return {
          verifier: `leaf ${index} on ${node.name}`,
          node: node.name,
          kind: isServed ? 'asked' : 'reported',
          isLoaded: isSeen && (leaf === undefined || !older.includes(leaf.issuer)),
          evidence: '',
          isWaived: node.isWaived,
        };
      }),
    );
  }

  #any(): ModelNode {
    return pick([...this], this.#random);
  }

  #anyVerifier(): { readonly node: ModelNode; readonly verifier: ModelVerifier } {
    const node = this.#any();
    return { node, verifier: pick(node.verifiers, this.#random) };
  }
}

/** Numbers from 0 to 1 that a seed determines. */
export type Random = () => number;

export function randomOf(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export interface Leaf {
  readonly issuer: Certificate;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  /** Who may refuse it: those who were left behind by name; everybody where it was not ours to wait. */
  readonly excused: ReadonlySet<string> | 'everybody';
}

export interface ModelNode {
  readonly name: string;
  isUp: boolean;
  isWaived: boolean;
  /** The bundle as the node has it. */
  file: readonly Certificate[];
  readonly verifiers: readonly ModelVerifier[];
  /** What is shown from here. */
  shown: (Leaf | undefined)[];
  /** The same as its agent said last. */
  saidShown: readonly (Leaf | undefined)[];
  /** CAs that may be taken away although something of theirs is shown here: the node was waived. */
  refusedOf: readonly Certificate[];
}

interface ModelVerifier {
  readonly name: string;
  readonly kind: 'asked' | 'reported';
  readonly isReloading: boolean;
  isRunning: boolean;
  loaded: readonly Certificate[];
  reported: readonly Certificate[];
}

export type Asked = ReadonlyMap<Certificate, readonly Receipt[]>;
const MOST_NODES = 4;
const VERIFIERS = [
  { process: 'kube-apiserver', kind: 'asked', isReloading: true },
  { process: 'kubelet', kind: 'asked', isReloading: false },
  { process: 'scheduler', kind: 'reported', isReloading: false },
] as const;

export function pick<T>(all: readonly T[], random: Random): T {
  return all[Math.floor(random() * all.length)] as T;
}

export function nameOf({ subject }: Certificate): string {
  return subject.commonName;
}
