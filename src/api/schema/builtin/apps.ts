import { bool, int32, int64, list, listBy, oneOf, ref, str, vocabulary } from '../dsl.ts';
import { type FieldError, unsupported } from '../field-error.ts';
import { isObject, withField } from '../json.ts';
import type { JsonObject, Schema } from '../schema.ts';
import { selectorRule } from '../selector-rules.ts';
import { PersistentVolumeClaim } from './claim.ts';
import { IntOrString, LabelSelector, metadata, RawExtension, time } from './meta.ts';
import { PodTemplateSpec } from './pod.ts';

/** Workloads that keep a number of pods running. */

const { object, kind } = vocabulary('io.k8s.api.apps.v1', 'apps', 'v1');

const HISTORY_LIMIT = 10;

const minReadySeconds = int32('Seconds a pod must be ready to count as available.', { minimum: 0 });
const replicas: Schema = int32('Wanted number of pods.', { default: 1, minimum: 0 });
const revisionHistoryLimit = int32('Old revisions to keep, to go back to.', { default: HISTORY_LIMIT, minimum: 0 });
const selector = ref(LabelSelector, 'Selects the pods; must match the labels of the template. Cannot be changed.');
const template = ref(PodTemplateSpec, 'The pods that are made.');
const atMost = (what: string) => ref(IntOrString, `${what}, as a number or as a percentage of those wanted.`);

const CONDITION_FIELDS = {
  lastTransitionTime: time('When `status` last changed.'),
  message: str('Details for people.'),
  reason: str('Why, in one word for programs.'),
  status: str('`True`, `False` or `Unknown`.'),
  type: str('Name of the aspect.'),
};
const condition = (of: string, fields = {}) =>
  object(
    `${of}Condition`,
    `One aspect of the state of a ${of}.`,
    { ...CONDITION_FIELDS, ...fields },
    { zero: ['status', 'type'] },
  );
const conditions = (of: string, fields = {}) => listBy(['type'], condition(of, fields), 'State by aspects.');

const observedGeneration = int64('`metadata.generation` the controller has seen.');
const collisionCount = int32('How often a generated name was taken already.');
const terminatingReplicas = int32('Pods that are ending.');

/** Pods of a workload are never done, so their containers are always started again. */
const workloadCheck = (workload: string) => {
  const selectorErrors = selectorRule(workload);
  return (spec: JsonObject, path: string): FieldError[] => [
    ...selectorErrors(spec, path),
    ...restartErrors(spec['template'], `${path}.template`),
  ];
};
const workloadRules = (workload: string) => ({ required: ['selector', 'template'], check: workloadCheck(workload) });

const RollingUpdateDeployment = object('RollingUpdateDeployment', 'How fast pods are replaced.', {
  maxSurge: atMost('Pods beyond the wanted number while updating'),
  maxUnavailable: atMost('Pods that may be missing while updating'),
});

const DeploymentStrategy = object(
  'DeploymentStrategy',
  'How pods are replaced by new ones.',
  {
    rollingUpdate: ref(RollingUpdateDeployment, 'How fast; only with type `RollingUpdate`.'),
    type: oneOf(['Recreate', 'RollingUpdate'], 'All at once or a few at a time.', { default: 'RollingUpdate' }),
  },
  { complete: strategy => completeRollingUpdate(strategy, { maxUnavailable: '25%', maxSurge: '25%' }) },
);

const DeploymentSpec = object(
  'DeploymentSpec',
  'What a deployment keeps running and how it updates.',
  {
    minReadySeconds,
    paused: bool('Changes of the template are not carried out.'),
    progressDeadlineSeconds: int32('Seconds without progress until the update counts as failed.', {
      default: 600,
      minimum: 0,
    }),
    replicas,
    revisionHistoryLimit,
    selector,
    strategy: ref(DeploymentStrategy, 'How pods are replaced by new ones.', {
      default: {},
      'x-kubernetes-patch-strategy': 'retainKeys',
    }),
    template,
  },
  workloadRules('deployment'),
);

