import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { minutes, seconds } from '../kube/duration.ts';
import { CONFIG_MAPS } from '../kube/resource.ts';
import type { Api } from './api.ts';
import type { TwinNode } from './node.ts';
import type { Time } from './time.ts';

const ROOT_CA = { namespace: 'default', name: 'kube-root-ca.crt' };
/** Where a pod finds the CA of its namespace. */
const FILE = '/var/run/secrets/kubernetes.io/serviceaccount/ca.crt';
/** A kubelet looks at each pod within its sync period of a minute and up to half of that again. */
const SYNC_WITHIN_MS = minutes(1.5);
const AGAIN_MS = seconds(60);

/** What kubelets do with `kube-root-ca.crt`: they bring it to the pods of their node, each in its own time. */
export class Volumes {
  readonly #time: Time;
  readonly #api: Api;
  readonly #nodes: readonly TwinNode[];
  readonly #isSyncing = new Set<string>();

  constructor(time: Time, api: Api, nodes: readonly TwinNode[]) {
    this.#time = time;
    this.#api = api;
    this.#nodes = nodes;
  }

  /** Looks whether a node has another content than the API. */
  look(): void {
    const content = this.#api.stored<ConfigMap>(CONFIG_MAPS, ROOT_CA)?.data?.['ca.crt'];
    if (content === undefined) return;
    for (const node of this.#nodes) {
      if (node.disk.text(FILE) !== content && !this.#isSyncing.has(node.name)) void this.#sync(node);
    }
  }

  /** A pod begins with what the API has at that moment: its kubelet mounts its volumes before. */
  async mount(node: TwinNode): Promise<void> {
    const kube = this.#api.connect(`volumes on ${node.name}`);
    for (;;) {
      const found = node.kubelet && (await kube.get(CONFIG_MAPS, ROOT_CA).catch(() => undefined));
      const content = found?.data?.['ca.crt'];
      if (content !== undefined) return node.disk.write(FILE, content);
      await this.#time.after(AGAIN_MS);
      if (!node.isOn) return;
    }
  }

  async #sync(node: TwinNode): Promise<void> {
    this.#isSyncing.add(node.name);
    const isFirst = node.disk.text(FILE) === undefined;
    if (!isFirst) await this.#time.after(this.#time.random() * SYNC_WITHIN_MS);
    while (!node.isOn || node.kubelet === undefined) await this.#time.after(AGAIN_MS);
    const content = this.#api.stored<ConfigMap>(CONFIG_MAPS, ROOT_CA)?.data?.['ca.crt'];
    if (content !== undefined) node.disk.write(FILE, content);
    this.#isSyncing.delete(node.name);
  }
}
