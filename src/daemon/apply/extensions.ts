import type { OperatingSystem } from '../../host/os-release.ts';
import type { BootedOs } from '../../host/port.ts';

/** What an extension consists of on RHCOS and SCOS (spec 60, 8.9.3). */
export const EXTENSION_PACKAGES: Readonly<Record<string, readonly string[]>> = {
  wasm: ['crun-wasm'],
  ipsec: ['NetworkManager-libreswan', 'libreswan'],
  usbguard: ['usbguard'],
  kerberos: ['krb5-workstation', 'libkadm5'],
  'kernel-devel': ['kernel-devel', 'kernel-headers'],
  'sandboxed-containers': ['kata-containers'],
};

/** Why a list of extensions cannot be installed on RHCOS or SCOS, undefined if it can. */
export function extensionProblem(extensions: readonly string[]): string | undefined {
  const unknown = extensions.filter(extension => !Object.hasOwn(EXTENSION_PACKAGES, extension));
  return unknown.length === 0 ? undefined : `invalid extensions found: [${unknown.join(' ')}]`;
}

/** Arguments of rpm-ostree that bring one list of extensions to the other. */
export function extensionArguments(
  os: Pick<OperatingSystem, 'isEL'>,
  before: readonly string[],
  after: readonly string[],
): string[] {
  const packagesOf = (extension: string) => (os.isEL ? (EXTENSION_PACKAGES[extension] ?? []) : [extension]);
  const added = after.filter(extension => !before.includes(extension)).flatMap(packagesOf);
  const removed = before.filter(extension => !after.includes(extension)).flatMap(packagesOf);
  return ['update', ...added.flatMap(name => ['--install', name]), ...removed.flatMap(name => ['--uninstall', name])];
}

/** Takes out of the arguments what the booted system already has or has not; undefined when nothing is left to do. */
export function stillNeeded(change: readonly string[], { layeredPackages }: BootedOs): string[] | undefined {
  const layered = new Set(layeredPackages);
  const [verb = '', ...rest] = change;
  const needed: string[] = [];
  for (let at = 0; at + 1 < rest.length; at += 2) {
    const [option, name] = [rest[at] as string, rest[at + 1] as string];
    if (layered.has(name) !== (option === '--install')) needed.push(option, name);
  }
  return rest.length > 0 && needed.length === 0 ? undefined : [verb, ...needed];
}

/** How many packages were changed by hand: they belong to no extension (spec 60, 13.1). */
export function unsupportedPackages({ layeredPackages, removedPackages = [], localPackages = [] }: BootedOs): number {
  const supported = new Set(Object.values(EXTENSION_PACKAGES).flat());
  return [...layeredPackages, ...removedPackages, ...localPackages].filter(name => !supported.has(name)).length;
}
