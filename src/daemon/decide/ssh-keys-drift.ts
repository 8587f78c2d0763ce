import type { HostFiles } from '../../host/port.ts';
import type { IgnitionConfig } from '../../machine-config-api/ignition/types.ts';
import type { Drift } from './disk-validation.ts';

const KEYS_MODE = 0o600;
/** Keys of some hundred people. */
const LARGEST_KEYS_BYTES = 1024 * 1024;

/**
 * How the keys on a disk are not those of the config, undefined if they are. A config without users says nothing about keys. Order,
 * blank lines and comments do not matter; a key too many does: somebody can log in who should not. 4.16 does not look (spec 60, 11.1).
 */
export async function sshKeysDrift(
  { passwd }: IgnitionConfig,
  path: string,
  files: Pick<HostFiles, 'stat' | 'read'>,
): Promise<Drift | undefined> {
  if (passwd?.users === undefined) return undefined;
  const wanted = new Set(passwd.users.flatMap(({ sshAuthorizedKeys = [] }) => sshAuthorizedKeys.flatMap(keysIn)));
  const message = await keysProblem(wanted, path, files);
  return message === undefined ? undefined : { kind: 'ssh', path, message };
}

async function keysProblem(
  wanted: ReadonlySet<string>,
  path: string,
  files: Pick<HostFiles, 'stat' | 'read'>,
): Promise<string | undefined> {
  const stat = await files.stat(path);
  if (stat === undefined) return wanted.size === 0 ? undefined : `could not stat file "${path}": it does not exist`;
  if (stat.kind !== 'file') return `"${path}": expected a file, found a ${stat.kind}`;
  if ((stat.mode & ~KEYS_MODE) !== 0) {
    return `mode mismatch for file: "${path}"; expected: 0600; received: 0${stat.mode.toString(8)}`;
  }
  const content = (await files.read(path, LARGEST_KEYS_BYTES)) ?? Buffer.alloc(0);
  const found = new Set(keysIn(content.toString('utf8')));
  if (found.symmetricDifference(wanted).size === 0) return undefined;
  const [missing, foreign] = [wanted.difference(found).size, found.difference(wanted).size];
  return `content mismatch for file "${path}": ${missing} keys are missing, ${foreign} are not from the config`;
}

function keysIn(text: string): string[] {
  return text
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '' && !line.startsWith('#'));
}
