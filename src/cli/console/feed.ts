import { randomBytes } from 'node:crypto';
import { LiveSource, type ObjectChange } from '../../inventory/live-source.ts';
import type { ObjectSource } from '../../inventory/source.ts';
import { type Clock, sleep, systemClock } from '../../kube/clock.ts';
import { seconds } from '../../kube/duration.ts';
import { KubeError } from '../../kube/error.ts';
import type { Kube } from '../../kube/port.ts';
import type { ProberSnapshot } from '../../trust/prober.ts';
import { happeningsOf } from '../monitor/changes.ts';
import { holdsKeyMaterial } from './key-material.ts';
import { type About, type ChangeItem, idOf, type Patch, SECTIONS, type Section, type Snapshot } from './model.ts';
import { type ReadModel, readModel } from './read.ts';

/** Gives the counters of live handshakes. */
export interface HandshakeSource {
  snapshot(): ProberSnapshot;
}

export interface FeedOptions {
  readonly kube: Kube;
  /** What the page calls the cluster. */
  readonly server: string;
  readonly prober?: HandshakeSource | undefined;
  readonly clock?: Clock | undefined;
  /** The API does not take the credentials any more. */
  readonly onUnauthorized?: (() => void) | undefined;
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** One message of the stream; ids grow by one. */
export interface FeedMessage {
  readonly id: string;
  readonly event: 'snapshot' | 'patch';
  /** JSON. */
  readonly data: string;
}

/** Changes come in swarms; they are told together. */
const GATHER_MS = 150;
/** Due times pass without any change of an object. */
const LONGEST_PAUSE_MS = seconds(5);
/** Counters of handshakes go up all the time. */
const HANDSHAKE_PAUSE_MS = seconds(2);
/** At most a third of the time is spent on looking. */
const REST_FACTOR = 2;
/** Rights may be given later. */
const ASK_AGAIN_MS = seconds(60);
/** Messages that are kept for those whose connection broke. */
const KEPT_MESSAGES = 200;
const KEPT_LENGTH = 4 * 1024 * 1024;
const KEPT_CHANGES = 500;
/** More than this in one list is no page any more. */
const MOST_ITEMS = 20_000;

/** The live model of one identity: kept up to date by watches, told item by item. */
export class Feed {
  readonly source: ObjectSource;
  readonly #options: FeedOptions;
  readonly #clock: Clock;
  readonly #live: LiveSource;
  readonly #name = randomBytes(6).toString('hex');
  readonly #stop = new AbortController();
  readonly #listeners = new Set<(message: FeedMessage) => void>();
  /** Kinds this user may not list, and when that was asked. */
  readonly #denied = new Map<string, number>();
  #changes: ChangeItem[] = [];
  #changeCount = 0;
  #items: Items = emptyItems();
  #about = '';
  /** Grows with every change of an object. */
  #edition = 0;
  #read: { readonly edition: number; readonly atMs: number; readonly model: ReadModel } | undefined;
  #kept: FeedMessage[] = [];
  #last = 0;
  #wake = Promise.withResolvers<void>();
  #ready: Promise<void> | undefined;
  #run: Promise<void> = Promise.resolve();

