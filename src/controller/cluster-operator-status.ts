import { semanticallyEqual } from '../kube/equality.ts';
import { goQuote } from '../kube/go-quote.ts';
import { type KubeObject, resource } from '../kube/resource.ts';
import { type Condition, setCondition } from './condition.ts';
import { type Inertia, nextUnionChange, unionOfConditions } from './condition-union.ts';
import { isManaged, type ManagementOptions, type ManagementState } from './management-state.ts';

export interface ObjectReference {
  readonly group: string;
  readonly resource: string;
  readonly namespace?: string | undefined;
  readonly name: string;
}

export interface OperandVersion {
  readonly name: string;
  readonly version: string;
}

export interface ClusterOperatorStatus {
  readonly conditions?: readonly Condition[];
  readonly versions?: readonly OperandVersion[];
  readonly relatedObjects?: readonly ObjectReference[];
  readonly extension?: unknown;
}

export interface ClusterOperator extends KubeObject {
  spec?: object;
  status?: ClusterOperatorStatus;
}

export const CLUSTER_OPERATORS = resource<ClusterOperator>(
  'config.openshift.io/v1',
  'ClusterOperator',
  'clusteroperators',
  false,
);

/** The conditions of a ClusterOperator and what each is in a healthy cluster (spec 30, 20.5). */
const UNIONS = [
  ['Degraded', 'False'],
  ['Progressing', 'False'],
  ['Available', 'True'],
  ['Upgradeable', 'True'],
  ['EvaluationConditionsDetected', 'False'],
] as const;
const UNMANAGED_ORDER = ['Available', 'Progressing', 'Degraded', 'Upgradeable', 'EvaluationConditionsDetected'];
const WITH_INERTIA = 'Degraded';

/** What an operator says of itself. */
export interface OperatorState {
  readonly managementState?: ManagementState | undefined;
  readonly conditions: readonly Condition[];
  /** Versions of operands, as far as they are known to be rolled out. */
  readonly versions: Readonly<Record<string, string>>;
}

export interface ClusterOperatorPolicy extends ManagementOptions {
  readonly inertia: Inertia;
  readonly relatedObjects: readonly ObjectReference[];
  /** Related objects found at run time; `undefined` from it means that they are not known yet. Absent: there are none. */
  readonly dynamicRelatedObjects?: (() => readonly ObjectReference[] | undefined) | undefined;
  /** Versions that are no longer recorded go away. */
  readonly removesVersions?: boolean | undefined;
}

export interface ClusterOperatorDecision {
  readonly status: ClusterOperatorStatus;
  readonly isUnmanaged: boolean;
  /** When the status will change by itself, through inertia. */
  readonly changesAt: Date | undefined;
}

/** What the ClusterOperator should say (spec 30, 20.3 to 20.9). */
export function decideClusterOperatorStatus(
  existing: ClusterOperatorStatus,
  operator: OperatorState,
  policy: ClusterOperatorPolicy,
  now: Date,
): ClusterOperatorDecision {
  let conditions = existing.conditions ?? [];
  if (operator.managementState === 'Unmanaged' && !isManaged('Unmanaged', { alwaysManaged: policy.alwaysManaged })) {
    for (const type of UNMANAGED_ORDER) {
      conditions = setCondition(conditions, { type, status: 'Unknown', reason: 'Unmanaged', message: '' }, now);
    }
    return { status: { ...existing, conditions }, isUnmanaged: true, changesAt: undefined };
  }
  for (const [type, good] of UNIONS) {
    const inertia = type === WITH_INERTIA ? policy.inertia : undefined;
    conditions = setCondition(conditions, unionOfConditions(type, good, operator.conditions, now, inertia), now);
  }
  const status = {
    ...existing,
    conditions,
    relatedObjects: relatedObjects(policy, existing.relatedObjects ?? []),
    versions: mergedVersions(existing.versions ?? [], operator.versions, policy.removesVersions ?? false),
  };
  const changesAt = nextUnionChange(WITH_INERTIA, 'False', operator.conditions, now, policy.inertia);
  return { status, isUnmanaged: false, changesAt };
}

