import { errorText } from '../../controller/aggregate-error.ts';
import type { Condition } from '../../controller/condition.ts';
import { isManaged } from '../../controller/management-state.ts';
import { type Reconcile, type ReconcileContext, type Result, RetryRequest } from '../../controller/reconcile.ts';
import { minutes } from '../../kube/duration.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS } from '../../kube/resource.ts';
import { condition } from '../condition.ts';
import type { StaticPodOperatorConfig } from '../config.ts';
import { readNodeStatus } from '../node-status.ts';
import { liveObjects, type Objects } from '../objects.ts';
import {
  type StaticPodOperator,
  type StaticPodOperatorResource,
  type StaticPodOperatorStatus,
  withConditions,
} from '../operator.ts';
import { buildRevision } from './build.ts';
import { type Comparison, compareRevision, readPairs, unusableText } from './compare.ts';
import { highestReadyRevision, LARGEST_REVISION, UnreadableRevision } from './number.ts';

export interface RevisionControllerOptions {
  readonly config: Pick<
    StaticPodOperatorConfig,
    'operandNamespace' | 'revisioned' | 'revisionPrecondition' | 'revisionReady' | 'contentCheck'
  >;
  readonly operator: StaticPodOperator;
  readonly kube: Kube;
  /** Where the first look is taken; what it finds to be done is looked at again in the API itself. */
  readonly cached: Objects;
}

/** What there is to do. */
export type RevisionDecision =
  | { readonly do: 'nothing' }
  /** A complete revision waits to be announced. */
  | { readonly do: 'publish'; readonly revision: number }
  | { readonly do: 'wait for sources'; readonly revision: number; readonly reason: string }
  | { readonly do: 'build'; readonly revision: number; readonly reason: string };

/** A precondition that does not hold, and copies that are not ready, are asked for again after this time. */
const ASK_AGAIN_MS = minutes(1);
const CONDITION = 'RevisionControllerDegraded';
const UNUSABLE = 'UnusableContent';

/** Keeps a published revision whose copies are what the sources are now (spec 30, section 8). */
export function revisionReconcile(options: RevisionControllerOptions): Reconcile {
  const { operator, kube, cached } = options;
  return async (_key, context) => {
    const { signal } = context;
    const known = await operator.read(signal);
    if (!isManaged(known.spec?.managementState)) return undefined;
    try {
      const first = operator.isBehind(known) ? undefined : await look(options, known, cached);
      if (first?.decision.do === 'nothing' && first.health === HEALTHY) {
        await operator.setConditions([HEALTHY], signal);
        return undefined;
      }
      // The cache may be behind; nothing is made, announced or reported on its word alone (T02, T23).
      const seen = await look(options, await operator.readLive(signal), liveObjects(kube, signal));
      await tellUnusable(options, seen, context);
      if (seen.decision.do !== 'nothing') return await act(seen.decision, seen, options, context);
      await operator.setConditions([seen.health], signal);
      return undefined;
    } catch (error) {
      if (error instanceof RetryRequest) throw error;
      if (error instanceof ConflictingRevision) throw new RetryRequest(error.message);
      // Not knowing which revisions there are says nothing of those that run (spec 30, 8.2.2).
      if (error instanceof UnreadableRevision) throw error;
      await report(options, failure('Error', error), context);
      throw error;
    }
  };
}

/** What a look at sources and copies found. */
interface Seen {
  readonly decision: RevisionDecision;
  readonly published: number;
  /** True where a source cannot be loaded and its last good content stays in use. */
  readonly health: Condition;
}

async function look(
  { config: { operandNamespace, revisioned, contentCheck } }: RevisionControllerOptions,
  { status = {} }: StaticPodOperatorResource,
  objects: Objects,
): Promise<Seen> {
  const published = status.latestAvailableRevision ?? 0;
  const ready = highestReadyRevision(await objects.list(CONFIG_MAPS, { namespace: operandNamespace }));
  const pairs = await readPairs(objects, operandNamespace, revisioned, published, contentCheck);
  const decision = decideRevision(status, ready, compareRevision(published, pairs));
  const unusable = pairs.filter(({ problem }) => problem !== undefined).map(unusableText);
  const message = `${unusable.join('\n')}\nthe content of revision ${published} stays in use`;
  return {
    decision,
    published,
    health: unusable.length === 0 ? HEALTHY : condition(CONDITION, 'True', UNUSABLE, message),
  };
}

/** Content that no process can load enters no revision: an event tells when that becomes known, the condition until it is over. */
async function tellUnusable(
  { operator }: RevisionControllerOptions,
  { health }: Seen,
  { events, signal }: ReconcileContext,
): Promise<void> {
  if (health === HEALTHY) return;
  const { status = {} } = await operator.read(signal);
  const told = status.conditions?.find(({ type }) => type === CONDITION);
  if (told?.reason !== UNUSABLE || told.message !== health.message)
    events.event('Warning', UNUSABLE, health.message ?? '');
}

/**
 * What to do about the revision, given the highest one that is complete and what became of the published one's sources
 * (spec 30, 8.2). A number that a node has ever been told is never given to something else (T02).
 */
