import { builtinKinds } from './builtin.ts';
import type { Kind } from './kind.ts';
import { compareText, compareVersions } from './version-order.ts';

/** What is served at the moment: the built-in kinds, and those that CustomResourceDefinitions bring and take away. */
export class Registry {
  readonly #builtin: readonly Kind[] = builtinKinds();
  readonly #custom = new Map<string, readonly Kind[]>();
  #byPath = new Map<string, Kind>();
  #byBucket = new Map<string, Kind>();
  #all: readonly Kind[] = [];
  #version = 0;

  constructor() {
    this.#index();
  }

  /** Grows with every change; what is derived from the kinds can be kept until then. */
  get version(): number {
    return this.#version;
  }

  find(group: string, version: string, plural: string): Kind | undefined {
    return this.#byPath.get(`${group}/${version}/${plural}`);
  }

  /** Any version of a kind, as owner references name it. */
  findKind(group: string, kind: string): Kind | undefined {
    return this.#all.find(candidate => candidate.group === group && candidate.kind === kind && candidate.bucket !== '');
  }

  all(): readonly Kind[] {
    return this.#all;
  }

  /** One kind for each bucket: what a controller that looks at everything goes through. */
  stored(): Kind[] {
    return [...this.#byBucket.values()];
  }

  /** The kind whose objects are in a bucket, in the stored version if that is served. */
  ofBucket(bucket: string): Kind | undefined {
    return this.#byBucket.get(bucket);
  }

  /** The groups and versions served, core first, then in order of name; versions as Kubernetes ranks them. */
  groupVersions(): { group: string; version: string }[] {
    const seen = new Map<string, { group: string; version: string }>();
    for (const { group, version } of this.#all) seen.set(`${group}/${version}`, { group, version });
    return [...seen.values()].sort((a, b) => compareText(a.group, b.group) || compareVersions(a.version, b.version));
  }

  define(definitionName: string, kinds: readonly Kind[]): void {
    this.#custom.set(definitionName, kinds);
    this.#index();
  }

  undefine(definitionName: string): void {
    if (this.#custom.delete(definitionName)) this.#index();
  }

  #index(): void {
    this.#all = [...this.#builtin, ...[...this.#custom.values()].flat()];
    this.#byPath = new Map(this.#all.map(kind => [`${kind.group}/${kind.version}/${kind.plural}`, kind]));
    this.#byBucket = new Map();
    for (const kind of this.#all) {
      const better = kind.conversion === undefined || !this.#byBucket.has(kind.bucket);
      if (kind.bucket !== '' && better) this.#byBucket.set(kind.bucket, kind);
    }
    this.#version++;
  }
}
