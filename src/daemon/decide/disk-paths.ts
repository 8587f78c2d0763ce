import { posix } from 'node:path';
import { KUBELET_CA } from '../../machine-config-api/built-in-actions.ts';
import type { IgnitionConfig } from '../../machine-config-api/ignition/types.ts';

const SYSTEMD = '/etc/systemd/system';

/** Files that belong to the certificate writer, whatever a config says of them (spec 60, 11.1.4). */
const EXEMPT: ReadonlySet<string> = new Set([
  KUBELET_CA,
  '/etc/kubernetes/static-pod-resources/configmaps/cloud-config/ca-bundle.pem',
  '/etc/mco/internal-registry-pull-secret.json',
]);

/** Whether a file of a config is not compared with the disk. */
export function isExempt(path: string): boolean {
  return EXEMPT.has(path);
}

export function unitPath(unit: string): string {
  return `${SYSTEMD}/${unit}`;
}

export function dropinPath(unit: string, dropin: string): string {
  return `${SYSTEMD}/${unit}.d/${dropin}`;
}

/**
 * The paths at which a change may mean drift, sorted: those of files, units and drop-ins, and the keys (spec 60, 11.2.3). Paths that
 * do not exist are among them, since they may come (D-36).
 */
export function driftPaths({ storage, systemd }: IgnitionConfig, sshKeysPath?: string): string[] {
  const files = (storage?.files ?? []).map(({ path }) => path).filter(path => !isExempt(path));
  const units = (systemd?.units ?? []).flatMap(({ name, dropins = [] }) => [
    unitPath(name),
    ...dropins.map(dropin => dropinPath(name, dropin.name)),
  ]);
  return [...new Set([...files, ...units, ...(sshKeysPath === undefined ? [] : [sshKeysPath])])].sort();
}

/** The directories that hold these paths, each once. */
export function directoriesOf(paths: readonly string[]): string[] {
  return [...new Set(paths.map(path => posix.dirname(path)))].sort();
}
