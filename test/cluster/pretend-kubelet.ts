import { load } from 'js-yaml';
import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { isNotFound } from '../../src/kube/error.ts';
import { Informer } from '../../src/kube/informer.ts';
import type { Kube } from '../../src/kube/port.ts';
import { CONFIG_MAPS, PODS } from '../../src/kube/resource.ts';
import { formatRfc3339 } from '../../src/kube/time.ts';

/**
 * Does to the pods of one namespace what a kubelet would have done to them, in the API only: installers succeed, the static pod of
 * their revision is shown as ready, whatever is to go goes.
 */
export class PretendKubelet {
  readonly #kube: Kube;
  readonly #namespace: string;
  /** The ConfigMap with the manifest; `-<revision>` follows. */
  readonly #manifest: string;
  readonly #pods: Informer<Pod>;
  readonly #problems: unknown[] = [];
  /** Installer pods in the order in which they came. */
  readonly installers: Pod[] = [];
  #last: Promise<void> = Promise.resolve();

  constructor(kube: Kube, namespace: string, manifest: string) {
    this.#kube = kube;
    this.#namespace = namespace;
    this.#manifest = manifest;
    this.#pods = new Informer<Pod>(kube, PODS, { selection: { namespace } });
    this.#pods.subscribe({
      add: pod => this.#inTurn(() => this.#appeared(pod)),
      update: (before, after) => {
        const isGoing = after.metadata?.deletionTimestamp !== undefined;
        if (isGoing && before.metadata?.deletionTimestamp === undefined) this.#inTurn(() => this.#remove(after));
      },
      delete() {},
    });
  }

  start(): void {
    this.#pods.start();
  }

  async stop(): Promise<void> {
    await this.#pods.stop();
    await this.#last;
    if (this.#problems.length > 0) throw new AggregateError(this.#problems, 'the pretended kubelet failed');
  }

  #inTurn(work: () => Promise<void>): void {
    this.#last = this.#last.then(work).catch((error: unknown) => {
      if (!isNotFound(error)) this.#problems.push(error);
    });
  }

  async #appeared(pod: Pod): Promise<void> {
    const app = pod.metadata?.labels?.app;
    if (app === 'installer') {
      this.installers.push(pod);
      await this.#show(pod, 'Succeeded');
      await this.#runOperand(pod);
    } else if (app === 'pruner') await this.#show(pod, 'Succeeded');
    else if (app === 'guard') await this.#show(pod, 'Running');
  }

  async #runOperand(installer: Pod): Promise<void> {
    const nodeName = installer.spec?.nodeName ?? '';
    const [, revision = ''] = /--revision=(\d+)/.exec((installer.spec?.containers[0]?.args ?? []).join(' ')) ?? [];
    const key = { namespace: this.#namespace, name: `${this.#manifest}-${revision}` };
    const { data = {} } = await this.#kube.get(CONFIG_MAPS, key);
    const { metadata } = load(data['pod.yaml'] ?? '') as Pod;
    const name = `${metadata?.name}-${nodeName}`;
    await this.#remove({ metadata: { namespace: this.#namespace, name } }).catch(ignoreNotFound);
    const mirror = await this.#kube.create(PODS, {
      metadata: {
        namespace: this.#namespace,
        name,
        labels: { ...metadata?.labels, revision },
        annotations: { 'kubernetes.io/config.mirror': revision },
      },
      // The rest of the manifest is for a node: host paths and accounts play no part here.
      spec: { nodeName, hostNetwork: true, containers: [{ name: 'operand', image: 'operand' }] },
    });
    await this.#show(mirror, 'Running');
  }

  async #show(pod: Pod, phase: 'Running' | 'Succeeded'): Promise<void> {
    const now = formatRfc3339(new Date());
    const isRunning = phase === 'Running';
    const [{ name, image = '' } = { name: '' }] = pod.spec?.containers ?? [];
    const terminated = { exitCode: 0, startedAt: now, finishedAt: now, reason: 'Completed' };
    const state = isRunning ? { running: { startedAt: now } } : { terminated };
    const status = {
      phase,
      podIP: '127.0.0.1',
      podIPs: [{ ip: '127.0.0.1' }],
      hostIP: '127.0.0.1',
      startTime: now,
      conditions: [{ type: 'Ready', status: isRunning ? 'True' : 'False', lastTransitionTime: now }],
      containerStatuses: [{ name, image, imageID: '', ready: isRunning, started: isRunning, restartCount: 0, state }],
    };
    const key = { namespace: this.#namespace, name: pod.metadata?.name ?? '' };
    await this.#kube.patch(PODS, key, { type: 'merge', body: { status } }, { subresource: 'status' });
  }

  async #remove({ metadata }: Pod): Promise<void> {
    const key = { namespace: this.#namespace, name: metadata?.name ?? '' };
    await this.#kube.delete(PODS, key, { gracePeriodSeconds: 0 });
  }
}

function ignoreNotFound(error: unknown): void {
  if (!isNotFound(error)) throw error;
}