  constructor(options: FeedOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#live = new LiveSource(options.kube, error => this.#failed(error));
    this.#live.subscribe(change => this.#changed(change));
    this.source = { warnings: [], list: async (...args) => this.#list(...args) };
  }

  /** Resolves when there is a model, up to date. Whoever comes after a failure tries again. */
  async start(): Promise<void> {
    this.#ready ??= this.#look().then(() => {
      this.#run = this.#keepLooking();
    });
    this.#ready.catch(() => {
      this.#ready = undefined;
    });
    await this.#ready;
    // While nobody listens nobody looks.
    if (this.#listeners.size === 0) await this.#look();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    this.#wake.resolve();
    await this.#live.stop();
    await this.#ready?.catch(() => {});
    await this.#run;
  }

  snapshot(): FeedMessage {
    const sections = Object.fromEntries(
      SECTIONS.map(section => [section, [...this.#items[section].values()].map(text => JSON.parse(text) as unknown)]),
    );
    const about = JSON.parse(this.#about) as About;
    const data = { now: this.#clock.now().toISOString(), about, sections } as unknown as Snapshot;
    return { id: `${this.#name}-${this.#last}`, event: 'snapshot', data: JSON.stringify(data) };
  }

  /** What somebody missed who has seen `id`; undefined when that is not known any more. */
  since(id: string): FeedMessage[] | undefined {
    const seen = this.#kept.findIndex(message => message.id === id);
    if (seen >= 0) return this.#kept.slice(seen + 1);
    return id === `${this.#name}-${this.#last}` ? [] : undefined;
  }

  /** Hears of every patch; returns the way to stop that. */
  subscribe(listener: (message: FeedMessage) => void): () => void {
    this.#listeners.add(listener);
    this.#wake.resolve();
    return () => this.#listeners.delete(listener);
  }

  /** Whether the user may see certificates; the counters of handshakes are for those only. */
  get seesSecrets(): boolean {
    return !this.#denied.has('secrets');
  }

  /** What a user may not list is empty, and said so; everybody else's lists stay whole. */
  async #list(...[resource, selection]: Parameters<ObjectSource['list']>): Promise<never> {
    if (this.#isDenied(resource.plural)) return [] as never;
    try {
      const items = await this.#live.list(resource, selection);
      this.#denied.delete(resource.plural);
      return items as never;
    } catch (error) {
      if (!(error instanceof KubeError) || error.code !== 403) throw error;
      this.#denied.set(resource.plural, this.#clock.now().getTime());
      return [] as never;
    }
  }

  #isDenied(plural: string): boolean {
    const at = this.#denied.get(plural);
    return at !== undefined && this.#clock.now().getTime() - at < ASK_AGAIN_MS;
  }

  #changed(change: ObjectChange): void {
    const at = this.#clock.now().toISOString();
    for (const happening of happeningsOf(change)) {
      const name = String(++this.#changeCount).padStart(9, '0');
      this.#changes.push({ ...happening, metadata: { name }, at });
    }
    this.#changes = this.#changes.slice(-KEPT_CHANGES);
    this.#edition++;
    this.#wake.resolve();
  }

  #failed(error: unknown): void {
    if (error instanceof KubeError && error.code === 401) this.#options.onUnauthorized?.();
    else this.#options.onError?.(error);
  }

  async #keepLooking(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const round = new AbortController();
      const pauseMs = this.#options.prober === undefined ? LONGEST_PAUSE_MS : HANDSHAKE_PAUSE_MS;
      const pause = sleep(this.#clock, pauseMs, AbortSignal.any([signal, round.signal])).catch(() => {});
      await Promise.race([pause, this.#wake.promise]);
      round.abort();
      await sleep(this.#clock, GATHER_MS, signal).catch(() => {});
      if (signal.aborted) return;
      this.#wake = Promise.withResolvers();
      if (this.#listeners.size === 0) continue;
      const startedMs = performance.now();
      await this.#look().catch((error: unknown) => this.#failed(error));
      await sleep(this.#clock, (performance.now() - startedMs) * REST_FACTOR, signal).catch(() => {});
    }
  }

  /** What the objects say: read again, from memory, when one of them changed or time has passed. */
  async #current(now: Date): Promise<ReadModel> {
    const known = this.#read;
    const edition = this.#edition;
    if (known?.edition === edition && now.getTime() - known.atMs < LONGEST_PAUSE_MS) return known.model;
    const model = await readModel(this.source, now);
    this.#read = { edition, atMs: now.getTime(), model };
    return model;
  }

  /** Tells what became different since the last look. */
  async #look(): Promise<void> {
    const now = this.#clock.now();
    const { server, prober } = this.#options;
    const { sections, rotationDayMs } = await this.#current(now);
    const isShown = prober !== undefined && this.seesSecrets;
    const handshakes = isShown ? prober.snapshot().edges.map(edge => ({ metadata: { name: edge.edge }, ...edge })) : [];
    const found: Items = emptyItems();
    const denied = [...this.#denied.keys()].sort();
    const limits = denied.length === 0 ? [] : [`you may not list ${denied.join(', ')}`];
    for (const section of SECTIONS) {
      const items = section === 'handshakes' ? handshakes : section === 'changes' ? this.#changes : sections[section];
      for (const item of items.slice(0, MOST_ITEMS)) {
        const text = JSON.stringify(item);
        // Anybody may write an event or an annotation; one bad item must not silence the rest.
        if (holdsKeyMaterial(text)) limits.push(`${section}: ${idOf(item)} looks like key material and is not shown`);
        else found[section].set(idOf(item), text);
      }
      if (items.length > MOST_ITEMS) limits.push(`only ${MOST_ITEMS} of ${items.length} ${section} are shown`);
    }
    const about = JSON.stringify({ server, rotationDayMs, hasProber: isShown, limits } satisfies About);
    this.#tell(found, about, now);
  }

  #tell(found: Items, about: string, now: Date): void {
    const set: Partial<Record<Section, unknown[]>> = {};
    const gone: Partial<Record<Section, string[]>> = {};
    for (const section of SECTIONS) {
      const [before, after] = [this.#items[section], found[section]];
      const fresh = [...after]
        .filter(([id, text]) => before.get(id) !== text)
        .map(([, text]) => JSON.parse(text) as unknown);
      const missing = [...before.keys()].filter(id => !after.has(id));
      if (fresh.length > 0) set[section] = fresh;
      if (missing.length > 0) gone[section] = missing;
    }
    const isAboutNew = this.#about !== about;
    const hasNews = isAboutNew || Object.keys(set).length > 0 || Object.keys(gone).length > 0;
    this.#items = found;
    this.#about = about;
    if (!hasNews) return;
    const patch = {
      now: now.toISOString(),
      ...(isAboutNew ? { about: JSON.parse(about) as About } : {}),
      set,
      gone,
    } as Patch;
    const message: FeedMessage = { id: `${this.#name}-${++this.#last}`, event: 'patch', data: JSON.stringify(patch) };
    this.#keep(message);
    for (const listener of this.#listeners) listener(message);
  }

  #keep(message: FeedMessage): void {
    this.#kept = [...this.#kept, message].slice(-KEPT_MESSAGES);
    let length = this.#kept.reduce((sum, { data }) => sum + data.length, 0);
    // The newest stays whatever its size: its id is what those who are up to date have seen.
    while (length > KEPT_LENGTH && this.#kept.length > 1) length -= this.#kept.shift()?.data.length ?? 0;
  }
}

/** The items of each section by their names, as JSON. */
type Items = Record<Section, Map<string, string>>;

function emptyItems(): Items {
  return Object.fromEntries(SECTIONS.map(section => [section, new Map<string, string>()])) as Items;
}
