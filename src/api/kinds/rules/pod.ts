import type { Container, Pod, PodSpec } from 'kubernetes-types/core/v1.d.ts';
import { type FieldError, forbidden, invalid } from '../../schema/field-error.ts';
import { sameJson } from '../../schema/json.ts';
import type { Fields, Rules } from '../kind.ts';
import { FIELD_IMMUTABLE } from './immutable.ts';

export const podRules: Rules = {
  generation: true,
  statusWritesMetadata: true,
  prepareCreate: pod => ({ ...pod, status: { phase: 'Pending', qosClass: qosClass((pod as Pod).spec) } }),
  prepareStatus: prepareStatus,
  checkUpdate: updateErrors,
  gracePeriod,
};

function prepareStatus(pod: Fields, old: Fields): Fields {
  const status = (pod as Pod).status ?? {};
  const qos = status.qosClass || (old as Pod).status?.qosClass;
  const { ownerReferences: _, ...metadata } = pod.metadata ?? {};
  const owners = old.metadata?.ownerReferences;
  return {
    ...pod,
    metadata: { ...metadata, ...(owners === undefined ? {} : { ownerReferences: owners }) },
    status: { ...status, ...(qos === undefined ? {} : { qosClass: qos }) },
  };
}

/** A pod that runs on a node is deleted by the node once its containers have stopped; any other one at once. */
function gracePeriod(object: Fields, asked: number | undefined): number {
  const { spec, status } = object as Pod;
  if (!spec?.nodeName || status?.phase === 'Succeeded' || status?.phase === 'Failed') return 0;
  const period = asked ?? spec.terminationGracePeriodSeconds ?? 0;
  return period < 0 ? 1 : period;
}

const CHANGEABLE =
  '`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)';

function updateErrors(object: Fields, old: Fields): FieldError[] {
  const [spec, before] = [(object as Pod).spec, (old as Pod).spec];
  const errors: FieldError[] = [];
  if ((object as Pod).status?.qosClass !== (old as Pod).status?.qosClass) {
    errors.push(invalid('status.qosClass', (object as Pod).status?.qosClass, FIELD_IMMUTABLE));
  }
  if (spec === undefined || before === undefined || sameJson(spec, before)) return errors;
  for (const field of ['containers', 'initContainers'] as const) {
    if ((spec[field]?.length ?? 0) !== (before[field]?.length ?? 0)) {
      return [...errors, forbidden(`spec.${field}`, 'pod updates may not add or remove containers')];
    }
  }
  const kept = (before.tolerations ?? []).every(toleration =>
    (spec.tolerations ?? []).some(other => sameJson(other, toleration)),
  );
  if (!kept)
    errors.push(forbidden('spec.tolerations', 'existing toleration can not be modified except its tolerationSeconds'));
  errors.push(...deadlineErrors(spec, before));
  const masked = {
    ...spec,
    containers: withImagesOf(spec.containers, before.containers),
    ...(spec.initContainers === undefined
      ? {}
      : { initContainers: withImagesOf(spec.initContainers, before.initContainers ?? []) }),
  };
  const changed = changedFields(masked, before).filter(field => !ALWAYS_CHANGEABLE.has(field));
  if (changed.length > 0) {
    const list = changed.map(field => `spec.${field}`).join(', ');
    errors.push(forbidden('spec', `pod updates may not change fields other than ${CHANGEABLE}\nchanged: ${list}`));
  }
  return errors;
}

const ALWAYS_CHANGEABLE: ReadonlySet<string> = new Set(['tolerations', 'activeDeadlineSeconds', 'schedulingGates']);

function deadlineErrors(spec: PodSpec, before: PodSpec): FieldError[] {
  const [now, then] = [spec.activeDeadlineSeconds, before.activeDeadlineSeconds];
  const path = 'spec.activeDeadlineSeconds';
  if (then === undefined || now === then) return [];
  if (now === undefined) return [invalid(path, now, 'must not update from a positive integer to nil value')];
  return now > then ? [invalid(path, now, 'must be less than or equal to previous value')] : [];
}

function withImagesOf(containers: readonly Container[], before: readonly Container[]): Container[] {
  return containers.map((container, index) => {
    const image = before[index]?.image;
    const { image: _, ...rest } = container;
    return image === undefined ? rest : { ...rest, image };
  });
}

function changedFields(spec: object, before: object): string[] {
  const [a, b] = [spec as Record<string, unknown>, before as Record<string, unknown>];
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].filter(field => !sameJson(a[field], b[field])).sort();
}

/** How the pod is treated when memory runs out, computed once when it is created. */
export function qosClass(spec: PodSpec | undefined): 'Guaranteed' | 'Burstable' | 'BestEffort' {
  const containers = [...(spec?.containers ?? []), ...(spec?.initContainers ?? [])];
  const measured = ['cpu', 'memory'] as const;
  const isSet = (quantity: string | undefined) => quantity !== undefined && Number.parseFloat(quantity) !== 0;
  const any = containers.some(({ resources }) =>
    measured.some(name => isSet(resources?.requests?.[name]) || isSet(resources?.limits?.[name])),
  );
  if (!any) return 'BestEffort';
  const guaranteed = containers.every(({ resources }) =>
    measured.every(name => {
      const limit = resources?.limits?.[name];
      return isSet(limit) && (resources?.requests?.[name] ?? limit) === limit;
    }),
  );
  return guaranteed ? 'Guaranteed' : 'Burstable';
}
