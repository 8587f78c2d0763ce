import type { Kind } from '../kinds/kind.ts';
import { entityTooLarge } from '../status.ts';
import { Entry } from '../store/entry.ts';
import { type Decision, ObjectTooLargeError } from '../store/store.ts';
import type { Core } from './core.ts';

/** Carries a decision out, or shows what it would come to. */
export async function commit(
  core: Core,
  kind: Kind,
  path: string,
  dryRun: boolean,
  decide: (newest: Entry | undefined) => Decision,
): Promise<Entry> {
  if (!dryRun) {
    return core.store.write(kind.bucket, path, decide).catch((error: unknown) => {
      throw error instanceof ObjectTooLargeError ? entityTooLarge(error.message) : error;
    });
  }
  const decision = decide(core.store.newest(kind.bucket, path));
  if ('keep' in decision) return decision.keep;
  const object = 'put' in decision ? decision.put : decision.remove;
  return new Entry(kind.bucket, path, core.store.revision + 1, Buffer.from(JSON.stringify(object)));
}
