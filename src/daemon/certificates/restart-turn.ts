import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import type { Log } from '../../controller/log.ts';
import type { HostFiles } from '../../host/port.ts';
import type { Clock } from '../../kube/clock.ts';
import { minutes, seconds } from '../../kube/duration.ts';
import type { Kube } from '../../kube/port.ts';
import { PODS } from '../../kube/resource.ts';

/** How soon it is looked again whether the kubelet may be restarted. */
export const TURN_AGAIN_MS: number = seconds(1);
/** A static pod that takes longer is broken, and may be so because its kubelet lacks the CA that the restart brings. */
const LONGEST_WAIT_MS = minutes(2);
const MANIFESTS = '/etc/kubernetes/manifests';
const MIRROR = 'kubernetes.io/config.mirror';
const INSTALLER = /^installer-(\d+)-/;

export interface RestartTurnOptions {
  /** With the node's own credentials: the pods of no other node are asked for. */
  readonly kube: Pick<Kube, 'list'>;
  readonly files: Pick<HostFiles, 'list'>;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly log: Pick<Log, 'info' | 'warn'>;
}

/**
 * Whether the kubelet of this node may be restarted: not while a static pod here is being replaced (spec 90, HO-5). The other way round
 * nothing has to be asked: without its kubelet no node begins to replace a pod. Nodes without static pods ask nobody.
 */
export class RestartTurn {
  readonly #options: RestartTurnOptions;
  #heldSinceMs: number | undefined;

  constructor(options: RestartTurnOptions) {
    this.#options = options;
  }

  async mayRestart(): Promise<boolean> {
    const { clock, log } = this.#options;
    const busy = await this.#podsBeingReplaced();
    const nowMs = clock.now().getTime();
    if (busy.length > 0) {
      if (this.#heldSinceMs === undefined) log.info({ pods: busy }, 'the kubelet is restarted when these are ready');
      this.#heldSinceMs ??= nowMs;
      if (nowMs - this.#heldSinceMs < LONGEST_WAIT_MS) return false;
    }
    this.#heldSinceMs = undefined;
    return true;
  }

  async #podsBeingReplaced(): Promise<string[]> {
    const { kube, files, nodeName, log } = this.#options;
    const manifests = await files.list(MANIFESTS).catch(() => undefined);
    if (manifests === undefined || manifests.length === 0) return [];
    try {
      const { items } = await kube.list(PODS, { fieldSelector: `spec.nodeName=${nodeName}` });
      return podsBeingReplaced(items);
    } catch (error) {
      // What the kubelet lacks may be why nobody answers.
      log.warn(
        { err: error },
        'nobody knows whether static pods are being replaced; the kubelet is restarted all the same',
      );
      return [];
    }
  }
}

/** Static pods that are not ready or about to be replaced, and installers that are at work. */
export function podsBeingReplaced(pods: readonly Pod[]): string[] {
  const installed = new Map<string | undefined, number>();
  const busy: (string | undefined)[] = [];
  for (const { metadata, status } of pods) {
    const revision = INSTALLER.exec(metadata?.name ?? '')?.[1];
    if (revision === undefined || status?.phase === 'Failed') continue;
    if (status?.phase !== 'Succeeded') busy.push(metadata?.name);
    installed.set(metadata?.namespace, Math.max(Number(revision), installed.get(metadata?.namespace) ?? 0));
  }
  for (const { metadata, status } of pods) {
    if (metadata?.annotations?.[MIRROR] === undefined) continue;
    const isReady = status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false;
    // The installer is done, and the kubelet has not come to the manifest yet.
    const isOld = Number(metadata.labels?.revision ?? Number.NaN) < (installed.get(metadata.namespace) ?? 0);
    if (!isReady || isOld) busy.push(metadata.name);
  }
  return busy.map(name => name ?? '').toSorted();
}
