import type { Namespace, NamespaceCondition } from 'kubernetes-types/core/v1.d.ts';
import { formatRfc3339 } from '../../kube/time.ts';
import type { Fields, Kind } from '../kinds/kind.ts';
import { NAMESPACE_FINALIZER } from '../kinds/rules/namespace.ts';
import { amend } from '../rest/amend.ts';
import type { Core } from '../rest/core.ts';
import { remove } from '../rest/delete.ts';
import { EVERYTHING } from '../store/store.ts';
import { type Controller, internalCall, splitPath } from './controller.ts';
import { Worker } from './worker.ts';

/** Empties namespaces that are being deleted, and lets them go when nothing is left in them. */
export function emptyNamespaces(core: Core, onError: (key: string, error: unknown) => void): Controller {
  const terminating = (name: string) => {
    const namespace = core.store.newest('/namespaces', name);
    return namespace?.damage === undefined && namespace?.object.metadata?.deletionTimestamp !== undefined;
  };
  const worker = new Worker(core.clock, name => empty(name), onError);
  const stop = core.store.watch(EVERYTHING, core.store.revision, ({ type, entry }) => {
    const namespace = entry.bucket === '/namespaces' ? entry.path : (entry.object.metadata?.namespace ?? '');
    if (namespace === '' || (entry.bucket !== '/namespaces' && type !== 'deleted')) return;
    if (terminating(namespace)) worker.add(namespace);
  });
  for (const { path } of core.store.list('/namespaces')) if (terminating(path)) worker.add(path);
  return {
    idle: () => worker.idle(),
    close: () => {
      stop();
      return worker.close();
    },
  };

  async function empty(namespace: string): Promise<undefined> {
    if (!terminating(namespace)) return;
    const kinds = core.registry.stored().filter(kind => kind.namespaced);
    for (const kind of kinds) await clear(kind, namespace);
    const left = kinds.flatMap(kind => {
      const count = [...core.store.list(kind.bucket, { prefix: `${namespace}/` })].length;
      return count === 0 ? [] : [{ kind, count }];
    });
    const namespaceKind = core.registry.find('', 'v1', 'namespaces') as Kind;
    await amend(core, namespaceKind, namespace, object =>
      left.length === 0 ? released(object) : described(core, object as Namespace, namespace, left),
    );
  }

  async function clear(kind: Kind, namespace: string): Promise<void> {
    // A copy: the collection changes while it is cleared.
    const entries = Array.from(core.store.list(kind.bucket, { prefix: `${namespace}/` }));
    for (const entry of entries) {
      const { uid, deletionTimestamp } = entry.object.metadata ?? {};
      if (deletionTimestamp !== undefined) continue;
      const call = internalCall(kind, namespace, splitPath(kind, entry.path).name, 'namespace-controller');
      await remove(core, call, { dryRun: false, uid, propagation: 'Background' }).catch(ignoreGone);
    }
  }
}

function released(object: Fields): Fields {
  const finalizers = ((object as Namespace).spec?.finalizers ?? []).filter(name => name !== NAMESPACE_FINALIZER);
  return { ...object, spec: finalizers.length === 0 ? {} : { finalizers } };
}

interface Left {
  readonly kind: Kind;
  readonly count: number;
}

/** What is still there, for whoever asks why the namespace does not go. */
function described(core: Core, object: Namespace, namespace: string, left: readonly Left[]): Fields {
  const finalizers = new Map<string, number>();
  for (const { kind } of left) {
    for (const entry of core.store.list(kind.bucket, { prefix: `${namespace}/` })) {
      for (const name of entry.object.metadata?.finalizers ?? []) finalizers.set(name, (finalizers.get(name) ?? 0) + 1);
    }
  }
  const content = left
    .map(({ kind, count }) => `${kind.plural}.${kind.group} has ${count} resource instances`)
    .join(', ');
  const waiting = [...finalizers].map(([name, count]) => `${name} in ${count} resource instances`).join(', ');
  const now = formatRfc3339(core.clock.now());
  const conditions: NamespaceCondition[] = [
    {
      type: 'NamespaceContentRemaining',
      status: 'True',
      reason: 'SomeResourcesRemain',
      message: `Some resources are remaining: ${content}`,
    },
    waiting === ''
      ? {
          type: 'NamespaceFinalizersRemaining',
          status: 'False',
          reason: 'ContentHasNoFinalizers',
          message: 'All content-preserving finalizers finished',
        }
      : {
          type: 'NamespaceFinalizersRemaining',
          status: 'True',
          reason: 'SomeFinalizersRemain',
          message: `Some content in the namespace has finalizers remaining: ${waiting}`,
        },
  ];
  const before = object.status?.conditions ?? [];
  const stamped = conditions.map(condition => {
    const known = before.find(({ type }) => type === condition.type);
    return {
      ...condition,
      lastTransitionTime: known?.status === condition.status ? (known.lastTransitionTime ?? now) : now,
    };
  });
  return { ...object, status: { ...object.status, conditions: stamped } };
}

function ignoreGone(error: unknown): void {
  const reason = (error as { reason?: string }).reason;
  if (reason !== 'NotFound' && reason !== 'Conflict') throw error;
}
