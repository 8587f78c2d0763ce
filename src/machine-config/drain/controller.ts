import type { DaemonSet } from 'kubernetes-types/apps/v1.d.ts';
import type { Node, Pod } from 'kubernetes-types/core/v1.d.ts';
import { errorText } from '../../controller/aggregate-error.ts';
import type { Reconcile, ReconcileContext, Result } from '../../controller/reconcile.ts';
import { minutes, seconds } from '../../kube/duration.ts';
import { isNotFound } from '../../kube/error.ts';
import { getIfPresent } from '../../kube/get.ts';
import { listAll } from '../../kube/list.ts';
import type { Kube } from '../../kube/port.ts';
import { NODES, PODS, resource } from '../../kube/resource.ts';
import { formatRfc3339, parseRfc3339 } from '../../kube/time.ts';
import { LAST_APPLIED_DRAIN } from '../../machine-config-api/names.ts';
import type { ControllerCaches } from '../controller/caches.ts';
import { type EventsAbout, involvedObject } from '../events.ts';
import { type ControllerGauges, noGauges } from '../metrics.ts';
import { setSchedulable } from './cordon.ts';
import { drainRequest, isDrainOverdue, retryAfterMs } from './decide.ts';
import { type EvictionFailure, evictPods } from './evict.ts';
import { drainVerdict } from './filter.ts';

export interface DrainParts {
  readonly kube: Kube;
  readonly caches: Pick<ControllerCaches, 'nodes'>;
  readonly eventsAbout: EventsAbout;
  readonly gauges?: ControllerGauges | undefined;
}

/**
 * Ours, on a Node: which request has been worked on since when. Kept on the node, so that a controller that is started anew does
 * not begin to count again (spec 50, DR-3, trap 15).
 */
export const DRAIN_STARTED = 'rotunda.dev/drain-started';

const DAEMON_SETS = resource<DaemonSet>('apps/v1', 'DaemonSet', 'daemonsets');
const CORDON_RETRY_MS = minutes(1);
const CHANGED_BACK_RETRY_MS = seconds(5);
/** Pods that are named in an event. */
const MOST_NAMED = 5;

/** Empties nodes whose agents ask for it, and lets pods back when they are done (spec 50, section 9). */
export function drainReconcile(parts: DrainParts): Reconcile {
  const { kube, caches, eventsAbout, gauges = noGauges } = parts;
  return async (name, context): Promise<Result | void> => {
    // From the API: a node whose cached copy looks done may just have been asked again.
    const node = caches.nodes.get({ name }) && (await getIfPresent(kube, NODES, { name }, { signal: context.signal }));
    if (node === undefined) {
      gauges.drainOverdue(name, false);
      return;
    }
    const request = drainRequest(node);
    if (request.verb === 'nothing') return;
    if (request.verb === 'unknown') throw new Error(request.error);
    const events = eventsAbout(involvedObject(NODES, node));
    if (request.verb === 'uncordon') {
      await setSchedulable(kube, name, true, {}, context);
      // Only now: what is recorded as applied is not tried again (spec 50, 9.1 and DR-1).
      await recordApplied(kube, name, request.request, context);
      gauges.drainOverdue(name, false);
      events.event('Normal', 'Uncordon', `Uncordoned node ${name}: ${request.request}`);
      return;
    }
    return drain(parts, node, request.request, context);
  };
}

