import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { installPackages } from '../tools/debian.ts';

/** The `etcd` of this machine, installed with the package client where that is possible; undefined: there is none. */
export function findEtcd(): string | undefined {
  return onPath('etcd') ?? (install() ? onPath('etcd') : undefined);
}

export const NO_ETCD = 'no etcd binary on PATH, and etcd-server could not be installed';

function onPath(name: string): string | undefined {
  for (const directory of (process.env.PATH ?? '').split(delimiter)) {
    const path = join(directory, name);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // Not there.
    }
  }
  return undefined;
}

function install(): boolean {
  try {
    installPackages('etcd-server');
    return true;
  } catch {
    return false;
  }
}
