import { rootedFiles } from './directory-disk.ts';
import { type HostHooks, hostOnDisk } from './on-disk.ts';
import type { Host, HostFiles } from './port.ts';

export interface LocalHostOptions extends HostHooks {
  /** The directory that is the node's root file system. */
  readonly root: string;
}

/** Below the root: one line for everything that was asked of services, and for each reboot. */
export const SERVICE_LOG = '/var/log/rotunda/services.log';
const LARGEST_LOG_BYTES = 1024 * 1024;

/** A local node: its root is a directory, nothing of it runs but what the hooks start. */
export function localHost({ root, ...hooks }: LocalHostOptions): Host {
  const files = rootedFiles(root);
  let last: Promise<void> = Promise.resolve();
  return hostOnDisk({
    ...hooks,
    files,
    record(line) {
      last = last.then(() => appendLine(files, `${new Date().toISOString()} ${line.replaceAll('\n', ' ')}\n`));
      return last;
    },
  });
}

async function appendLine(files: HostFiles, line: string): Promise<void> {
  const log = (await files.read(SERVICE_LOG)) ?? Buffer.alloc(0);
  const kept = log.length > LARGEST_LOG_BYTES ? log.subarray(log.indexOf('\n', log.length / 2) + 1) : log;
  await files.write(SERVICE_LOG, Buffer.concat([kept, Buffer.from(line)]));
}