export function decideRevision(
  { latestAvailableRevision: published = 0, nodeStatuses = [] }: StaticPodOperatorStatus,
  highestReady: number,
  comparison: Comparison,
): RevisionDecision {
  if (highestReady > published) return { do: 'publish', revision: highestReady };
  if (comparison.outcome === 'current') return { do: 'nothing' };
  const told = nodeStatuses
    .map(readNodeStatus)
    .flatMap(node => [node.currentRevision, node.targetRevision, node.lastFailedRevision]);
  const last = Math.max(published, highestReady, ...told);
  if (last >= LARGEST_REVISION) throw new Error(`expected a revision number below ${LARGEST_REVISION}, found ${last}`);
  const revision = last + 1;
  const { reason } = comparison;
  return { do: comparison.outcome === 'changed' ? 'build' : 'wait for sources', revision, reason };
}

async function act(
  decision: Exclude<RevisionDecision, { do: 'nothing' }>,
  seen: Seen,
  options: RevisionControllerOptions,
  context: ReconcileContext,
): Promise<Result | undefined> {
  const { revision } = decision;
  switch (decision.do) {
    case 'publish':
      await publish(options, revision, seen, context);
      return { retry: true };
    case 'wait for sources':
      return reportContent(options, revision, new Error(decision.reason), context);
    case 'build':
      return build(options, decision, seen, context);
    default:
      return undefined;
  }
}

async function build(
  options: RevisionControllerOptions,
  { revision, reason }: { readonly revision: number; readonly reason: string },
  seen: Seen,
  context: ReconcileContext,
): Promise<Result | undefined> {
  const { config, kube, operator } = options;
  const { events, signal, clock } = context;
  const later = { againAt: new Date(clock.now().getTime() + ASK_AGAIN_MS) };
  if (config.revisionPrecondition !== undefined && !(await config.revisionPrecondition())) {
    await operator.setConditions([seen.health], signal);
    return later;
  }
  const trigger = `new revision ${revision} triggered by "${reason}"`;
  events.event('Normal', 'StartingNewRevision', trigger);
  const plan = {
    namespace: config.operandNamespace,
    revision,
    reason,
    revisioned: config.revisioned,
    before: seen.published,
    check: config.contentCheck,
    isReady: config.revisionReady,
  };
  const outcome = await buildRevision({ kube, events, clock, signal }, plan).catch((error: unknown) => {
    if (error instanceof RetryRequest) throw error;
    return { error };
  });
  if (typeof outcome === 'object') return reportContent(options, revision, outcome.error, context);
  if (outcome !== 'built') {
    await operator.setConditions([seen.health], signal);
    return outcome === 'not ready yet' ? later : undefined;
  }
  events.event('Normal', 'RevisionTriggered', trigger);
  const updated = await publish(options, revision, seen, context);
  if (updated) events.event('Normal', 'RevisionCreate', `Revision ${revision} created because ${reason}`);
  return undefined;
}

/** The published number was moved by somebody else. */
class ConflictingRevision extends Error {
  override readonly name = 'ConflictingRevision';
}

/** The status with this revision announced. The number only ever grows (spec 30, 8.2.11 and T02). */
export function publishRevision(status: StaticPodOperatorStatus, revision: number): StaticPodOperatorStatus {
  const published = status.latestAvailableRevision ?? 0;
  if (published >= revision) throw new ConflictingRevision(`conflicting latestAvailableRevision ${published}`);
  return { ...status, latestAvailableRevision: revision };
}

async function publish(
  { operator }: RevisionControllerOptions,
  revision: number,
  { health }: Seen,
  { clock, signal }: ReconcileContext,
): Promise<boolean> {
  const { updated } = await operator.update(
    status => withConditions(publishRevision(status, revision), [health], clock.now()),
    signal,
  );
  return updated;
}

/**
 * The content of a revision cannot be made: says so, and asks for another attempt (spec 30, 8.2.10). Beyond 4.16 the event comes
 * with every new reason, not only when the condition cannot be written.
 */
async function reportContent(
  { operator }: RevisionControllerOptions,
  revision: number,
  error: unknown,
  { events, signal, log, clock }: ReconcileContext,
): Promise<Result> {
  log.warn({ revision, err: error }, 'the content of a revision cannot be made');
  const tell = () =>
    events.event('Warning', 'RevisionCreateFailed', `Failed to create revision ${revision}: ${errorText(error)}`);
  try {
    const problem = failure('ContentCreationError', error);
    const { updated } = await operator.update(status => withConditions(status, [problem], clock.now()), signal);
    if (updated) tell();
  } catch (writeError) {
    tell();
    throw writeError;
  }
  return { retry: true };
}

async function report(
  { operator }: RevisionControllerOptions,
  problem: Condition,
  { log, signal }: ReconcileContext,
): Promise<void> {
  await operator.setConditions([problem], signal).catch((writeError: unknown) => {
    log.warn({ err: writeError }, 'the failure of a pass could not be reported');
  });
}

const HEALTHY = condition(CONDITION, 'False');

function failure(reason: string, error: unknown): Condition {
  return condition(CONDITION, 'True', reason, errorText(error));
}
