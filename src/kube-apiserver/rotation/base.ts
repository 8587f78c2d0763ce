import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { rotationDay, SCALE_CONFIG_MAP } from '../../certrotation/scale.ts';
import type { Condition } from '../../controller/condition.ts';
import { createIfMissing } from '../../kube/create-if-missing.ts';
import { formatGoDuration } from '../../kube/duration.ts';
import { goQuote } from '../../kube/go-quote.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS } from '../../kube/resource.ts';
import { CONFIG_NAMESPACE } from '../namespaces.ts';

/** The ConfigMap that shortens the day of rotation; read when the process starts (spec 20, 1.9). */
export const ROTATION_BASE = { namespace: CONFIG_NAMESPACE, name: SCALE_CONFIG_MAP } as const;

/**
 * Puts a day of another length where everybody looks for it who has to do with rotation: the regeneration controller on the nodes,
 * the commands, the condition below. A length that somebody has set already stays.
 */
export async function ensureRotationBase(kube: Kube, dayMs: number, signal?: AbortSignal): Promise<void> {
  if (dayMs === rotationDay(0)) return;
  const data = { base: formatGoDuration(dayMs) };
  await createIfMissing(kube, CONFIG_MAPS, { metadata: ROTATION_BASE, data }, signal);
}

/** Whether the cluster may be upgraded: not with a day of another length, whatever the text means (spec 20, 1.9.4). */
export function rotationBaseCondition(configMap: ConfigMap | undefined): Condition {
  const type = 'CertRotationTimeUpgradeable';
  const base = configMap?.data?.base ?? '';
  if (base === '') return { type, status: 'True', reason: 'DefaultCertRotationBase' };
  const { namespace, name } = ROTATION_BASE;
  const message = `configmap["${namespace}"]/${name} .data["base"]==${goQuote(base)}`;
  return { type, status: 'False', reason: 'CertRotationBaseOverridden', message };
}
