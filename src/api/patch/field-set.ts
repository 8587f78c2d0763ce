/**
 * A set of fields of an object, as a tree. A step is written as in FieldsV1: `f:name` for a field, `k:{"name":"x"}` for
 * an element known by keys, `v:"x"` for an element of a set, `i:0` for an index.
 */
export class FieldSet {
  /** Most sets are leaves: a map of their own only when there is something in it. */
  #nodes: ReadonlyMap<string, Node> = NO_NODES;

  static of(...paths: readonly (readonly string[])[]): FieldSet {
    const set = new FieldSet();
    for (const path of paths) set.insert(path);
    return set;
  }

  get isEmpty(): boolean {
    return this.#nodes.size === 0;
  }

  /** Adds a path while the set is being built. */
  insert(path: readonly string[]): void {
    this.#graftPath(path, 0, true, new FieldSet());
  }

  /** Adds a path and a whole tree below it while the set is being built. */
  graftAt(path: readonly string[], children: FieldSet): void {
    this.#graftPath(path, 0, true, children);
  }

  /** Adds a whole tree below a path, but not the path itself. */
  graftBelow(path: readonly string[], children: FieldSet): void {
    if (!children.isEmpty) this.#graftPath(path, 0, false, children);
  }

  /** Adds a whole tree below a step while the set is being built; an empty tree adds nothing unless `member`. */
  graft(step: string, member: boolean, children: FieldSet): void {
    if (!member && children.isEmpty) return;
    const known = this.#nodes.get(step);
    if (known === undefined) this.#set(step, { member, children });
    else this.#set(step, { member: known.member || member, children: known.children.union(children) });
  }

  hasMember(step: string): boolean {
    return this.#nodes.get(step)?.member ?? false;
  }

  /** The fields below a step. */
  below(step: string): FieldSet {
    return this.#nodes.get(step)?.children ?? EMPTY;
  }

  /** The steps of the first level, sorted; whether the step itself is in the set; what is below. */
  entries(): { step: string; member: boolean; children: FieldSet }[] {
    return [...this.#nodes]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([step, { member, children }]) => ({ step, member, children }));
  }

  /** Every path of the set, sorted. */
  *paths(prefix: readonly string[] = []): Generator<string[]> {
    for (const { step, member, children } of this.entries()) {
      const path = [...prefix, step];
      if (member) yield path;
      yield* children.paths(path);
    }
  }

  union(other: FieldSet): FieldSet {
    if (other.isEmpty) return this;
    if (this.isEmpty) return other;
    const result = new FieldSet();
    for (const [step, { member, children }] of this.#nodes) result.graft(step, member, children);
    for (const [step, { member, children }] of other.#nodes) result.graft(step, member, children);
    return result;
  }

  intersection(other: FieldSet): FieldSet {
    const result = new FieldSet();
    for (const [step, { member, children }] of this.#nodes) {
      const theirs = other.#nodes.get(step);
      if (theirs !== undefined) result.graft(step, member && theirs.member, children.intersection(theirs.children));
    }
    return result;
  }

  /** Without the paths of the other set; what lies below such a path stays. */
  difference(other: FieldSet): FieldSet {
    if (other.isEmpty) return this;
    const result = new FieldSet();
    for (const [step, { member, children }] of this.#nodes) {
      const theirs = other.#nodes.get(step);
      if (theirs === undefined) result.graft(step, member, children);
      else result.graft(step, member && !theirs.member, children.difference(theirs.children));
    }
    return result;
  }

  /** Without the paths of the other set and everything below them. */
  without(other: FieldSet): FieldSet {
    if (other.isEmpty) return this;
    const result = new FieldSet();
    for (const [step, { member, children }] of this.#nodes) {
      const theirs = other.#nodes.get(step);
      if (theirs === undefined) result.graft(step, member, children);
      else if (!theirs.member) result.graft(step, member, children.without(theirs.children));
    }
    return result;
  }

  equals(other: FieldSet): boolean {
    if (this.#nodes.size !== other.#nodes.size) return false;
    for (const [step, { member, children }] of this.#nodes) {
      const theirs = other.#nodes.get(step);
      if (theirs === undefined || theirs.member !== member || !theirs.children.equals(children)) return false;
    }
    return true;
  }

  #graftPath(path: readonly string[], from: number, member: boolean, children: FieldSet): void {
    const step = path[from];
    if (step === undefined) {
      for (const { step, member, children: below } of children.entries()) this.graft(step, member, below);
    } else if (from === path.length - 1) {
      this.graft(step, member, children);
    } else {
      this.#node(step).children.#graftPath(path, from + 1, member, children);
    }
  }

  #node(step: string): Node {
    let node = this.#nodes.get(step);
    if (node === undefined) {
      node = { member: false, children: new FieldSet() };
      this.#set(step, node);
    }
    return node;
  }

  #set(step: string, node: Node): void {
    if (this.#nodes === NO_NODES) this.#nodes = new Map();
    (this.#nodes as Map<string, Node>).set(step, node);
  }
}

const NO_NODES: ReadonlyMap<string, Node> = new Map();

interface Node {
  member: boolean;
  readonly children: FieldSet;
}

/** Nothing; never inserted into. */
const EMPTY = new FieldSet();
