import { KUBELET_CONFIGURATION, type KubeletConfiguration, zeroOf } from './decode.ts';
import type { GoType } from './go-type.ts';

/** One configuration with another one on top of it. What is zero or empty there never takes away what is here. */
export function laidOver(base: KubeletConfiguration, changes: KubeletConfiguration): KubeletConfiguration {
  return merged(KUBELET_CONFIGURATION, base, changes) as KubeletConfiguration;
}

function merged(type: GoType, base: unknown, change: unknown): unknown {
  if (base === undefined) return change;
  if (change === undefined) return base;
  switch (type.kind) {
    case 'pointer':
      return merged(type.of, base, change);
    case 'struct': {
      const [before, after] = [base as KubeletConfiguration, change as KubeletConfiguration];
      const fields = [...type.fields.values()].map(field => [
        field.name,
        merged(field.type, before[field.name], after[field.name]),
      ]);
      return Object.fromEntries(fields.filter(([, value]) => value !== undefined));
    }
    case 'map':
      return { ...(base as object), ...(change as object) };
    case 'slice':
      return (change as unknown[]).length > 0 ? change : base;
    default:
      return change === zeroOf(type) ? base : change;
  }
}
