import assert from 'node:assert/strict';
import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import type { VirtualClock } from '../kube/clock.ts';
import { seconds } from '../kube/duration.ts';
import type { Kube } from '../kube/port.ts';
import { PODS, SECRETS } from '../kube/resource.ts';
import { formatRfc3339 } from '../kube/time.ts';
import { CONFIG, NAMESPACE } from './testing.ts';

export interface Moment {
  readonly node: string;
  readonly revision: number;
  readonly at: number;
}

const INSTALL_MS = seconds(5);
const STARTUP_MS = seconds(8);

/** In place of the kubelets: does to pods what they would do, and keeps a record of it. */
export class SimulatedKubelets {
  readonly #kube: Kube;
  readonly #clock: VirtualClock;
  readonly #nodes: number;
  readonly #stop = new AbortController();
  /** Which node got which revision, in order. */
  readonly order: string[] = [];
  readonly installed: Moment[] = [];
  readonly becameReady: Moment[] = [];
  /** The most nodes that were down at a time, once all had been up. */
  mostDown = 0;
  failInstallers = 0;
  #wereAllUp = false;
  /** What every number that was installed stood for. */
  readonly #contents = new Map<number, Set<string>>();

  constructor(kube: Kube, clock: VirtualClock, nodes: number) {
    this.#kube = kube;
    this.#clock = clock;
    this.#nodes = nodes;
  }

  stop(): void {
    this.#stop.abort();
  }

  checkNumbers(): void {
    for (const [revision, contents] of this.#contents) {
      assert.equal(
        contents.size,
        1,
        `revision ${revision} was installed with different contents: ${[...contents].join(', ')}`,
      );
    }
  }

  /** Does for every pod what a kubelet would do. */
  start(): void {
    const { signal } = this.#stop;
    const work = async () => {
      for await (const { type, object } of this.#kube.watch(PODS, { namespace: NAMESPACE, signal })) {
        if (type === 'ADDED' && object.metadata?.labels?.app === 'installer')
          void this.#install(object).catch(unlessStopped(signal));
        if (type === 'ADDED' && object.metadata?.labels?.app === 'pruner')
          void this.#finish(object).catch(unlessStopped(signal));
        if (type === 'MODIFIED' && object.metadata?.deletionTimestamp !== undefined) {
          const key = { namespace: NAMESPACE, name: object.metadata.name ?? '' };
          void this.#kube.delete(PODS, key, { gracePeriodSeconds: 0 }).catch(() => {});
        }
        if (object.metadata?.labels?.app === 'test-operand') await this.#countDown();
      }
    };
    void work().catch(unlessStopped(signal));
  }

  async #pause(ms: number): Promise<void> {
    await this.#clock.until(new Date(this.#clock.now().getTime() + ms), this.#stop.signal);
  }

  async #install(pod: Pod): Promise<void> {
    const node = pod.spec?.nodeName ?? '';
    const argument = pod.spec?.containers[0]?.args?.find(arg => arg.startsWith('--revision='));
    const revision = Number(argument?.split('=')[1]);
    this.installed.push({ node, revision, at: this.#clock.now().getTime() });
    await this.#pause(INSTALL_MS);
    if (this.failInstallers > 0) {
      this.failInstallers--;
      await this.#finish(pod, 'no space left on device');
      return;
    }
    const { data = {} } = await this.#kube.get(SECRETS, { namespace: NAMESPACE, name: `test-secret-${revision}` });
    const word = Buffer.from(data.key ?? '', 'base64').toString();
    this.#contents.set(revision, (this.#contents.get(revision) ?? new Set()).add(word));
    this.order.push(`${node}@${revision}`);
    await this.#finish(pod);
    await this.#runOperand(node, revision, word);
  }

  async #finish(pod: Pod, failure?: string): Promise<void> {
    const stored = await this.#kube
      .get(PODS, { namespace: NAMESPACE, name: pod.metadata?.name ?? '' })
      .catch(() => undefined);
    if (stored === undefined) return;
    const finishedAt = formatRfc3339(this.#clock.now());
    const terminated = {
      exitCode: failure === undefined ? 0 : 1,
      finishedAt,
      ...(failure === undefined ? {} : { message: failure }),
    };
    const [container] = stored.spec?.containers ?? [];
    const containerStatuses = [
      { name: container?.name ?? '', image: '', imageID: '', ready: false, restartCount: 0, state: { terminated } },
    ];
    await this.#kube.updateStatus(PODS, {
      ...stored,
      status: { phase: failure === undefined ? 'Succeeded' : 'Failed', containerStatuses },
    });
  }

  /** The old operand goes, the new one comes, and after a while it is ready, if its content lets it. */
  async #runOperand(nodeName: string, revision: number, word: string): Promise<void> {
    const name = `test-${nodeName}`;
    await this.#kube.delete(PODS, { namespace: NAMESPACE, name }, { gracePeriodSeconds: 0 }).catch(() => {});
    const labels = { ...CONFIG.operandLabels, revision: String(revision) };
    const annotations = { 'kubernetes.io/config.mirror': 'file' };
    await this.#kube.create(PODS, {
      metadata: { namespace: NAMESPACE, name, labels, annotations },
      spec: { nodeName, containers: [{ name: 'operand', image: 'operand:test' }] },
    });
    if (word === 'dead') await this.#setOperand(name, 'Failed', { message: 'exec format error' });
    else if (word === 'broken') {
      const waiting = { reason: 'CrashLoopBackOff', message: 'back-off' };
      await this.#setOperand(name, 'Running', { ready: false, state: { waiting } });
    } else {
      await this.#setOperand(name, 'Running', {
        ready: false,
        state: { running: { startedAt: formatRfc3339(this.#clock.now()) } },
      });
      await this.#pause(STARTUP_MS);
      await this.setReady(nodeName, true);
      this.becameReady.push({ node: nodeName, revision, at: this.#clock.now().getTime() });
    }
  }

  async setReady(nodeName: string, ready: boolean): Promise<void> {
    await this.#setOperand(`test-${nodeName}`, 'Running', {
      ready,
      state: { running: { startedAt: formatRfc3339(this.#clock.now()) } },
    });
  }

  async #setOperand(name: string, phase: string, { ready = false, state = {}, message = '' }): Promise<void> {
    const stored = await this.#kube.get(PODS, { namespace: NAMESPACE, name });
    const condition = {
      type: 'Ready',
      status: ready ? 'True' : 'False',
      lastTransitionTime: formatRfc3339(this.#clock.now()),
    };
    const container = { name: 'operand', image: 'operand:test', imageID: '', restartCount: 0, ready, state };
    const status = {
      phase,
      conditions: [condition],
      containerStatuses: [container],
      ...(message === '' ? {} : { message }),
    };
    await this.#kube.updateStatus(PODS, { ...stored, status });
  }

  async #countDown(): Promise<void> {
    const { items } = await this.#kube.list(PODS, { namespace: NAMESPACE, labelSelector: 'app=test-operand' });
    const up = items.filter(({ status }) =>
      status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True'),
    );
    this.#wereAllUp ||= up.length >= this.#nodes;
    if (this.#wereAllUp) this.mostDown = Math.max(this.mostDown, this.#nodes - up.length);
  }
}

function unlessStopped(signal: AbortSignal): (error: unknown) => void {
  return error => {
    if (!signal.aborted) throw error;
  };
}