const DeploymentStatus = object('DeploymentStatus', 'State of a deployment.', {
  availableReplicas: int32('Pods that are available.'),
  collisionCount,
  conditions: conditions('Deployment', { lastUpdateTime: time('When it was last updated.') }),
  observedGeneration,
  readyReplicas: int32('Pods that are ready.'),
  replicas: int32('Pods that exist.'),
  terminatingReplicas,
  unavailableReplicas: int32('Pods that are missing or not available.'),
  updatedReplicas: int32('Pods of the current template.'),
});

export const Deployment = kind('Deployment', 'Keeps a number of pods running and updates them gradually.', {
  metadata,
  spec: ref(DeploymentSpec, 'What is wanted.'),
  status: ref(DeploymentStatus, 'What was last observed.'),
});

const ReplicaSetSpec = object(
  'ReplicaSetSpec',
  'What a replica set keeps running.',
  { minReadySeconds, replicas, selector, template },
  { required: ['selector'], check: workloadCheck('deployment') },
);

const ReplicaSetStatus = object(
  'ReplicaSetStatus',
  'State of a replica set.',
  {
    availableReplicas: int32('Pods that are available.'),
    conditions: conditions('ReplicaSet'),
    fullyLabeledReplicas: int32('Pods that have all labels of the template.'),
    observedGeneration,
    readyReplicas: int32('Pods that are ready.'),
    replicas: int32('Pods that exist.'),
    terminatingReplicas,
  },
  { zero: ['replicas'] },
);

export const ReplicaSet = kind('ReplicaSet', 'Keeps a number of equal pods running.', {
  metadata,
  spec: ref(ReplicaSetSpec, 'What is wanted.'),
  status: ref(ReplicaSetStatus, 'What was last observed.'),
});

const RollingUpdateDaemonSet = object('RollingUpdateDaemonSet', 'How fast pods are replaced.', {
  maxSurge: atMost('Nodes that may have an old and a new pod while updating'),
  maxUnavailable: atMost('Nodes that may be without a pod while updating'),
});

const DaemonSetUpdateStrategy = object(
  'DaemonSetUpdateStrategy',
  'How pods are replaced by new ones.',
  {
    rollingUpdate: ref(RollingUpdateDaemonSet, 'How fast; only with type `RollingUpdate`.'),
    type: oneOf(['OnDelete', 'RollingUpdate'], 'By hand or a few at a time.', { default: 'RollingUpdate' }),
  },
  { complete: strategy => completeRollingUpdate(strategy, { maxUnavailable: 1, maxSurge: 0 }) },
);

const DaemonSetSpec = object(
  'DaemonSetSpec',
  'What a daemon set keeps running and how it updates.',
  {
    minReadySeconds,
    revisionHistoryLimit,
    selector,
    template,
    updateStrategy: ref(DaemonSetUpdateStrategy, 'How pods are replaced by new ones.', { default: {} }),
  },
  workloadRules('daemonset'),
);

const DaemonSetStatus = object(
  'DaemonSetStatus',
  'State of a daemon set.',
  {
    collisionCount,
    conditions: conditions('DaemonSet'),
    currentNumberScheduled: int32('Nodes that should have a pod and have one.'),
    desiredNumberScheduled: int32('Nodes that should have a pod.'),
    numberAvailable: int32('Nodes with an available pod.'),
    numberMisscheduled: int32('Nodes that have a pod and should not.'),
    numberReady: int32('Nodes with a ready pod.'),
    numberUnavailable: int32('Nodes without an available pod.'),
    observedGeneration,
    updatedNumberScheduled: int32('Nodes with a pod of the current template.'),
  },
  { zero: ['currentNumberScheduled', 'desiredNumberScheduled', 'numberMisscheduled', 'numberReady'] },
);

export const DaemonSet = kind('DaemonSet', 'Keeps one pod on every node, or on every node that is selected.', {
  metadata,
  spec: ref(DaemonSetSpec, 'What is wanted.'),
  status: ref(DaemonSetStatus, 'What was last observed.'),
});

const RollingUpdateStatefulSetStrategy = object(
  'RollingUpdateStatefulSetStrategy',
  'How fast and how far pods are replaced.',
  {
    maxUnavailable: atMost('Pods that may be missing while updating'),
    partition: int32('Only pods with this ordinal or a higher one are updated.', { minimum: 0 }),
  },
);