/** The dynamic ones, or while they are not known those that are there, and the static ones (spec 30, 20.4). */
export function relatedObjects(
  policy: Pick<ClusterOperatorPolicy, 'relatedObjects' | 'dynamicRelatedObjects'>,
  existing: readonly ObjectReference[],
): readonly ObjectReference[] {
  if (policy.dynamicRelatedObjects === undefined) return policy.relatedObjects;
  const found = policy.dynamicRelatedObjects() ?? existing;
  const missing = policy.relatedObjects.filter(wanted => !found.some(known => semanticallyEqual(known, wanted)));
  return [...found, ...missing];
}

/** Recorded versions put in place; others stay unless they are to be removed (spec 30, 20.9). */
export function mergedVersions(
  existing: readonly OperandVersion[],
  recorded: Readonly<Record<string, string>>,
  removes: boolean,
): readonly OperandVersion[] {
  const kept = existing.filter(({ name }) => !removes || Object.hasOwn(recorded, name));
  const updated = kept.map(({ name, version }) => ({
    name,
    version: Object.hasOwn(recorded, name) ? (recorded[name] as string) : version,
  }));
  const added = Object.keys(recorded)
    .filter(name => !existing.some(known => known.name === name))
    .sort();
  return [...updated, ...added.map(name => ({ name, version: recorded[name] as string }))];
}

/** What changed, in words (spec 30, 20.11). */
export function statusDifference(before: ClusterOperatorStatus, after: ClusterOperatorStatus): string {
  const changes: string[] = [];
  for (const { type, status, message = '' } of after.conditions ?? []) {
    const old = before.conditions?.find(condition => condition.type === type);
    const quoted = goQuote(message);
    if (old === undefined) changes.push(`${type} set to ${status} (${quoted})`);
    else if (old.status !== status) changes.push(`${type} changed from ${old.status} to ${status} (${quoted})`);
    else if ((old.message ?? '') !== message) {
      changes.push(`${type} message changed from ${goQuote(old.message ?? '')} to ${quoted}`);
    }
  }
  for (const { type } of before.conditions ?? []) {
    if (!after.conditions?.some(condition => condition.type === type)) changes.push(`${type} was removed`);
  }
  for (const field of ['relatedObjects', 'extension', 'versions'] as const) {
    if (semanticallyEqual(before[field], after[field])) continue;
    const [from, to] = [JSON.stringify(before[field] ?? null), JSON.stringify(after[field] ?? null)];
    changes.push(`status.${field} changed from ${from} to ${to}`);
  }
  return (changes.length === 0 ? changedReasons(before, after) : changes).join(',');
}

/** Told only when nothing else is: a reason mostly changes together with its message. */
function changedReasons(before: ClusterOperatorStatus, after: ClusterOperatorStatus): string[] {
  return (after.conditions ?? []).flatMap(({ type, reason = '' }) => {
    const old = before.conditions?.find(condition => condition.type === type)?.reason ?? '';
    return old === reason ? [] : [`${type} reason changed from ${goQuote(old)} to ${goQuote(reason)}`];
  });
}

/**
 * Whether the only difference is a byte order mark that somebody put before a message of a standard condition, to see
 * whether the operator reacts: then nothing changed that people should hear of (spec 30, 20.12).
 */
export function isProbe(before: ClusterOperatorStatus, after: ClusterOperatorStatus): boolean {
  const probed = (before.conditions ?? []).map(condition =>
    STANDARD.has(condition.type) ? { ...condition, message: withoutMark(condition.message ?? '') } : condition,
  );
  const wasProbed = (before.conditions ?? []).some(
    ({ type, message = '' }) => STANDARD.has(type) && message.startsWith(MARK),
  );
  return wasProbed && semanticallyEqual({ ...before, conditions: probed }, after);
}

const MARK = '\ufeff';
const STANDARD = new Set(['Available', 'Progressing', 'Degraded', 'Upgradeable']);

function withoutMark(message: string): string {
  return message.startsWith(MARK) ? message.slice(MARK.length) : message;
}
