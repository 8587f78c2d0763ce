import { posix } from 'node:path';
import type { HostFiles, HostSessions, LoginSession } from './port.ts';
import { ANY_NAME } from './watch-paths.ts';

/** Where logind keeps one small file for each session. */
export const SESSIONS_DIRECTORY = '/run/systemd/sessions';
const LARGEST_BYTES = 64 * 1024;

/** The login sessions of a host as logind writes them down. */
export function sessionsOnDisk(files: HostFiles): HostSessions {
  return {
    async list() {
      const sessions: LoginSession[] = [];
      for (const id of (await files.list(SESSIONS_DIRECTORY)) ?? []) {
        if (!/^[a-z]?[0-9]+$/.test(id)) continue;
        const text = await files.read(posix.join(SESSIONS_DIRECTORY, id), LARGEST_BYTES);
        if (text !== undefined) sessions.push(sessionOf(id, text.toString('utf8')));
      }
      return sessions;
    },
    watch: (changed, signal) => files.watch([posix.join(SESSIONS_DIRECTORY, ANY_NAME)], changed, signal),
  };
}

function sessionOf(id: string, text: string): LoginSession {
  const fields = new Map(text.split('\n').map(line => line.split('=', 2) as [string, string]));
  const microseconds = Number(fields.get('REALTIME') ?? 0);
  return {
    id,
    user: fields.get('USER') ?? '',
    isRemote: fields.get('REMOTE') === '1',
    since: new Date(Math.floor(microseconds / 1000)).toISOString(),
  };
}