const StatefulSetUpdateStrategy = object(
  'StatefulSetUpdateStrategy',
  'How pods are replaced by new ones.',
  {
    rollingUpdate: ref(RollingUpdateStatefulSetStrategy, 'How far; only with type `RollingUpdate`.'),
    type: oneOf(['OnDelete', 'RollingUpdate'], 'By hand or one after the other; default `RollingUpdate`.'),
  },
  { complete: completeStatefulSetUpdate },
);

const claimPolicy = (when: string) =>
  oneOf(['Delete', 'Retain'], `What happens to claims when ${when}.`, { default: 'Retain' });

const ClaimRetentionPolicy = object(
  'StatefulSetPersistentVolumeClaimRetentionPolicy',
  'What happens to claims that are no longer needed.',
  { whenDeleted: claimPolicy('the set is deleted'), whenScaled: claimPolicy('the set is scaled down') },
);

const StatefulSetSpec = object(
  'StatefulSetSpec',
  'What a stateful set keeps running and how it updates.',
  {
    minReadySeconds,
    ordinals: ref(
      object('StatefulSetOrdinals', 'How pods are numbered.', { start: int32('First number.', { minimum: 0 }) }),
      'How pods are numbered; default from 0.',
    ),
    persistentVolumeClaimRetentionPolicy: ref(ClaimRetentionPolicy, 'What happens to claims.', { default: {} }),
    podManagementPolicy: oneOf(['OrderedReady', 'Parallel'], 'One after the other or all at once.', {
      default: 'OrderedReady',
    }),
    replicas,
    revisionHistoryLimit,
    selector,
    serviceName: str('Headless service that names the pods.'),
    template,
    updateStrategy: ref(StatefulSetUpdateStrategy, 'How pods are replaced by new ones.', { default: {} }),
    volumeClaimTemplates: list(PersistentVolumeClaim, 'Claims that are made for every pod.'),
  },
  workloadRules('statefulset'),
);

const StatefulSetStatus = object(
  'StatefulSetStatus',
  'State of a stateful set.',
  {
    availableReplicas: int32('Pods that are available.'),
    collisionCount,
    conditions: conditions('StatefulSet'),
    currentReplicas: int32('Pods of the revision before the update.'),
    currentRevision: str('Revision before the update.'),
    observedGeneration,
    readyReplicas: int32('Pods that are ready.'),
    replicas: int32('Pods that exist.'),
    updateRevision: str('Revision that is being rolled out.'),
    updatedReplicas: int32('Pods of that revision.'),
  },
  { zero: ['replicas'] },
);

export const StatefulSet = kind('StatefulSet', 'Keeps pods with lasting names and storage running.', {
  metadata,
  spec: ref(StatefulSetSpec, 'What is wanted.'),
  status: ref(StatefulSetStatus, 'What was last observed.'),
});

export const ControllerRevision = kind(
  'ControllerRevision',
  'One revision of the state of a controller. Cannot be changed.',
  {
    data: ref(RawExtension, 'The state.'),
    metadata,
    revision: int64('Number of the revision.'),
  },
  { zero: ['revision'] },
);

function restartErrors(template: unknown, path: string): FieldError[] {
  const spec = isObject(template) ? template['spec'] : undefined;
  const policy = isObject(spec) ? (spec['restartPolicy'] ?? '') : '';
  return policy === '' || policy === 'Always' ? [] : [unsupported(`${path}.spec.restartPolicy`, policy, ['Always'])];
}

function completeRollingUpdate(strategy: JsonObject, defaults: JsonObject): JsonObject {
  if (strategy['type'] !== 'RollingUpdate') return strategy;
  const given = isObject(strategy['rollingUpdate']) ? strategy['rollingUpdate'] : {};
  const missing = Object.keys(defaults).some(field => given[field] === undefined);
  return missing ? withField(strategy, 'rollingUpdate', { ...defaults, ...given }) : strategy;
}

/** Unlike the other two, a strategy that names its type gets no `rollingUpdate` of its own. */
function completeStatefulSetUpdate(strategy: JsonObject): JsonObject {
  const { type, rollingUpdate } = strategy;
  if ((type ?? '') === '') return completeRollingUpdate(withField(strategy, 'type', 'RollingUpdate'), { partition: 0 });
  return rollingUpdate === undefined ? strategy : completeRollingUpdate(strategy, { partition: 0 });
}
