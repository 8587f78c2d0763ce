import type { Host } from '../../host/port.ts';
import type { IgnitionConfig, IgnitionUnit } from '../../machine-config-api/ignition/types.ts';
import { decideRemoval, type Removal, removePath } from './originals.ts';
import { dropinPath, hasContents, isDropinOf, retireUnit, type UnitOptions, unitPath } from './units.ts';

/** Certificates belong to their own writer, and stay when a config no longer has them (spec 60, 8.4.1). */
const CERTIFICATE_PATHS = new Set([
  '/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt',
  '/etc/kubernetes/kubelet-ca.crt',
  '/etc/kubernetes/static-pod-resources/configmaps/cloud-config/ca-bundle.pem',
]);
const REGISTRY_CERTIFICATES = '/etc/docker/certs.d';

/** Links that older versions left behind (spec 60, 8.4.6). */
const LEAKED_LINKS = [
  '/etc/systemd/system/network-online.target.requires/node-valid-hostname.service',
  '/etc/systemd/system/network-online.target.wants/ovs-configuration.service',
];

/** A path that left the config, and what becomes of it. */
export interface Pruning {
  readonly path: string;
  readonly removal: Removal;
  /** The unit whose file it is, which is retired first. */
  readonly unit?: string;
}

/** Everything that left the config (spec 60, 8.4). Decided before anything is changed. */
export async function decidePruning(host: Host, before: IgnitionConfig, after: IgnitionConfig): Promise<Pruning[]> {
  const kept = pathsOf(after);
  const prunings: Pruning[] = [];
  const add = async (path: string, isUnit: boolean, unit?: string) => {
    if (kept.has(path)) return;
    prunings.push({ path, removal: await decideRemoval(host, path, isUnit), ...(unit !== undefined && { unit }) });
  };
  for (const path of staleFiles(before, after)) await add(path, false);
  for (const path of staleDropins(before, after)) await add(path, true);
  for (const unit of staleUnits(before, after)) await add(unitPath(unit), true, unit);
  for (const unit of emptiedUnits(before, after)) await add(unitPath(unit), true);
  return prunings;
}

/** Removes, or brings back to what was shipped, everything that left the config; gives the paths. May be repeated. */
export async function prune(host: Host, prunings: readonly Pruning[], options: UnitOptions): Promise<string[]> {
  const removed: string[] = [];
  for (const { path, removal, unit } of prunings) {
    if (unit !== undefined) await retireUnit(host, unit, options);
    if (await removePath(host, path, removal)) removed.push(path);
    else if (unit === undefined) options.log?.warn({ path }, 'stale file was gone already');
  }
  for (const link of LEAKED_LINKS) {
    if ((await host.files.readLink(link)) !== undefined) await host.files.remove(link);
  }
  return removed;
}

function staleFiles(before: IgnitionConfig, after: IgnitionConfig): string[] {
  const units = after.systemd?.units ?? [];
  const now = new Set((after.storage?.files ?? []).map(({ path }) => path));
  return (before.storage?.files ?? [])
    .map(({ path }) => path)
    .filter(path => !now.has(path) && !isCertificatePath(path) && !isDropinOf(path, units));
}

/** Whether a path is the business of the certificate writer, whoever named it. */
export function isCertificatePath(path: string): boolean {
  return CERTIFICATE_PATHS.has(path) || path.slice(0, path.lastIndexOf('/')).includes(REGISTRY_CERTIFICATES);
}

function staleDropins(before: IgnitionConfig, after: IgnitionConfig): string[] {
  const paths = (config: IgnitionConfig) =>
    (config.systemd?.units ?? []).flatMap(({ name, dropins = [] }) =>
      dropins.map(dropin => dropinPath(name, dropin.name)),
    );
  const now = new Set(paths(after));
  return paths(before).filter(path => !now.has(path));
}

function staleUnits(before: IgnitionConfig, after: IgnitionConfig): string[] {
  const now = new Set((after.systemd?.units ?? []).map(({ name }) => name));
  return (before.systemd?.units ?? []).map(({ name }) => name).filter(name => !now.has(name));
}

/** Units that were a file or a mask because of the config, and are listed in it still, but as neither. */
function emptiedUnits(before: IgnitionConfig, after: IgnitionConfig): string[] {
  const isOnDisk = (unit: IgnitionUnit) => hasContents(unit) || unit.mask === true;
  const old = new Map((before.systemd?.units ?? []).map(unit => [unit.name, unit]));
  return (after.systemd?.units ?? [])
    .filter(unit => !isOnDisk(unit) && isOnDisk(old.get(unit.name) ?? unit))
    .map(({ name }) => name);
}

/** Every path that a config has something at. */
function pathsOf({ storage, systemd }: IgnitionConfig): Set<string> {
  const units = systemd?.units ?? [];
  return new Set([
    ...(storage?.files ?? []).map(({ path }) => path),
    ...units.filter(unit => hasContents(unit) || unit.mask === true).map(({ name }) => unitPath(name)),
    ...units.flatMap(({ name, dropins = [] }) =>
      dropins.filter(hasContents).map(dropin => dropinPath(name, dropin.name)),
    ),
  ]);
}
