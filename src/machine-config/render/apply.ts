import { semanticallyEqual } from '../../kube/equality.ts';
import { mergeMetadata } from '../../kube/metadata.ts';
import type { MachineConfig, MachineConfigSpec } from '../../machine-config-api/machine-config.ts';

/** An object as it should be, and whether it has to be written for that. */
export interface Merged {
  readonly object: MachineConfig;
  readonly changed: boolean;
}

const TEXTS = ['osImageURL', 'kernelType', 'baseOSExtensionsContainerImage'] as const;
const TAKEN = ['config', 'kernelArguments', 'extensions', 'fips'] as const;

/**
 * The existing MachineConfig with the generated one laid over it (spec 50, TM-8): metadata is merged, texts are replaced when
 * they say something, everything else is taken as generated, so that edits by hand are undone.
 */
export function mergeMachineConfig(existing: MachineConfig, required: MachineConfig): Merged {
  const metadata = mergeMetadata(existing.metadata ?? {}, required.metadata ?? {});
  const [before, wanted] = [existing.spec ?? {}, required.spec ?? {}];
  const spec: Record<string, unknown> = { ...before };
  for (const name of TEXTS) if (wanted[name]) spec[name] = wanted[name];
  for (const name of TAKEN) {
    if (Object.hasOwn(wanted, name)) spec[name] = wanted[name];
    else delete spec[name];
  }
  const changed = metadata.changed || !isSame(before, spec);
  return { object: changed ? { ...existing, metadata: metadata.result, spec } : existing, changed };
}

function isSame(a: MachineConfigSpec, b: MachineConfigSpec): boolean {
  return (
    TEXTS.every(name => (a[name] ?? '') === (b[name] ?? '')) &&
    semanticallyEqual(a.config, b.config) &&
    semanticallyEqual(a.kernelArguments, b.kernelArguments) &&
    semanticallyEqual(a.extensions, b.extensions) &&
    (a.fips ?? false) === (b.fips ?? false)
  );
}
