import { hours, minutes } from '../../kube/duration.ts';
import type { Kind } from '../kinds/kind.ts';
import type { Core } from '../rest/core.ts';
import { remove } from '../rest/delete.ts';
import { type Controller, internalCall, splitPath } from './controller.ts';
import { Worker } from './worker.ts';

/** How long an Event is kept after it was last written. */
export const EVENT_LIFETIME_MS = hours(1);
/** Old Events are looked for at most this often, and only while new ones arrive. */
const SWEEP_INTERVAL_MS = minutes(1);

const BUCKET = '/events';

/** Removes Events nobody will read any more. */
export function expireEvents(core: Core, onError: (key: string, error: unknown) => void): Controller {
  const worker = new Worker(core.clock, () => sweep(), onError);
  /** When each Event was last written; those from before the start count from then. */
  const written = new Map<string, number>();
  let nextSweep = core.clock.now().getTime() + SWEEP_INTERVAL_MS;
  for (const { path } of core.store.list(BUCKET)) written.set(path, core.clock.now().getTime());
  const stop = core.store.watch(BUCKET, core.store.revision, ({ type, entry, at }) => {
    written.delete(entry.path);
    if (type !== 'deleted') written.set(entry.path, at);
    if (at < nextSweep) return;
    nextSweep = at + SWEEP_INTERVAL_MS;
    worker.add(BUCKET);
  });
  return {
    idle: () => worker.idle(),
    close: () => {
      stop();
      return worker.close();
    },
  };

  async function sweep(): Promise<undefined> {
    const kind = core.registry.ofBucket(BUCKET) as Kind;
    const oldest = core.clock.now().getTime() - EVENT_LIFETIME_MS;
    // In the order of writing: the first one that is young enough ends the sweep.
    for (const [path, at] of written) {
      if (at > oldest) return;
      const { namespace, name } = splitPath(kind, path);
      await remove(core, internalCall(kind, namespace, name, 'event-expiry'), { dryRun: false });
    }
  }
}
