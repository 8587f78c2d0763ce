import type { Log } from '../../controller/log.ts';
import type { Host } from '../../host/port.ts';
import type { IgnitionUser } from '../../machine-config-api/ignition/types.ts';

/** The hash that no password has: the user cannot log in with one. */
const NO_PASSWORD = '*';

/** Sets the password hashes of the new config; users that left it are locked (spec 60, 8.6). */
export async function updatePasswords(
  host: Host,
  before: readonly IgnitionUser[],
  after: readonly IgnitionUser[],
  log?: Log,
): Promise<void> {
  await lockMissingUsers(host, before, after, log);
  for (const { name, passwordHash } of after) {
    if ((await host.accounts.uid(name)) === undefined)
      log?.info({ user: name }, 'there is no such user; no password is set');
    else await host.accounts.setPasswordHash(name, passwordHash || NO_PASSWORD);
  }
}

/** Locked, never emptied: an empty hash would let in everybody (spec 60, D-18). */
export async function lockMissingUsers(
  { accounts }: Host,
  before: readonly IgnitionUser[],
  after: readonly IgnitionUser[],
  log?: Log,
): Promise<void> {
  const now = new Set(after.map(({ name }) => name));
  for (const { name } of before) {
    if (now.has(name) || (await accounts.uid(name)) === undefined) continue;
    try {
      await accounts.setPasswordHash(name, NO_PASSWORD);
    } catch (error) {
      log?.warn({ user: name, err: error }, 'the user could not be locked');
    }
  }
}
