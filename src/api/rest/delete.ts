import type { ObjectMeta } from 'kubernetes-types/meta/v1.d.ts';
import type { KubeObject } from '../../kube/resource.ts';
import { formatRfc3339 } from '../../kube/time.ts';
import { apiVersionOfKind, type Fields, type Kind, type Occasion, pathOf } from '../kinds/kind.ts';
import { sameJson } from '../schema/json.ts';
import { conflict, notFound } from '../status.ts';
import type { Entry } from '../store/entry.ts';
import type { Decision } from '../store/store.ts';
import { authorize } from './authorize.ts';
import { commit } from './commit.ts';
import type { Call, Core } from './core.ts';
import { FOREGROUND_FINALIZER, ORPHAN_FINALIZER } from './metadata.ts';

export type Propagation = 'Orphan' | 'Background' | 'Foreground';

export interface DeleteParameters {
  readonly dryRun: boolean;
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
  readonly gracePeriodSeconds?: number | undefined;
  readonly propagation?: Propagation | undefined;
  /** Also when it is damaged and cannot be read any more. Finalizers and dependents are unknown then, and passed over. */
  readonly evenDamaged?: boolean | undefined;
}

export interface Removed {
  /** The object as it is now, or as it last was. */
  readonly entry: Entry;
  /** It is gone; otherwise its deletion has begun and waits for finalizers or a grace period. */
  readonly gone: boolean;
}

/** Deletes an object, or begins to. */
export async function remove(core: Core, call: Call, parameters: DeleteParameters): Promise<Removed> {
  const { kind, namespace, name } = call;
  if (parameters.evenDamaged === true) authorize(core, call, 'unsafe-delete-ignore-read-errors');
  let gone = false;
  const entry = await commit(core, kind, pathOf(namespace, name), parameters, newest => {
    if (newest === undefined) throw notFound(kind, name);
    if (newest.damage !== undefined && parameters.evenDamaged === true) {
      gone = true;
      return { remove: { apiVersion: apiVersionOfKind(kind), kind: kind.kind, metadata: { name, namespace } } };
    }
    core.admission.delete(call, newest.object);
    checkPreconditions(kind, name, newest, parameters);
    const decision = decideDelete(kind, newest, parameters, { now: core.clock.now(), user: call.user });
    gone = 'remove' in decision;
    return decision;
  });
  return { entry, gone };
}

function checkPreconditions(
  kind: Kind,
  name: string,
  { object }: Entry,
  { uid, resourceVersion }: DeleteParameters,
): void {
  const { uid: stored = '', resourceVersion: version = '' } = object.metadata ?? {};
  // The real server names the kind here where it names the resource elsewhere.
  const subject = { group: kind.group, plural: kind.kind };
  if (uid !== undefined && uid !== stored) {
    const why = `the UID in the precondition (${uid}) does not match the UID in record (${stored}). The object might have been deleted and then recreated`;
    throw conflict(subject, name, why);
  }
  if (resourceVersion !== undefined && resourceVersion !== version) {
    const why = `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${version}). The object might have been modified`;
    throw conflict(subject, name, why);
  }
}

/** What deleting does to an object now: it goes, it is marked, or it is marked already. */
function decideDelete(kind: Kind, newest: Entry, parameters: DeleteParameters, occasion: Occasion): Decision {
  const stored = newest.object as Fields;
  const isNew = stored.metadata?.deletionTimestamp === undefined;
  const object = isNew ? (kind.rules.beginDelete?.(stored, occasion) ?? stored) : stored;
  const metadata = object.metadata ?? {};
  const asked = parameters.gracePeriodSeconds;
  const grace = gracePeriod(kind, object, asked === undefined || asked >= 0 ? asked : 1, occasion.now);
  if (grace === 'pending') return { keep: newest };
  const finalizers = finalizersAfter(kind, metadata, parameters.propagation);
  const waits = finalizers.length > 0 || kind.rules.isHeld?.(object) === true;
  const { finalizers: _, ...rest } = metadata;
  const marked: KubeObject = {
    ...object,
    metadata: {
      ...rest,
      ...(finalizers.length === 0 ? {} : { finalizers }),
      ...(isNew && metadata.generation !== undefined ? { generation: metadata.generation + 1 } : {}),
      deletionTimestamp: formatRfc3339(grace.at),
      deletionGracePeriodSeconds: grace.seconds,
    },
  };
  // Of what is deleted gracefully, even at once, the last state says so.
  if (!waits && grace.seconds === 0) return { remove: kind.rules.gracePeriod === undefined ? stored : marked };
  return sameJson(marked, stored) ? { keep: newest } : { put: marked };
}

/** When a graceful deletion ends, or that one is under way already which the request does not shorten. */
function gracePeriod(
  kind: Kind,
  object: Fields,
  asked: number | undefined,
  now: Date,
): { seconds: number; at: Date } | 'pending' {
  const { deletionTimestamp, deletionGracePeriodSeconds: running = 0 } = object.metadata ?? {};
  if (deletionTimestamp !== undefined) {
    const due = new Date(deletionTimestamp);
    if (kind.rules.gracePeriod === undefined || running === 0) return { seconds: 0, at: due < now ? due : now };
    if (asked === undefined || asked >= running) return 'pending';
    const at = new Date(Math.max(due.getTime() + (asked - running) * 1000, now.getTime()));
    return { seconds: asked, at };
  }
  const seconds = kind.rules.gracePeriod?.(object, asked) ?? 0;
  return { seconds, at: new Date(now.getTime() + seconds * 1000) };
}

/** The finalizers that remain, with the one that stands for the way dependents are treated. */
function finalizersAfter(kind: Kind, { finalizers = [] }: ObjectMeta, propagation: Propagation | undefined): string[] {
  const others = finalizers.filter(name => name !== ORPHAN_FINALIZER && name !== FOREGROUND_FINALIZER);
  const standing = finalizers.includes(ORPHAN_FINALIZER)
    ? 'Orphan'
    : finalizers.includes(FOREGROUND_FINALIZER)
      ? 'Foreground'
      : kind.rules.orphansByDefault === true
        ? 'Orphan'
        : 'Background';
  switch (propagation ?? standing) {
    case 'Orphan':
      return [...others, ORPHAN_FINALIZER];
    case 'Foreground':
      return [...others, FOREGROUND_FINALIZER];
    case 'Background':
      return others;
  }
}
