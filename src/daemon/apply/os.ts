import { isDeepStrictEqual } from 'node:util';
import type { OperatingSystem } from '../../host/os-release.ts';
import { type BootedOs, type Host, HostError, type HostOs } from '../../host/port.ts';
import { type Clock, sleep } from '../../kube/clock.ts';
import { seconds } from '../../kube/duration.ts';
import {
  type ConfigDifference,
  canonicalKernelType,
  configDifference,
  type ReadConfig,
} from '../../machine-config-api/config-difference.ts';
import { extensionArguments, extensionProblem, stillNeeded } from './extensions.ts';
import { updateKernelArguments } from './kernel-arguments.ts';

export interface OsUpdateEvent {
  readonly reason: 'InClusterUpgrade' | 'OSUpdateStarted' | 'OSUpdateStaged' | 'OSUpgradeApplied' | 'OSUpgradeSkipped';
  readonly message: string;
}

export interface OsOptions {
  readonly clock: Clock;
  readonly system: OperatingSystem;
  readonly hasForceFile?: boolean | undefined;
  /** Told what happens; events of the node (spec 60, section 12). */
  report?(event: OsUpdateEvent): void;
}

/** Whether the operating system has to be looked at at all: without need nothing touches it (spec 60, 8.7.2). */
export function needsOsRoutine({ spec }: ReadConfig, difference: ConfigDifference): boolean {
  const { osUpdate, extensions, kernelType, kargs } = difference;
  const isSpecial = canonicalKernelType(spec.kernelType) !== 'default' || (spec.extensions ?? []).length > 0;
  return osUpdate || extensions || kernelType || kargs || isSpecial;
}

/** Text of the event OSUpdateStarted (spec 60, 8.7.3). */
export function osChangesText(difference: Partial<ConfigDifference>): string {
  const parts = [
    difference.osUpdate && 'Upgrading OS',
    difference.extensions && 'Installing extensions',
    difference.kernelType && 'Changing kernel type',
    difference.kargs && 'Changing kernel arguments',
  ];
  return parts.filter(part => typeof part === 'string').join('; ');
}

/**
 * Why this machine cannot take the operating system part of a change, undefined if it can: where the system is an image that is
 * changed in other ways, nothing is begun. A machine that is no image takes the rest of the change (`osPartsLeftOut`).
 */
export function osRefusal({ os }: Pick<Host, 'os'>, before: ReadConfig, after: ReadConfig): string | undefined {
  const inImage = changesInImage(configDifference(before, after));
  return os?.tool === 'bootc' && inImage.length > 0
    ? `cannot change ${inImage.join(', ')}: bootc takes them only as part of an image`
    : undefined;
}

/** What of a change stays undone because the operating system of this machine is not an image (spec 60, 8.1 step 13). */
export function osPartsLeftOut({ os }: Pick<Host, 'os'>, before: ReadConfig, after: ReadConfig): string[] {
  if (os !== undefined) return [];
  const difference = configDifference(before, after);
  return [...(difference.osUpdate ? ['the OS image'] : []), ...changesInImage(difference)];
}

function changesInImage({ kargs, kernelType, extensions }: ConfigDifference): string[] {
  return [kargs && 'kernel arguments', kernelType && 'the kernel type', extensions && 'extensions'].filter(
    part => typeof part === 'string',
  );
}

/**
 * Stages the operating system of the new config for the next boot (spec 60, 8.8 and 8.9). What was staged before is thrown away
 * first and everything is compared with what is booted, so it may be repeated, and undone by exchanging the configs.
 */
export async function updateOs(host: Host, before: ReadConfig, after: ReadConfig, options: OsOptions): Promise<void> {
  const { os } = host;
  const difference = configDifference(before, after, options.hasForceFile);
  if (os === undefined || !needsOsRoutine(after, difference)) return;
  const { osUpdate, extensions, kernelType } = difference;
  const report = (reason: OsUpdateEvent['reason'], message: string) => options.report?.({ reason, message });
  const image = after.spec.osImageURL ?? '';
  if (osUpdate || extensions || kernelType) report('InClusterUpgrade', `Updating from oscontainer ${image}`);
  report('OSUpdateStarted', osChangesText(difference));
  const booted = await os.booted();
  const isRebased = osUpdate && image !== '' && booted.image !== image;
  const source = after.spec.baseOSExtensionsContainerImage ?? '';
  const needsPackages = source !== '' && (isRebased || extensions || kernelType);
  const withdraw = needsPackages
    ? await retried(options.clock, OFFER_TRIES, async () => os.offerExtensions?.(source))
    : undefined;
  await os.discardStaged();
  try {
    if (isRebased || kernelType) await revertKernel(os, booted);
    if (isRebased) {
      await retried(options.clock, REBASE_TRIES, () => os.rebase(image));
      report('OSUpgradeApplied', `OS upgrade applied; new MachineConfig (${after.name}) has new OS image (${image})`);
    } else
      report(
        'OSUpgradeSkipped',
        `OS upgrade skipped; new MachineConfig (${after.name}) has same OS image (${image}) as old MachineConfig (${before.name})`,
      );
    await updateKernelArguments(os, before.spec.kernelArguments ?? [], after.spec.kernelArguments ?? []);
    if (isRebased || kernelType) await switchKernel(os, after, options.system);
    await updateExtensions(os, before, after, booted, options.system);
  } catch (error) {
    await os.discardStaged();
    throw error;
  } finally {
    await withdraw?.();
  }
  report('OSUpdateStaged', 'Changes to OS staged');
}

