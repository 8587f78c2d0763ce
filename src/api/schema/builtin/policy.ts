import { int32, int64, listBy, map, oneOf, ref, str, vocabulary } from '../dsl.ts';
import { type FieldError, invalid } from '../field-error.ts';
import { percentage } from '../name.ts';
import type { JsonObject } from '../schema.ts';
import { Condition, DeleteOptions, IntOrString, LabelSelector, metadata, microTime, Time } from './meta.ts';

/** Disruption budgets and evictions, leases, and the scale subresource. */

const policy = vocabulary('io.k8s.api.policy.v1', 'policy', 'v1');
const coordination = vocabulary('io.k8s.api.coordination.v1', 'coordination.k8s.io', 'v1');
const autoscaling = vocabulary('io.k8s.api.autoscaling.v1', 'autoscaling', 'v1');

const PodDisruptionBudgetSpec = policy.object(
  'PodDisruptionBudgetSpec',
  'How many of the selected pods may be away at the same time.',
  {
    maxUnavailable: ref(IntOrString, 'Pods that may be away, as a number or a percentage; not with `minAvailable`.'),
    minAvailable: ref(IntOrString, 'Pods that must stay, as a number or a percentage; not with `maxUnavailable`.'),
    selector: ref(LabelSelector, 'The pods; an empty selector is all of the namespace.', {
      'x-kubernetes-patch-strategy': 'replace',
    }),
    unhealthyPodEvictionPolicy: oneOf(
      ['AlwaysAllow', 'IfHealthyBudget'],
      'When pods that are not ready may be evicted.',
    ),
  },
  { check: budgetErrors },
);

const PodDisruptionBudgetStatus = policy.object(
  'PodDisruptionBudgetStatus',
  'State of a disruption budget.',
  {
    conditions: listBy(['type'], Condition, 'State by aspects.'),
    currentHealthy: int32('Pods that are healthy.'),
    desiredHealthy: int32('Pods that must stay healthy.'),
    disruptedPods: map(Time, 'Pods whose eviction was granted and not seen yet, with the time.'),
    disruptionsAllowed: int32('Evictions that would be granted now.'),
    expectedPods: int32('Pods that are counted.'),
    observedGeneration: int64('`metadata.generation` the controller has seen.'),
  },
  { zero: ['currentHealthy', 'desiredHealthy', 'disruptionsAllowed', 'expectedPods'] },
);

export const PodDisruptionBudget = policy.kind('PodDisruptionBudget', 'Limits how many pods are evicted at a time.', {
  metadata,
  spec: ref(PodDisruptionBudgetSpec, 'What is wanted.'),
  status: ref(PodDisruptionBudgetStatus, 'What was last observed.'),
});

export const Eviction = policy.kind('Eviction', 'Asks for a pod to go, if its disruption budgets allow it.', {
  deleteOptions: ref(DeleteOptions, 'How to delete the pod.'),
  metadata: { ...metadata, description: 'Names the pod.' },
});

const LeaseSpec = coordination.object('LeaseSpec', 'Who holds a lease, and for how long.', {
  acquireTime: microTime('When the holder got it.'),
  holderIdentity: str('The holder.'),
  leaseDurationSeconds: int32('Seconds after `renewTime` until others may take it.', { minimum: 1 }),
  leaseTransitions: int32('How often it changed hands.', { minimum: 0 }),
  preferredHolder: str('Who should have it.'),
  renewTime: microTime('When the holder last renewed it.'),
  strategy: str('How the holder is found.'),
});

export const Lease = coordination.kind('Lease', 'Says who has a role, such as being the leader, until when.', {
  metadata,
  spec: ref(LeaseSpec, 'Holder and times.'),
});

const ScaleSpec = autoscaling.object('ScaleSpec', 'The wanted size.', {
  replicas: int32('Wanted number of pods.', { default: 0, minimum: 0 }),
});

const ScaleStatus = autoscaling.object(
  'ScaleStatus',
  'The actual size.',
  { replicas: int32('Pods that exist.'), selector: str('Selector of the pods, as text.') },
  { zero: ['replicas'] },
);

export const Scale = autoscaling.kind('Scale', 'The size of something that can be scaled.', {
  metadata,
  spec: ref(ScaleSpec, 'The wanted size.'),
  status: ref(ScaleStatus, 'The actual size. Read-only.'),
});

function budgetErrors(spec: JsonObject, path: string): FieldError[] {
  const { minAvailable, maxUnavailable } = spec;
  const both = minAvailable !== undefined && maxUnavailable !== undefined;
  return [
    ...(both ? [invalid(path, spec, 'minAvailable and maxUnavailable cannot be both set')] : []),
    ...shareErrors(minAvailable, `${path}.minAvailable`),
    ...shareErrors(maxUnavailable, `${path}.maxUnavailable`),
  ];
}

/** A number of pods, or a share of them that is not more than all. */
function shareErrors(value: unknown, path: string): FieldError[] {
  if (typeof value === 'number') return value < 0 ? [invalid(path, value, 'must be greater than or equal to 0')] : [];
  if (typeof value !== 'string') return [];
  const faults = percentage(value);
  if (faults.length === 0 && Number.parseInt(value, 10) > 100) faults.push('must not be greater than 100%');
  return faults.map(fault => invalid(path, value, fault));
}
