import { errorText } from '../controller/aggregate-error.ts';
import { isManaged } from '../controller/management-state.ts';
import type { Reconcile } from '../controller/reconcile.ts';
import { type ApplyContext, deleteObject } from '../kube/apply.ts';
import { minutes } from '../kube/duration.ts';
import type { EventRecorder } from '../kube/events.ts';
import type { Kube } from '../kube/port.ts';
import { CONFIG_MAPS, SECRETS } from '../kube/resource.ts';
import { syncConfigMap, syncSecret } from '../kube/sync-copy.ts';
import { condition } from './condition.ts';
import { compareText, type Objects, writeIfNeeded } from './objects.ts';
import type { StaticPodOperator } from './operator.ts';

export interface Location {
  readonly namespace: string;
  readonly name: string;
}

/** Where a copy comes from. */
export interface SyncSource extends Location {
  /** Who is to blame when it is missing. */
  readonly provider?: string | undefined;
  /** Only these keys are copied; all when absent or empty. */
  readonly keys?: readonly string[] | undefined;
  /** Nothing is done while this says no. */
  readonly precondition?: (() => boolean | Promise<boolean>) | undefined;
}

type SyncKind = 'configmap' | 'secret';

/** Which objects are to be copies of which others (spec 30, 7.1 and 7.2). */
export class SyncRules {
  readonly #namespaces: ReadonlySet<string>;
  readonly #rules = new Map<string, { kind: SyncKind; destination: Location; source: SyncSource | undefined }>();
  /** Hears of every new rule. */
  onChange: () => void = () => {};

  constructor(watchedNamespaces: Iterable<string>) {
    this.#namespaces = new Set(watchedNamespaces);
  }

  /** Without a source the destination is to be deleted. A later rule for the same destination replaces the earlier one. */
  add(kind: SyncKind, destination: Location, source: SyncSource | undefined): void {
    for (const namespace of isSomewhere(source) ? [destination.namespace, source.namespace] : [destination.namespace]) {
      if (!this.#namespaces.has(namespace)) throw new Error(`not watching namespace "${namespace}"`);
    }
    this.#rules.set(`${kind}/${destination.namespace}/${destination.name}`, { kind, destination, source });
    this.onChange();
  }

  get(kind: SyncKind): { destination: Location; source: SyncSource | undefined }[] {
    return [...this.#rules.values()]
      .filter(rule => rule.kind === kind)
      .sort((a, b) => compareText(placeOf(a.destination), placeOf(b.destination)));
  }

  /** The rules in order of their sources, for people (spec 30, 7.6). */
  toJSON(): object {
    const list = (kind: SyncKind) =>
      this.get(kind)
        .sort((a, b) => compareText(placeOf(a.source), placeOf(b.source)))
        .map(({ destination, source }) => ({ destination, source: { namespace: '', name: '', ...source } }));
    return { secrets: list('secret'), configs: list('configmap') };
  }
}

/** Upstream writes "no source" as one without a name. */
function isSomewhere(source: SyncSource | undefined): source is SyncSource {
  return source !== undefined && !(source.namespace === '' && source.name === '');
}

/** A separator that is in no name keeps the order that of namespaces first. */
function placeOf(location: Location | undefined): string {
  return `${location?.namespace ?? ''}\0${location?.name ?? ''}`;
}

export interface ResourceSyncOptions {
  readonly rules: SyncRules;
  readonly operator: StaticPodOperator;
  readonly kube: Kube;
  readonly cached: Objects;
  /** With the component name of this controller. */
  readonly events: EventRecorder;
}

export const RESOURCE_SYNC_RESYNC_MS: number = minutes(1);
const CONDITION = 'ResourceSyncControllerDegraded';

/**
 * Keeps the copies as the rules say. One rule that fails does not stop the others, and is reported rather than retried:
 * what is missing comes with an event (spec 30, 7.3 to 7.5).
 */
export function resourceSyncReconcile(options: ResourceSyncOptions): Reconcile {
  const { rules, operator, kube, cached, events } = options;
  return async (_key, { signal }) => {
    const { spec = {} } = await operator.read(signal);
    if (!isManaged(spec.managementState)) return;
    const errors: string[] = [];
    for (const kind of ['configmap', 'secret'] as const) {
      for (const { destination, source } of rules.get(kind)) {
        let blame = '';
        try {
          if (source?.precondition !== undefined && !(await source.precondition())) continue;
          if (source?.provider) blame = ` (check the "${source.provider}" that is supposed to provide this resource)`;
          await writeIfNeeded(cached, { kube, events, signal }, context => follow(context, kind, destination, source));
        } catch (error) {
          errors.push(`${errorText(error)}${blame}`);
        }
      }
    }
    await operator.setConditions(
      [errors.length === 0 ? condition(CONDITION, 'False') : condition(CONDITION, 'True', 'Error', errors.join('\n'))],
      signal,
    );
  };
}

async function follow(
  context: ApplyContext,
  kind: SyncKind,
  destination: Location,
  source: SyncSource | undefined,
): Promise<void> {
  if (!isSomewhere(source)) {
    await deleteObject(context, kind === 'secret' ? SECRETS : CONFIG_MAPS, destination);
    return;
  }
  const keys = source.keys?.length ? source.keys : undefined;
  const copy = kind === 'secret' ? syncSecret : syncConfigMap;
  await copy(context, source, destination, { keys });
}
