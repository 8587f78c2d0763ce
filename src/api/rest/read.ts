import { pathOf } from '../kinds/kind.ts';
import { exactField } from '../select/field.ts';
import { type Selection, selection } from '../select/selection.ts';
import { badRequest, ExpiredTokenError, expired, notFound, versionTooLarge } from '../status.ts';
import type { Entry } from '../store/entry.ts';
import { CompactedError } from '../store/store.ts';
import { type Continuation, formatContinue, readContinue } from './continue.ts';
import type { Call, Core } from './core.ts';
import { readVersion } from './version.ts';
import { isAsStored, present } from './view.ts';

export interface SelectionParameters {
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

export interface ListParameters extends SelectionParameters {
  readonly limit?: number | undefined;
  readonly continue?: string | undefined;
  readonly resourceVersion?: string | undefined;
  readonly resourceVersionMatch?: 'Exact' | 'NotOlderThan' | undefined;
}

export interface Page {
  readonly entries: readonly Entry[];
  readonly revision: number;
  readonly continue?: string | undefined;
  readonly remaining?: number | undefined;
}

/** One object. Throws 404. */
export function get(core: Core, { kind, namespace, name }: Call, resourceVersion?: string): Entry {
  const wanted = readVersion(resourceVersion);
  if (wanted !== undefined && wanted > core.store.revision) throw versionTooLarge(wanted, core.store.revision);
  const entry = core.store.get(kind.bucket, pathOf(namespace, name));
  if (entry === undefined) throw notFound(kind, name);
  entry.assertWhole();
  return entry;
}

/** A collection, or a page of it. With a damaged object in it there is none: who misses the object would take it for deleted. */
export function list(core: Core, call: Call, parameters: ListParameters): Page {
  const { namespace } = call;
  const chosen = selectionOf(call, parameters);
  const from = parameters.continue ? resume(core, parameters) : start(core, parameters);
  const limit = parameters.limit ?? 0;
  const prefix = namespace === '' ? '' : `${namespace}/`;
  const entries: Entry[] = [];
  let remaining = 0;
  for (const entry of candidates(core, call, chosen, prefix, from)) {
    if (!matches(call, chosen, entry)) continue;
    if (limit > 0 && entries.length >= limit) {
      remaining++;
      // Counting what remains is cheap when nothing has to be matched; otherwise it is not told, as in the real server.
      if (!chosen.everything) break;
    } else {
      entry.assertWhole();
      entries.push(entry);
    }
  }
  const revision = from.revision ?? core.store.revision;
  const last = entries.at(-1);
  if (remaining === 0 || last === undefined) return { entries, revision };
  return {
    entries,
    revision,
    continue: formatContinue({ revision: from.revision ?? core.store.revision, after: last.path }),
    ...(chosen.everything ? { remaining } : {}),
  };
}

/** The selectors of a request, with the object's name when the URL has one. */
export function selectionOf({ kind, name }: Call, { labelSelector, fieldSelector }: SelectionParameters): Selection {
  const named = name === '' ? fieldSelector : [`metadata.name=${name}`, fieldSelector].filter(Boolean).join(',');
  return selection({ labelSelector, fieldSelector: named, selectable: kind.selectable });
}

export function matches({ kind }: Call, chosen: Selection, entry: Entry): boolean {
  if (chosen.everything) return true;
  return chosen.matches(isAsStored(kind, entry) ? entry.object : present(kind, entry));
}

function candidates(
  core: Core,
  { kind, namespace }: Call,
  chosen: Selection,
  prefix: string,
  { revision, after }: Partial<Continuation>,
): Iterable<Entry> {
  const name = exactField(chosen.fields, 'metadata.name');
  if (name !== undefined && (!kind.namespaced || namespace !== '') && revision === undefined) {
    const entry = core.store.get(kind.bucket, pathOf(namespace, name));
    return entry === undefined ? [] : [entry];
  }
  try {
    return core.store.list(kind.bucket, { prefix, after, at: revision });
  } catch (error) {
    if (!(error instanceof CompactedError)) throw error;
    throw after === undefined
      ? expired('The resourceVersion for the provided list is too old.')
      : new ExpiredTokenError(formatContinue({ revision: undefined, after }));
  }
}

function start(core: Core, { resourceVersion, resourceVersionMatch }: ListParameters): Partial<Continuation> {
  const wanted = readVersion(resourceVersion);
  if (wanted !== undefined && wanted > core.store.revision) throw versionTooLarge(wanted, core.store.revision);
  return resourceVersionMatch === 'Exact' && wanted !== undefined ? { revision: wanted } : {};
}

function resume(core: Core, parameters: ListParameters): Partial<Continuation> {
  const version = parameters.resourceVersion ?? '';
  if (version !== '' && version !== '0') {
    throw badRequest('specifying resource version is not allowed when using continue');
  }
  const { revision, after } = readContinue(parameters.continue ?? '');
  if (revision === undefined) return { after };
  if (revision > core.store.revision) throw versionTooLarge(revision, core.store.revision);
  return { revision, after };
}
