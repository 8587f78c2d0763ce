import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { isNotFound } from '../../src/kube/error.ts';
import type { Kube } from '../../src/kube/port.ts';
import { CONFIG_MAPS, NAMESPACES } from '../../src/kube/resource.ts';
import { below, type Random } from './seeded.ts';

interface Key {
  readonly namespace: string;
  readonly name: string;
}

const NAMESPACE_COUNT = 3;
const NAMES_PER_NAMESPACE = 60;
const MOST_AT_ONCE = 12;
const FINALIZER = 'rotunda.dev/held';
/** Characters of one to four bytes: a stream may be cut within any of them. */
const LETTERS = ['a', 'ß', '鍵', '🔑'];

/** Changes ConfigMaps at random, several at once, and keeps what the API answered. */
export class Mutations {
  /** Writes the API acknowledged. */
  count = 0;
  /** What it returned, by resourceVersion; deletions return nothing. */
  readonly acknowledged = new Map<string, ConfigMap>();
  readonly #kube: Kube;
  readonly #random: Random;
  #bursts: Promise<void> = Promise.resolve();

  constructor(kube: Kube, random: Random) {
    this.#kube = kube;
    this.#random = random;
  }

  async begin(): Promise<void> {
    for (let i = 0; i < NAMESPACE_COUNT; i++) {
      await this.#kube.create(NAMESPACES, { metadata: { name: `ns-${i}` } });
    }
    // More than fits on a page of the first list.
    for (let i = 0; i < 20; i++) await this.burst();
  }

  /** Changes up to a dozen objects at the same time, each in its own way; after what others have asked for is done. */
  burst(): Promise<void> {
    this.#bursts = this.#bursts.then(() => this.#burst());
    return this.#bursts;
  }

  /** Resolves when everything that was asked for is done. */
  settled(): Promise<void> {
    return this.#bursts;
  }

  async #burst(): Promise<void> {
    const keys = new Map<string, Key>();
    for (let left = 1 + below(this.#random, MOST_AT_ONCE); left > 0; left--) {
      const namespace = `ns-${below(this.#random, NAMESPACE_COUNT)}`;
      const name = `c${below(this.#random, NAMES_PER_NAMESPACE)}`;
      keys.set(`${namespace}/${name}`, { namespace, name });
    }
    await Promise.all(Array.from(keys.values(), key => this.#change(key, this.#random(), this.#content())));
  }

  async #change(key: Key, dice: number, content: Pick<ConfigMap, 'data'>): Promise<void> {
    const found = await this.#kube.get(CONFIG_MAPS, key).catch((error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw error;
    });
    const labels = { tier: dice < 0.5 ? 'gold' : 'lead' };
    if (found === undefined) return this.#created({ metadata: { ...key, labels }, ...content });
    if (found.metadata?.deletionTimestamp !== undefined) return this.#released(key);
    if (dice < 0.35) return this.#answered(this.#kube.update(CONFIG_MAPS, { ...found, ...content }));
    if (dice < 0.55) return this.#patched(key, content);
    if (dice < 0.65) return this.#patched(key, { metadata: { labels: { tier: dice < 0.6 ? 'gold' : 'lead' } } });
    if (dice < 0.7) return this.#patched(key, { metadata: { finalizers: [FINALIZER] } });
    await this.#kube.delete(CONFIG_MAPS, key);
    this.count++;
    // Another object under the same name, with no time in between.
    const isHeld = found.metadata?.finalizers !== undefined;
    if (dice > 0.9 && !isHeld) await this.#created({ metadata: { ...key, labels }, ...content });
  }

  #created(object: ConfigMap): Promise<void> {
    return this.#answered(this.#kube.create(CONFIG_MAPS, object));
  }

  #patched(key: Key, body: object): Promise<void> {
    return this.#answered(this.#kube.patch(CONFIG_MAPS, key, { type: 'merge', body }));
  }

  /** Ends a deletion that was held back. */
  async #released(key: Key): Promise<void> {
    await this.#kube.patch(CONFIG_MAPS, key, { type: 'merge', body: { metadata: { finalizers: null } } });
    this.count++;
  }

  async #answered(call: Promise<ConfigMap>): Promise<void> {
    const object = await call;
    const version = object.metadata?.resourceVersion ?? '';
    // What changes nothing gets the version that was there already.
    if (!this.acknowledged.has(version)) this.count++;
    this.acknowledged.set(version, object);
  }

  #content(): Pick<ConfigMap, 'data'> {
    const letter = LETTERS[below(this.#random, LETTERS.length)] ?? '';
    return { data: { n: String(this.#random()), text: letter.repeat(below(this.#random, 200)) } };
  }
}
