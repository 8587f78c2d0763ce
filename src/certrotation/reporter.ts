import { type Condition, setCondition } from '../controller/condition.ts';
import { updateStatus } from '../controller/status.ts';
import type { Clock } from '../kube/clock.ts';
import type { Kube } from '../kube/port.ts';
import type { KubeObject, ObjectKey, Resource } from '../kube/resource.ts';
import type { Reporter } from './reconcile.ts';

export interface OperatorWithConditions extends KubeObject {
  status?: { conditions?: readonly Condition[] };
}

/** Reports each unit as `CertRotation_<unit>_Degraded` in the status of an operator resource (spec 10, R-1). */
export function operatorStatusReporter<T extends OperatorWithConditions>(
  kube: Kube,
  resource: Resource<T>,
  key: ObjectKey,
  clock: Clock,
): Reporter {
  return async (unit, error) => {
    const type = `CertRotation_${unit}_Degraded`;
    const condition: Condition =
      error === undefined
        ? { type, status: 'False', reason: '', message: '' }
        : { type, status: 'True', reason: 'RotationError', message: error.message };
    const mutate = (operator: T): T => {
      const conditions = setCondition(operator.status?.conditions ?? [], condition, clock.now());
      return { ...operator, status: { ...operator.status, conditions } };
    };
    return (await updateStatus(kube, resource, key, mutate, { clock })).updated;
  };
}
