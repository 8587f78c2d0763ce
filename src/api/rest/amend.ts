import type { Fields, Kind } from '../kinds/kind.ts';
import { sameJson } from '../schema/json.ts';
import { notFound } from '../status.ts';
import type { Entry } from '../store/entry.ts';
import { commit } from './commit.ts';
import type { Core } from './core.ts';
import { isFinished } from './update.ts';

/**
 * Changes a stored object on behalf of the server itself, without the checks that are made of clients. `change` returns
 * its argument to leave everything as it is, and may throw to refuse.
 */
export function amend(
  core: Core,
  kind: Kind,
  path: string,
  change: (object: Fields) => Fields,
  dryRun = false,
): Promise<Entry> {
  return commit(core, kind, path, { dryRun }, newest => {
    if (newest === undefined) throw notFound(kind, path.slice(path.indexOf('/') + 1));
    const old = newest.object as Fields;
    const object = change(old);
    if (object === old || sameJson(object, old)) return { keep: newest };
    return isFinished(kind, object, old) ? { remove: object } : { put: object };
  });
}
