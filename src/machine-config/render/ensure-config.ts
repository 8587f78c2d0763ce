import { isAlreadyExists } from '../../kube/error.ts';
import type { Informer } from '../../kube/informer.ts';
import type { Kube } from '../../kube/port.ts';
import { MACHINE_CONFIGS, type MachineConfig } from '../../machine-config-api/machine-config.ts';
import { mergeMachineConfig } from './apply.ts';

/** Creates a generated MachineConfig, or brings the existing one to it; writes nothing where nothing differs (spec 50, TM-8). */
export async function ensureMachineConfig(
  kube: Kube,
  cache: Pick<Informer<MachineConfig>, 'get' | 'remember'>,
  required: MachineConfig,
  signal?: AbortSignal,
): Promise<'created' | 'updated' | 'unchanged'> {
  const key = { name: required.metadata?.name ?? '' };
  const cached = cache.get(key);
  if (cached === undefined) {
    try {
      cache.remember(await kube.create(MACHINE_CONFIGS, required, { signal }));
      return 'created';
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
  }
  const existing = cached ?? (await kube.get(MACHINE_CONFIGS, key, { signal }));
  const { object, changed } = mergeMachineConfig(existing, required);
  if (!changed) return 'unchanged';
  cache.remember(await kube.update(MACHINE_CONFIGS, object, { signal }));
  return 'updated';
}
