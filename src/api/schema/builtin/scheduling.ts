import { bool, int32, int64, list, oneOf, ref, str, strings, vocabulary } from '../dsl.ts';
import { type FieldError, invalid } from '../field-error.ts';
import { labelValue, qualifiedName } from '../name.ts';
import type { JsonObject } from '../schema.ts';
import { LabelSelector, metadata, time } from './meta.ts';
import { NodeSelector, NodeSelectorTerm } from './reference.ts';

/** Where pods may and should run. */

const { object } = vocabulary('io.k8s.api.core.v1', '', 'v1');

const TAINT_EFFECTS = ['NoExecute', 'NoSchedule', 'PreferNoSchedule'];
const PREEMPTION_POLICIES = ['Never', 'PreemptLowerPriority'];

export const Taint = object(
  'Taint',
  'Keeps pods away from a node unless they tolerate it.',
  {
    effect: oneOf(TAINT_EFFECTS, 'What happens to pods that do not tolerate the taint.'),
    key: str('Name of the taint.'),
    timeAdded: time('When a `NoExecute` taint was added.'),
    value: str('Value of the taint.'),
  },
  { required: ['effect', 'key'], check: taintErrors },
);

export const Toleration = object(
  'Toleration',
  'Lets a pod run in spite of matching taints.',
  {
    effect: oneOf(TAINT_EFFECTS, 'Effect of the taint; empty for all.'),
    key: str('Name of the taint; empty with `Exists` matches all.'),
    operator: oneOf(['Equal', 'Exists'], '`Exists` ignores the value; `Equal` is the default.'),
    tolerationSeconds: int64('How long a `NoExecute` taint is tolerated; absent for ever.'),
    value: str('Value of the taint to match.'),
  },
  { check: tolerationErrors },
);

const PreferredSchedulingTerm = object(
  'PreferredSchedulingTerm',
  'A wish about nodes, with its weight.',
  {
    preference: ref(NodeSelectorTerm, 'The nodes wished for.'),
    weight: int32('Weight of the wish.', { minimum: 1, maximum: 100 }),
  },
  { required: ['preference', 'weight'] },
);

const NodeAffinity = object('NodeAffinity', 'Which nodes a pod may or should run on.', {
  preferredDuringSchedulingIgnoredDuringExecution: list(
    PreferredSchedulingTerm,
    'Wishes; the best sum of weights wins.',
  ),
  requiredDuringSchedulingIgnoredDuringExecution: ref(NodeSelector, 'Conditions a node must meet at scheduling.'),
});

const PodAffinityTerm = object(
  'PodAffinityTerm',
  'A set of pods, and the domain in which to be with them or away from them.',
  {
    labelSelector: ref(LabelSelector, 'Selects the pods; absent selects none.'),
    matchLabelKeys: strings('Labels whose value in the new pod is added to the selector with `in`.'),
    mismatchLabelKeys: strings('Labels whose value in the new pod is added to the selector with `notin`.'),
    namespaceSelector: ref(LabelSelector, 'Selects namespaces to look in; an empty one is all.'),
    namespaces: strings('Namespaces to look in, besides those selected; none at all means the namespace of the pod.'),
    topologyKey: str('Node label whose value names the domain, such as `kubernetes.io/hostname`.'),
  },
  { required: ['topologyKey'] },
);

const WeightedPodAffinityTerm = object(
  'WeightedPodAffinityTerm',
  'A wish about other pods, with its weight.',
  {
    podAffinityTerm: ref(PodAffinityTerm, 'The pods and the domain.'),
    weight: int32('Weight of the wish.', { minimum: 1, maximum: 100 }),
  },
  { required: ['podAffinityTerm', 'weight'] },
);

const POD_AFFINITY_FIELDS = {
  preferredDuringSchedulingIgnoredDuringExecution: list(
    WeightedPodAffinityTerm,
    'Wishes; the best sum of weights wins.',
  ),
  requiredDuringSchedulingIgnoredDuringExecution: list(PodAffinityTerm, 'Conditions that must all hold at scheduling.'),
};

const PodAffinity = object('PodAffinity', 'Which pods to run beside.', POD_AFFINITY_FIELDS);
const PodAntiAffinity = object('PodAntiAffinity', 'Which pods to stay away from.', POD_AFFINITY_FIELDS);

export const Affinity = object('Affinity', 'Conditions and wishes for the scheduler.', {
  nodeAffinity: ref(NodeAffinity, 'About nodes.'),
  podAffinity: ref(PodAffinity, 'About pods to be near to.'),
  podAntiAffinity: ref(PodAntiAffinity, 'About pods to be away from.'),
});

export const TopologySpreadConstraint = object(
  'TopologySpreadConstraint',
  'How evenly matching pods are spread over domains.',
  {
    labelSelector: ref(LabelSelector, 'The pods that are counted.'),
    matchLabelKeys: strings('Labels whose value in the new pod is added to the selector.'),
    maxSkew: int32('Largest difference between the fullest and the emptiest domain.', { minimum: 1 }),
    minDomains: int32('With fewer domains, the emptiest counts as having no pods.', { minimum: 1 }),
    nodeAffinityPolicy: oneOf(['Honor', 'Ignore'], "Whether nodes outside the pod's affinity count."),
    nodeTaintsPolicy: oneOf(['Honor', 'Ignore'], 'Whether tainted nodes count.'),
    topologyKey: str('Node label whose value names the domain.'),
    whenUnsatisfiable: oneOf(['DoNotSchedule', 'ScheduleAnyway'], 'What to do when no node keeps the skew.'),
  },
  { required: ['maxSkew', 'topologyKey', 'whenUnsatisfiable'] },
);

const preemptionPolicy = (description: string) => oneOf(PREEMPTION_POLICIES, description);

export const podPreemptionPolicy = preemptionPolicy('Whether pods of lower priority are pushed out for this one.');

export const PriorityClass = vocabulary('io.k8s.api.scheduling.v1', 'scheduling.k8s.io', 'v1').kind(
  'PriorityClass',
  'A name for a pod priority.',
  {
    description: str('When to use this class.'),
    globalDefault: bool('Pods without a class get this one; at most one class may say so.'),
    metadata,
    preemptionPolicy: {
      ...preemptionPolicy('Whether pods of lower priority are pushed out.'),
      default: 'PreemptLowerPriority',
    },
    value: int32('The priority; higher is more important.'),
  },
  { zero: ['value'] },
);

function taintErrors({ key, value }: JsonObject, path: string): FieldError[] {
  return [
    ...(typeof key === 'string' && key !== ''
      ? qualifiedName(key).map(fault => invalid(`${path}.key`, key, fault))
      : []),
    ...(typeof value === 'string' ? labelValue(value).map(fault => invalid(`${path}.value`, value, fault)) : []),
  ];
}

function tolerationErrors(toleration: JsonObject, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const { key, operator, value, effect, tolerationSeconds } = toleration;
  if ((key ?? '') === '' && operator !== 'Exists') {
    errors.push(
      invalid(
        `${path}.operator`,
        operator ?? '',
        'operator must be Exists when `key` is empty, which means "match all values and all keys"',
      ),
    );
  }
  if (tolerationSeconds !== undefined && effect !== 'NoExecute') {
    errors.push(invalid(`${path}.effect`, effect ?? '', "effect must be 'NoExecute' when `tolerationSeconds` is set"));
  }
  if (operator === 'Exists' && (value ?? '') !== '') {
    errors.push(invalid(`${path}.operator`, value, "value must be empty when `operator` is 'Exists'"));
  }
  return errors;
}
