import { list, listBy, map, oneOf, ref, str, stringMap, strings, vocabulary } from '../dsl.ts';
import { LabelSelector, metadata, Quantity, time } from './meta.ts';
import { TypedLocalObjectReference, TypedObjectReference } from './reference.ts';

/** Claims for persistent storage. */

const { object, kind } = vocabulary('io.k8s.api.core.v1', '', 'v1');

const ACCESS_MODES = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod'];

const VolumeResourceRequirements = object('VolumeResourceRequirements', 'How much storage is wanted.', {
  limits: map(Quantity, 'Most that may be given.'),
  requests: map(Quantity, 'Least that is wanted; `storage` is the one that counts.'),
});

export const PersistentVolumeClaimSpec = object('PersistentVolumeClaimSpec', 'What storage is wanted.', {
  accessModes: list({ type: 'string', enum: ACCESS_MODES }, 'How the volume will be mounted.'),
  dataSource: ref(TypedLocalObjectReference, 'Snapshot or claim to start from.'),
  dataSourceRef: ref(TypedObjectReference, 'Object of any kind to start from.'),
  resources: ref(VolumeResourceRequirements, 'How much is wanted.'),
  selector: ref(LabelSelector, 'Which volumes may be bound.'),
  storageClassName: str('Storage class; empty for none, absent for the default one.'),
  volumeAttributesClassName: str('Attributes class of the volume.'),
  volumeMode: oneOf(['Block', 'Filesystem'], 'Whether the volume has a file system.', { default: 'Filesystem' }),
  volumeName: str('The volume this claim is bound to.'),
});

const PersistentVolumeClaimCondition = object(
  'PersistentVolumeClaimCondition',
  'One aspect of the state of a claim.',
  {
    lastProbeTime: time('When it was last checked.'),
    lastTransitionTime: time('When `status` last changed.'),
    message: str('Details for people.'),
    reason: str('Why, in one word for programs.'),
    status: str('`True`, `False` or `Unknown`.'),
    type: str('Name of the aspect, such as `Resizing`.'),
  },
  { zero: ['status', 'type'] },
);

const ModifyVolumeStatus = object(
  'ModifyVolumeStatus',
  'Progress of a change of the attributes class.',
  {
    status: str('`Pending`, `InProgress` or `Infeasible`.'),
    targetVolumeAttributesClassName: str('The class that is being set.'),
  },
  { zero: ['status'] },
);

const PersistentVolumeClaimStatus = object('PersistentVolumeClaimStatus', 'What storage was given.', {
  accessModes: strings('How the volume can be mounted.'),
  allocatedResourceStatuses: stringMap('Progress of resizing, by resource.', { 'x-kubernetes-map-type': 'granular' }),
  allocatedResources: map(Quantity, 'What is being or has been allocated.'),
  capacity: map(Quantity, 'What the volume has.'),
  conditions: listBy(['type'], PersistentVolumeClaimCondition, 'State of the claim by aspects.'),
  currentVolumeAttributesClassName: str('Attributes class the volume has.'),
  modifyVolumeStatus: ref(ModifyVolumeStatus, 'Progress of a change of the attributes class.'),
  phase: str('`Pending`, `Bound` or `Lost`.'),
});

export const PersistentVolumeClaim = kind('PersistentVolumeClaim', "A user's claim for a persistent volume.", {
  metadata,
  spec: ref(PersistentVolumeClaimSpec, 'What is wanted.'),
  status: ref(PersistentVolumeClaimStatus, 'What was given. Read-only.'),
});

export const PersistentVolumeClaimTemplate = object(
  'PersistentVolumeClaimTemplate',
  'The claim that is made for an ephemeral volume.',
  {
    metadata: { ...metadata, description: 'Labels and annotations of the claim; nothing else is allowed.' },
    spec: ref(PersistentVolumeClaimSpec, 'What is wanted.'),
  },
  { required: ['spec'] },
);