const REBASE_TRIES = 5;
const OFFER_TRIES = 6;
const FIRST_WAIT_MS = seconds(5);

/** Registries fail now and then (spec 60, 8.8.3 and 8.8.6). */
async function retried<T>(clock: Clock, tries: number, work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (attempt === tries || (error instanceof HostError && error.code === 'unsupported')) throw error;
      await sleep(clock, FIRST_WAIT_MS * 2 ** (attempt - 1));
    }
  }
}

const DEFAULT_KERNEL = ['kernel', 'kernel-core', 'kernel-modules', 'kernel-modules-core', 'kernel-modules-extra'];
const KERNELS = {
  default: [],
  realtime: ['kernel-rt-core', 'kernel-rt-modules', 'kernel-rt-modules-extra', 'kernel-rt-kvm'],
  '64k-pages': ['kernel-64k-core', 'kernel-64k-modules', 'kernel-64k-modules-core', 'kernel-64k-modules-extra'],
} as const;

/** Puts the kernel of the image back where another one has replaced it (spec 60, 8.8.5). */
async function revertKernel(os: HostOs, { removedPackages = [], layeredPackages }: BootedOs): Promise<void> {
  const removed = removedPackages.filter(name => DEFAULT_KERNEL.includes(name));
  const other = layeredPackages.filter(name => /^kernel-(?:rt|64k)-/.test(name));
  if (removed.length === 0 || other.length === 0) return;
  await os.changePackages(['override', 'reset', ...removed, ...other.flatMap(name => ['--uninstall', name])]);
}

async function switchKernel(os: HostOs, { spec }: ReadConfig, { isEL }: OperatingSystem): Promise<void> {
  const kernelType = canonicalKernelType(spec.kernelType);
  if (kernelType === 'default') return;
  if (!isEL) throw new HostError('unsupported', `kernel type ${kernelType} is only for RHCOS and SCOS`);
  if (kernelType === '64k-pages' && process.arch !== 'arm64')
    throw new HostError('unsupported', 'kernel type 64k-pages is only for aarch64');
  await os.changePackages([
    'override',
    'remove',
    ...DEFAULT_KERNEL,
    ...KERNELS[kernelType].flatMap(name => ['--install', name]),
  ]);
}

async function updateExtensions(
  os: HostOs,
  before: ReadConfig,
  after: ReadConfig,
  booted: BootedOs,
  system: OperatingSystem,
): Promise<void> {
  const [old, current] = [before.spec.extensions ?? [], after.spec.extensions ?? []];
  const isSameImage = before.spec.osImageURL === after.spec.osImageURL;
  if ((old.length === 0 && current.length === 0) || (isDeepStrictEqual(old, current) && isSameImage)) return;
  const problem = system.isEL ? extensionProblem(current) : undefined;
  if (problem !== undefined) throw new HostError('unsupported', problem);
  const change = stillNeeded(extensionArguments(system, old, current), booted);
  if (change !== undefined) await os.changePackages(change);
}

export interface BootedCheck {
  readonly isCoreOSVariant: boolean;
  readonly targetImage: string;
  readonly bootedImage: string;
  readonly bootedCommit: string;
  /** Label `ostree.commit` of the target image; undefined where the registry did not say. */
  readonly targetCommit: string | undefined;
}

/** Whether the booted operating system is the one of the config (spec 60, 11.1.1). */
export function isBootedInto({
  isCoreOSVariant,
  targetImage,
  bootedImage,
  bootedCommit,
  targetCommit,
}: BootedCheck): boolean {
  if (!isCoreOSVariant || targetImage === bootedImage) return true;
  return targetCommit !== undefined && targetCommit !== '' && targetCommit === bootedCommit;
}
