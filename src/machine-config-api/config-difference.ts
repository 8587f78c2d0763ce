import { isDeepStrictEqual } from 'node:util';
import { emptyIgnition, type IgnitionConfig } from './ignition/types.ts';
import type { MachineConfig } from './machine-config.ts';

/** Which parts of two MachineConfigs differ (spec 60, section 7). */
export interface ConfigDifference {
  readonly osUpdate: boolean;
  readonly kargs: boolean;
  readonly fips: boolean;
  readonly passwd: boolean;
  /** Lists differ, their order included: a mere reorder counts although no path changed. */
  readonly files: boolean;
  readonly units: boolean;
  readonly kernelType: boolean;
  readonly extensions: boolean;
}

/** A MachineConfig whose Ignition document has been read. */
export interface ReadConfig {
  readonly name: string;
  readonly spec: NonNullable<MachineConfig['spec']>;
  readonly ignition: IgnitionConfig;
}

/** The parts in which two configs differ. The force file asks for the OS to be looked at again, whatever it is. */
export function configDifference(before: ReadConfig, after: ReadConfig, hasForceFile = false): ConfigDifference {
  const [old, current] = [before.ignition, after.ignition];
  return {
    osUpdate: hasForceFile || (before.spec.osImageURL ?? '') !== (after.spec.osImageURL ?? ''),
    kargs: !isDeepStrictEqual(before.spec.kernelArguments ?? [], after.spec.kernelArguments ?? []),
    fips: (before.spec.fips ?? false) !== (after.spec.fips ?? false),
    passwd: !isDeepStrictEqual(old.passwd, current.passwd),
    files: !isDeepStrictEqual(old.storage?.files, current.storage?.files),
    units: !isDeepStrictEqual(old.systemd?.units, current.systemd?.units),
    kernelType: canonicalKernelType(before.spec.kernelType) !== canonicalKernelType(after.spec.kernelType),
    extensions: !isDeepStrictEqual(before.spec.extensions ?? [], after.spec.extensions ?? []),
  };
}

/** Whether two configs differ in nothing at all. */
export function isNoDifference(difference: ConfigDifference): boolean {
  return Object.values(difference).every(isDifferent => !isDifferent);
}

/** `realtime`, `64k-pages`, or `default` for everything else (spec 60, section 7). */
export function canonicalKernelType(kernelType: string | undefined): 'default' | 'realtime' | '64k-pages' {
  return kernelType === 'realtime' || kernelType === '64k-pages' ? kernelType : 'default';
}

/** The config of a machine that has none yet (spec 60, 8.1). */
export const EMPTY_CONFIG: ReadConfig = { name: 'mco-empty-mc', spec: {}, ignition: emptyIgnition() };
