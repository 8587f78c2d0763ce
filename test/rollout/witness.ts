import { type FSWatcher, readFileSync, watch } from 'node:fs';
import { Agent, request } from 'node:https';
import { dirname } from 'node:path';
import type { ConfigMap, Pod, Secret } from 'kubernetes-types/core/v1.d.ts';
import { Informer } from '../../src/kube/informer.ts';
import { CONFIG_MAPS, SECRETS } from '../../src/kube/resource.ts';
import { isRevisionStatus, READY_ANNOTATION } from '../../src/staticpod/revision/number.ts';
import { PATIENCE_MS } from '../tools/eventually.ts';
import type { Cluster } from './cluster.ts';
import { addressOf } from './layout.ts';
import { NAMESPACE, PORT } from './operand.ts';

const LOOK_MS = 10;
const ASK_MS = 50;

/**
 * Looks at a cluster without a pause and writes down everything that must never be: a manifest that is missing, half written or
 * older than the one before, two servers down at a time, a revision whose number stood for something else before.
 */
export class Witness {
  readonly #cluster: Cluster;
  readonly #stop = new AbortController();
  readonly #watchers: FSWatcher[] = [];
  readonly #agent = new Agent({ keepAlive: true, rejectUnauthorized: false });
  readonly #offences = new Set<string>();
  readonly #manifestRevision = new Map<string, number>();
  readonly #down = new Set<string>();
  readonly #pids = new Map<string, number>();
  readonly #outages: string[] = [];
  readonly #revisionUids = new Map<string, string>();
  readonly #complete = new Set<string>();
  readonly #copies = new Map<string, string>();
  readonly #configMaps: Informer<ConfigMap>;
  readonly #secrets: Informer<Secret>;
  readonly #looking: Promise<unknown>;

  /** From now on. */
  constructor(cluster: Cluster) {
    this.#cluster = cluster;
    for (const node of cluster.nodes) {
      this.#look(node);
      this.#watchers.push(watch(dirname(cluster.manifestPath(node)), () => this.#look(node)));
    }
    const { signal } = this.#stop;
    this.#looking = Promise.all([
      ...cluster.nodes.map(node => again(LOOK_MS, signal, () => this.#look(node))),
      ...cluster.nodes.map(node => again(ASK_MS, signal, () => this.#ask(node))),
    ]);
    const selection = { namespace: NAMESPACE };
    this.#configMaps = new Informer(cluster.kube, CONFIG_MAPS, { selection });
    this.#secrets = new Informer(cluster.kube, SECRETS, { selection });
    const seen = (kind: 'configmap' | 'secret') => (object: ConfigMap | Secret) => this.#see(object, kind);
    const subscribe = <T extends ConfigMap | Secret>(informer: Informer<T>, see: (object: T) => void) =>
      informer.subscribe({ add: see, update: (_, object) => see(object), delete: () => {} });
    subscribe(this.#configMaps, seen('configmap'));
    subscribe(this.#secrets, seen('secret'));
    this.#configMaps.start();
    this.#secrets.start();
  }

  /** Which servers went down, in order, each time they did. */
  get outages(): readonly string[] {
    return this.#outages;
  }

  /** Ends, and says what was seen that must not be. */
  async end(): Promise<string[]> {
    this.#stop.abort();
    for (const watcher of this.#watchers) watcher.close();
    await Promise.all([this.#looking, this.#configMaps.stop(), this.#secrets.stop()]);
    this.#agent.destroy();
    return [...this.#offences];
  }

  #look(node: string): void {
    try {
      const pod = JSON.parse(readFileSync(this.#cluster.manifestPath(node), 'utf8')) as Pod;
      const revision = Number(pod.metadata?.labels?.revision);
      const before = this.#manifestRevision.get(node) ?? 0;
      if (!(revision >= before))
        this.#offences.add(`${node}: the manifest went from revision ${before} to ${revision}`);
      this.#manifestRevision.set(node, revision);
    } catch (error) {
      this.#offences.add(`${node}: no whole manifest: ${(error as Error).message}`);
    }
  }

  async #ask(node: string): Promise<void> {
    const isUp = (await this.#answer(node, '/readyz')) !== undefined;
    const pid = isUp ? await this.#pid(node) : undefined;
    if (this.#stop.signal.aborted) return;
    if (pid !== undefined) {
      // Whoever looks away for a while sees another process where it saw one before.
      const before = this.#pids.get(node) ?? pid;
      if (pid !== before && !this.#down.has(node)) this.#outages.push(node);
      this.#pids.set(node, pid);
      this.#down.delete(node);
    } else if (!isUp && !this.#down.has(node)) {
      const others = [...this.#down];
      this.#down.add(node);
      this.#outages.push(node);
      // What was down a moment ago may have come back since: it was down at the same time if it still is.
      for (const other of others) {
        const isStillDown = this.#down.has(other) && (await this.#answer(other, '/readyz')) === undefined;
        if (isStillDown && !this.#stop.signal.aborted) this.#offences.add(`down at the same time: ${other}, ${node}`);
      }
    }
  }

  async #pid(node: string): Promise<number | undefined> {
    const text = await this.#answer(node, '/rotunda.dev/loaded');
    return text === undefined ? undefined : (JSON.parse(text) as { pid: number }).pid;
  }

  /** Over a connection that stays open as long as the process lives. Undefined: there is nobody, or nobody who is ready. */
  #answer(node: string, path: string, agent: Agent | false = this.#agent): Promise<string | undefined> {
    return new Promise(resolve => {
      const options = { host: addressOf(this.#cluster.dir, node), port: PORT, path, servername: '' };
      const sent = request({ ...options, agent, rejectUnauthorized: false, timeout: PATIENCE_MS }, response => {
        let text = '';
        response.setEncoding('utf8').on('data', (part: string) => (text += part));
        response.once('end', () => resolve(response.statusCode === 200 ? text : undefined));
        response.once('error', () => resolve(undefined));
      });
      sent.once('timeout', () => sent.destroy());
      // A server gives up connections that were silent for a while: only a new one that fails tells that there is nobody.
      sent.once('error', () => resolve(sent.reusedSocket ? this.#answer(node, path, false) : undefined));
      sent.end();
    });
  }

  /** A revision that is complete stays what it is, and its number belongs to it even after it is gone. */
  #see({ metadata, data }: ConfigMap | Secret, kind: 'configmap' | 'secret'): void {
    const { name = '', uid = '', annotations } = metadata ?? {};
    const revision = /-(\d+)$/.exec(name)?.[1];
    if (revision === undefined) return;
    if (isRevisionStatus({ metadata: { name } })) {
      if ((this.#revisionUids.get(revision) ?? uid) !== uid) this.#offences.add(`revision ${revision} was made twice`);
      this.#revisionUids.set(revision, uid);
      if (annotations?.[READY_ANNOTATION] === 'true') this.#complete.add(revision);
      return;
    }
    const [key, text] = [`${kind} ${name}`, JSON.stringify(data)];
    const before = this.#copies.get(key) ?? text;
    if (before !== text && this.#complete.has(revision)) this.#offences.add(`${key} has changed after it was complete`);
    this.#copies.set(key, text);
  }
}

async function again(pauseMs: number, signal: AbortSignal, look: () => unknown): Promise<void> {
  while (!signal.aborted) {
    await look();
    await new Promise(resolve => setTimeout(resolve, pauseMs));
  }
}
