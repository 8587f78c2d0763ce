import type { Selection } from '../select/selection.ts';
import { expired } from '../status.ts';
import { type Change, Entry } from '../store/entry.ts';
import { CompactedError } from '../store/store.ts';
import type { Call, Core } from './core.ts';
import { matches, type SelectionParameters, selectionOf } from './read.ts';
import { readVersion } from './version.ts';

export interface WatchParameters extends SelectionParameters {
  readonly resourceVersion?: string | undefined;
  readonly allowBookmarks: boolean;
  /** The present state first, then a bookmark that says so, then changes. */
  readonly sendInitialEvents: boolean;
}

/** Takes what a watch sees. Called synchronously; must not throw. */
export interface WatchSink {
  event(type: 'ADDED' | 'MODIFIED' | 'DELETED', entry: Entry): void;
  bookmark(revision: number, initialEventsEnd: boolean): void;
}

/** Throws 400 for parameters that make no sense, before anything is sent. */
export function checkWatch(call: Call, parameters: WatchParameters): void {
  selectionOf(call, parameters);
  readVersion(parameters.resourceVersion);
}

/**
 * Shows a sink everything that happens from now on, or since a resource version; without a version (or with 0) the
 * present state first. Returns the function that ends it. Throws 410 when the version is gone.
 */
export function watch(core: Core, call: Call, parameters: WatchParameters, sink: WatchSink): () => void {
  const chosen = selectionOf(call, parameters);
  const version = readVersion(parameters.resourceVersion) ?? 0;
  const withState = version === 0 || parameters.sendInitialEvents;
  const from = withState ? core.store.revision : version;
  if (withState) {
    const prefix = call.namespace === '' ? '' : `${call.namespace}/`;
    for (const entry of core.store.list(call.kind.bucket, { prefix })) {
      if (matches(call, chosen, entry)) sink.event('ADDED', entry);
    }
    if (parameters.sendInitialEvents && parameters.allowBookmarks) sink.bookmark(from, true);
  }
  const listener = listenerOf(call, chosen, sink);
  try {
    return core.store.watch(call.kind.bucket, from, listener);
  } catch (error) {
    if (!(error instanceof CompactedError)) throw error;
    throw expired(`too old resource version: ${error.revision} (${error.compacted})`);
  }
}

function listenerOf(call: Call, chosen: Selection, sink: WatchSink): (change: Change) => void {
  const prefix = call.namespace === '' ? '' : `${call.namespace}/`;
  return change => {
    const { entry, previous, type } = change;
    if (!entry.path.startsWith(prefix)) return;
    const now = type !== 'deleted' && matches(call, chosen, entry);
    const before = previous !== undefined && matches(call, chosen, previous);
    if (now) sink.event(before ? 'MODIFIED' : 'ADDED', entry);
    else if (before) sink.event('DELETED', type === 'deleted' ? entry : lastMatching(change, previous));
  };
}

/** The object as it last matched, with the version of the change that ended it; one for all watches. */
function lastMatching(change: Change, previous: Entry): Entry {
  const known = LAST_MATCHING.get(change);
  if (known !== undefined) return known;
  const { bucket, path, revision } = change.entry;
  const metadata = { ...previous.object.metadata, resourceVersion: String(revision) };
  const entry = new Entry(bucket, path, revision, Buffer.from(JSON.stringify({ ...previous.object, metadata })));
  LAST_MATCHING.set(change, entry);
  return entry;
}

const LAST_MATCHING = new WeakMap<Change, Entry>();