async function drain(
  parts: DrainParts,
  node: Node,
  request: string,
  context: ReconcileContext,
): Promise<Result | void> {
  const { kube, eventsAbout, gauges = noGauges } = parts;
  const { clock, signal } = context;
  const name = node.metadata?.name ?? '';
  const events = eventsAbout(involvedObject(NODES, node));
  const again = (afterMs: number): Result => ({ againAt: new Date(clock.now().getTime() + afterMs) });
  const known = startOf(node, request);
  const started = known ?? clock.now();
  if (known === undefined || node.spec?.unschedulable !== true) {
    try {
      await setSchedulable(kube, name, false, { [DRAIN_STARTED]: `${formatRfc3339(started)} ${request}` }, context);
      events.event('Normal', 'Cordon', `Cordoned node ${name} to apply an update`);
    } catch (error) {
      if (isNotFound(error)) return undefined;
      // 4.16 says nothing and does not try again (spec 50, 9.2).
      events.event('Warning', 'FailedToDrain', errorText(error));
      return again(CORDON_RETRY_MS);
    }
  }
  const failures = await emptyNode(kube, name, context);
  const lastedMs = clock.now().getTime() - started.getTime();
  if (failures.length > 0) {
    const isOverdue = isDrainOverdue(lastedMs);
    gauges.drainOverdue(name, isOverdue);
    const message = `Drain of node ${name} has not succeeded: ${summaryOf(failures)}`;
    events.event('Warning', isOverdue ? 'DrainThresholdExceeded' : 'FailedToDrain', message);
    return again(retryAfterMs(lastedMs));
  }
  const { spec } = await kube.get(NODES, { name }, { signal });
  if (spec?.unschedulable !== true) {
    context.log.warn({ node: name }, 'node was uncordoned while it was drained; beginning again');
    return again(CHANGED_BACK_RETRY_MS);
  }
  await recordApplied(kube, name, request, context);
  gauges.drainOverdue(name, false);
  gauges.state('machine-config-controller-drain', 'drain', name, clock.now().getTime() / 1000);
  events.event('Normal', 'Drain', `Drained node ${name} to apply an update`);
  return undefined;
}

/** Tells the agent that its request is done (spec 50, 9.1). */
async function recordApplied(kube: Kube, name: string, request: string, { signal }: ReconcileContext): Promise<void> {
  const annotations = { [LAST_APPLIED_DRAIN]: request, [DRAIN_STARTED]: null };
  await kube.patch(NODES, { name }, { type: 'merge', body: { metadata: { annotations } } }, { signal });
}

async function emptyNode(
  kube: Kube,
  name: string,
  { clock, signal, log }: ReconcileContext,
): Promise<EvictionFailure[]> {
  let pods: readonly Pod[];
  const daemonSets = new Map<string, boolean>();
  try {
    pods = (await listAll(kube, PODS, { fieldSelector: `spec.nodeName=${name}`, signal })).items;
    for (const { metadata } of pods) {
      const owner = metadata?.ownerReferences?.find(
        ({ controller, kind }) => controller === true && kind === 'DaemonSet',
      );
      const key = `${metadata?.namespace ?? ''}/${owner?.name ?? ''}`;
      if (owner === undefined || daemonSets.has(key)) continue;
      const found = await getIfPresent(
        kube,
        DAEMON_SETS,
        { namespace: metadata?.namespace, name: owner.name },
        { signal },
      );
      daemonSets.set(key, found !== undefined);
    }
  } catch (error) {
    signal.throwIfAborted();
    return [{ pod: `pods of node ${name}`, why: errorText(error) }];
  }
  const leaving = pods.filter(pod => {
    const verdict = drainVerdict(pod, (namespace, daemonSet) => daemonSets.get(`${namespace}/${daemonSet}`));
    if (verdict.evict && verdict.warning !== undefined) {
      log.warn({ node: name, pod: `${pod.metadata?.namespace}/${pod.metadata?.name}` }, verdict.warning);
    }
    return verdict.evict;
  });
  return evictPods(kube, leaving, clock, signal);
}

/** Since when this request is worked on. */
function startOf({ metadata }: Node, request: string): Date | undefined {
  const [time = '', ...rest] = (metadata?.annotations?.[DRAIN_STARTED] ?? '').split(' ');
  const started = parseRfc3339(time);
  return started === undefined || rest.join(' ') !== request ? undefined : new Date(Number(started.nanos / 1_000_000n));
}

function summaryOf(failures: readonly EvictionFailure[]): string {
  const more = failures.length - MOST_NAMED;
  const named = failures.slice(0, MOST_NAMED).map(({ pod, why }) => `${pod}: ${why}`);
  return [...named, ...(more > 0 ? [`and ${more} more`] : [])].join('; ');
}
