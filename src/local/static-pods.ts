import { createHash } from 'node:crypto';
import { existsSync, type FSWatcher, mkdirSync, readdirSync, readFileSync, watch } from 'node:fs';
import { join } from 'node:path';
import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { errorText } from '../controller/aggregate-error.ts';
import { type Clock, sleep, systemClock } from '../kube/clock.ts';
import { seconds } from '../kube/duration.ts';
import { readManifest } from '../staticpod/node/manifest.ts';

/** Annotations by which a kubelet ties the pod in the API to the manifest on its disk. */
export const CONFIG_SOURCE = 'kubernetes.io/config.source';
export const CONFIG_HASH = 'kubernetes.io/config.hash';
export const CONFIG_MIRROR = 'kubernetes.io/config.mirror';
export const CONFIG_SEEN = 'kubernetes.io/config.seen';

/** A pod that is there because a manifest is. */
export interface StaticPod {
  /** As it shows in the API: named after its node too. */
  readonly pod: Pod;
  /** Made of everything the manifest says; another manifest is another pod. */
  readonly hash: string;
  readonly file: string;
}

const LABEL = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
const SUBDOMAIN = /^[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?$/;

/** The static pod of a manifest on a node. Throws when the manifest is not one. */
export function staticPodOf(text: string, file: string, nodeName: string): StaticPod {
  const manifest = readManifest(text, file);
  const { metadata = {}, spec } = manifest;
  const containers = [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])];
  if (spec === undefined || (spec.containers ?? []).length === 0)
    throw new Error(`${file}: expected containers, found none`);
  for (const { name } of containers) {
    // Names become names of directories.
    if (!LABEL.test(name ?? ''))
      throw new Error(`${file}: expected a DNS label as name of a container, found ${JSON.stringify(name)}`);
  }
  const names = [`${metadata.name}-${nodeName}`, metadata.namespace ?? 'default'];
  const wrong = names.find(name => !SUBDOMAIN.test(name));
  if (wrong !== undefined)
    throw new Error(`${file}: expected names of a pod and a namespace, found ${JSON.stringify(wrong)}`);
  const hash = createHash('md5')
    .update(`${nodeName}\0${file}\0${JSON.stringify(manifest)}`)
    .digest('hex');
  const { uid: _, ...rest } = metadata;
  return {
    file,
    hash,
    pod: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        ...rest,
        name: names[0] as string,
        namespace: names[1] as string,
        uid: hash,
        annotations: { ...metadata.annotations, [CONFIG_SOURCE]: 'file', [CONFIG_HASH]: hash },
      },
      spec: {
        ...spec,
        nodeName,
        // What runs from a file does not leave because somebody taints the node.
        tolerations: [...(spec.tolerations ?? []), { operator: 'Exists', effect: 'NoExecute' }],
      },
    },
  };
}

/** The static pods a directory says there are now; manifests that cannot be used are left out. */
export function listStaticPods(directory: string, nodeName: string): StaticPod[] {
  const pods: StaticPod[] = [];
  const listener = { pods: (found: readonly StaticPod[]) => pods.push(...found), broken: () => {} };
  new ManifestDirectory(directory, nodeName, systemClock, listener).scan();
  return pods;
}

export interface ManifestListener {
  /** All static pods there are now, after a change or not. */
  pods(pods: readonly StaticPod[]): void;
  /** A manifest cannot be used, told once for each new reason; the last usable state of that file stays. */
  broken(file: string, message: string): void;
}

/** Kubelets look this often besides watching. */
const RESCAN_MS = seconds(20);
/** Where it cannot be watched. */
const UNWATCHED_MS = seconds(1);
const LARGEST_DIRECTORY = 1000;

/** Follows a directory of manifests. */
export class ManifestDirectory {
  readonly #directory: string;
  readonly #nodeName: string;
  readonly #listener: ManifestListener;
  readonly #clock: Clock;
  readonly #stop = new AbortController();
  readonly #good = new Map<string, { text: string; pod: StaticPod }>();
  readonly #bad = new Map<string, string>();
  readonly #watchDirectory: typeof watch;
  #rescanMs = RESCAN_MS;
  #watcher: FSWatcher | undefined;
  #isScanDue = false;

  constructor(
    directory: string,
    nodeName: string,
    clock: Clock,
    listener: ManifestListener,
    watchDirectory: typeof watch = watch,
  ) {
    this.#directory = directory;
    this.#nodeName = nodeName;
    this.#listener = listener;
    this.#clock = clock;
    this.#watchDirectory = watchDirectory;
  }

  start(): void {
    mkdirSync(this.#directory, { recursive: true });
    try {
      this.#watcher = this.#watchDirectory(this.#directory, () => this.#scanSoon());
      this.#watcher.on('error', () => {});
    } catch {
      // Others have all the watches that a user may have: looking has to do.
      this.#rescanMs = UNWATCHED_MS;
    }
    this.scan();
    void this.#rescan();
  }

  stop(): void {
    this.#stop.abort();
    this.#watcher?.close();
  }

  scan(): void {
    const entries = existsSync(this.#directory) ? readdirSync(this.#directory) : [];
    const names = entries
      .filter(name => !name.startsWith('.'))
      .sort()
      .slice(0, LARGEST_DIRECTORY);
    for (const name of this.#good.keys()) if (!names.includes(name)) this.#good.delete(name);
    for (const name of this.#bad.keys()) if (!names.includes(name)) this.#bad.delete(name);
    for (const name of names) this.#read(name);
    const pods = new Map<string, StaticPod>();
    for (const { pod } of this.#good.values()) {
      const key = `${pod.pod.metadata?.namespace}/${pod.pod.metadata?.name}`;
      const other = pods.get(key);
      if (other === undefined) pods.set(key, pod);
      else this.#broken(pod.file, `the pod ${key} is defined in ${other.file} already`);
    }
    this.#listener.pods([...pods.values()]);
  }

  #read(name: string): void {
    const path = join(this.#directory, name);
    try {
      const text = readFileSync(path, 'utf8');
      if (this.#good.get(name)?.text !== text)
        this.#good.set(name, { text, pod: staticPodOf(text, name, this.#nodeName) });
      this.#bad.delete(name);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') this.#good.delete(name);
      else if ((error as NodeJS.ErrnoException).code !== 'EISDIR') this.#broken(name, errorText(error));
    }
  }

  #broken(file: string, message: string): void {
    if (this.#bad.get(file) === message) return;
    this.#bad.set(file, message);
    this.#listener.broken(file, message);
  }

  /** One change of a file is often several events. */
  #scanSoon(): void {
    if (this.#isScanDue) return;
    this.#isScanDue = true;
    setImmediate(() => {
      this.#isScanDue = false;
      if (!this.#stop.signal.aborted) this.scan();
    });
  }

  async #rescan(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      await sleep(this.#clock, this.#rescanMs, this.#stop.signal).catch(() => {});
      if (!this.#stop.signal.aborted) this.scan();
    }
  }
}
