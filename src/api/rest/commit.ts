import type { Kind } from '../kinds/kind.ts';
import { entityTooLarge } from '../status.ts';
import { Entry } from '../store/entry.ts';
import { type Decision, ObjectTooLargeError } from '../store/store.ts';
import type { Core } from './core.ts';

/**
 * Carries a decision out, or shows what it would come to. As on the real server, an object that is too large is stored
 * without the record of who owns what, if that is enough, unless it `needsOwners`.
 */
export async function commit(
  core: Core,
  kind: Kind,
  path: string,
  { dryRun, needsOwners = false }: { dryRun: boolean; needsOwners?: boolean },
  decide: (newest: Entry | undefined) => Decision,
): Promise<Entry> {
  if (!dryRun) {
    try {
      return await core.store.write(kind.bucket, path, decide).catch((error: unknown) => {
        if (needsOwners || !(error instanceof ObjectTooLargeError)) throw error;
        return core.store.write(kind.bucket, path, newest => withoutOwners(decide(newest)));
      });
    } catch (error) {
      throw error instanceof ObjectTooLargeError ? entityTooLarge(error.message) : error;
    }
  }
  const decision = decide(core.store.newest(kind.bucket, path));
  if ('keep' in decision) return decision.keep;
  const object = 'put' in decision ? decision.put : decision.remove;
  return new Entry(kind.bucket, path, core.store.revision + 1, Buffer.from(JSON.stringify(object)));
}

function withoutOwners(decision: Decision): Decision {
  if (!('put' in decision)) return decision;
  const { managedFields: _, ...metadata } = decision.put.metadata ?? {};
  return { put: { ...decision.put, metadata } };
}
