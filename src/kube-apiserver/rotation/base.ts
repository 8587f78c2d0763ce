import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { SCALE_CONFIG_MAP } from '../../certrotation/scale.ts';
import type { Condition } from '../../controller/condition.ts';
import { CONFIG_NAMESPACE } from '../namespaces.ts';

/** The ConfigMap that shortens the day of rotation; read when the process starts (spec 20, 1.9). */
export const ROTATION_BASE = { namespace: CONFIG_NAMESPACE, name: SCALE_CONFIG_MAP } as const;

/** Whether the cluster may be upgraded: not with a day of another length, whatever the text means (spec 20, 1.9.4). */
export function rotationBaseCondition(configMap: ConfigMap | undefined): Condition {
  const type = 'CertRotationTimeUpgradeable';
  const base = configMap?.data?.base ?? '';
  if (base === '') return { type, status: 'True', reason: 'DefaultCertRotationBase' };
  const { namespace, name } = ROTATION_BASE;
  const message = `configmap["${namespace}"]/${name} .data["base"]==${JSON.stringify(base)}`;
  return { type, status: 'False', reason: 'CertRotationBaseOverridden', message };
}
