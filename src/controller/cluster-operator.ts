import { minutes } from '../kube/duration.ts';
import { isNotFound } from '../kube/error.ts';
import type { Kube } from '../kube/port.ts';
import { errorText } from './aggregate-error.ts';
import {
  CLUSTER_OPERATORS,
  type ClusterOperator,
  type ClusterOperatorPolicy,
  type ClusterOperatorStatus,
  decideClusterOperatorStatus,
  isProbe,
  type OperatorState,
  statusDifference,
} from './cluster-operator-status.ts';
import type { Reconcile, ReconcileContext, Result } from './reconcile.ts';
import { updateStatus } from './status.ts';

export interface ClusterOperatorOptions {
  readonly name: string;
  readonly kube: Kube;
  readonly policy: ClusterOperatorPolicy;
  /** Reads the operator resource; undefined when it is not there. */
  readonly operator: () => Promise<OperatorState | undefined>;
  /** Reads the ClusterOperator from a cache; the API is read when absent. */
  readonly cached?: (() => ClusterOperator | undefined) | undefined;
}

/** How often a pass is made anyway (spec 30, section 20). */
export const CLUSTER_OPERATOR_RESYNC_MS: number = minutes(1);

/** Keeps a ClusterOperator saying what the operator resource says in detail (spec 30, section 20). */
export function clusterOperatorReconcile(options: ClusterOperatorOptions): Reconcile {
  const { name, kube, operator } = options;
  return async (_key, context) => {
    const state = await operator();
    if (state === undefined) {
      context.events.event(
        'Warning',
        'StatusNotFound',
        `Unable to determine current operator status for clusteroperator/${name}`,
      );
      await kube.delete(CLUSTER_OPERATORS, { name }, { signal: context.signal }).catch(ignoreNotFound);
      return undefined;
    }
    const existing = await ensureExists(options, context);
    if (existing === undefined) return { retry: true };
    return bringUpToDate(options, state, existing, context);
  };
}

/** Undefined when the API does not know ClusterOperators yet. */
async function ensureExists(
  options: ClusterOperatorOptions,
  { events, signal }: ReconcileContext,
): Promise<ClusterOperator | undefined> {
  const { name, kube, cached } = options;
  try {
    return cached?.() ?? (await kube.get(CLUSTER_OPERATORS, { name }, { signal }));
  } catch (error) {
    if (!isNotFound(error)) {
      events.event(
        'Warning',
        'StatusFailed',
        `Unable to get current operator status for clusteroperator/${name}: ${errorText(error)}`,
      );
      throw error;
    }
  }
  const empty: ClusterOperator = {
    apiVersion: 'config.openshift.io/v1',
    kind: 'ClusterOperator',
    metadata: { name },
    spec: {},
  };
  try {
    return await kube.create(CLUSTER_OPERATORS, empty, { signal });
  } catch (error) {
    if (isNotFound(error)) return undefined;
    events.event('Warning', 'StatusCreateFailed', `Failed to create operator status: ${errorText(error)}`);
    throw error;
  }
}

async function bringUpToDate(
  { name, kube, policy }: ClusterOperatorOptions,
  state: OperatorState,
  existing: ClusterOperator,
  { clock, events, signal }: ReconcileContext,
): Promise<Result> {
  let before: ClusterOperatorStatus = {};
  let decision = decideClusterOperatorStatus({}, state, policy, clock.now());
  const mutate = (object: ClusterOperator): ClusterOperator => {
    before = object.status ?? {};
    decision = decideClusterOperatorStatus(before, state, policy, clock.now());
    return { ...object, status: decision.status };
  };
  let first: ClusterOperator | undefined = existing;
  const { updated } = await updateStatus(kube, CLUSTER_OPERATORS, { name }, mutate, {
    clock,
    signal,
    // Only to begin with: after a conflict the API is read.
    cached: () => {
      const known = first;
      first = undefined;
      return known;
    },
  });
  if (updated) reportChange(name, before, decision.status, decision.isUnmanaged, events);
  return { againAt: decision.changesAt };
}

function reportChange(
  name: string,
  before: ClusterOperatorStatus,
  after: ClusterOperatorStatus,
  isUnmanaged: boolean,
  events: ReconcileContext['events'],
): void {
  for (const { name: operand, version } of after.versions ?? []) {
    const old = before.versions?.find(known => known.name === operand)?.version ?? '';
    if (old === version) continue;
    const message = `clusteroperator/${name} version "${operand}" changed from "${old}" to "${version}"`;
    events.event('Normal', 'OperatorVersionChanged', message);
  }
  if (isProbe(before, after)) return;
  const whose = isUnmanaged ? `operator ${name}` : `clusteroperator/${name}`;
  events.event('Normal', 'OperatorStatusChanged', `Status for ${whose} changed: ${statusDifference(before, after)}`);
}

function ignoreNotFound(error: unknown): void {
  if (!isNotFound(error)) throw error;
}

/** Remembers operand versions and tells when one changes: the hook that sets off a pass (spec 30, section 20). */
export class VersionRecorder {
  readonly #versions = new Map<string, string>();
  readonly #onChange: () => void;

  constructor(onChange: () => void = () => {}) {
    this.#onChange = onChange;
  }

  record(operand: string, version: string): void {
    if (this.#versions.get(operand) === version) return;
    this.#versions.set(operand, version);
    this.#onChange();
  }

  get versions(): Readonly<Record<string, string>> {
    return Object.fromEntries(this.#versions);
  }
}
