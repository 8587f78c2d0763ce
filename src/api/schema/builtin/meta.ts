import {
  anyObject,
  bool,
  int32,
  int64,
  list,
  listBy,
  oneOf,
  ref,
  set,
  str,
  stringMap,
  strings,
  vocabulary,
} from '../dsl.ts';
import { builtinMetadataErrors, labelSelectorErrors, metadataErrors } from '../metadata.ts';
import { quantityErrors } from '../quantity.ts';
import type { Definition, Schema } from '../schema.ts';

/** The types every kind uses: meta/v1, quantities, int-or-string. */

const { object, kind, scalar } = vocabulary('io.k8s.apimachinery.pkg.apis.meta.v1', '', 'v1');

export const Time = scalar('Time', {
  type: 'string',
  format: 'date-time',
  description: 'A moment in RFC 3339, to the second.',
});
export const MicroTime = scalar('MicroTime', {
  type: 'string',
  format: 'date-time',
  description: 'A moment in RFC 3339, to the microsecond.',
});
export const FieldsV1 = scalar(
  'FieldsV1',
  anyObject('A set of fields, as a tree of `f:name`, `k:{...}`, `v:...` and `.`.'),
);

export const RawExtension = vocabulary('io.k8s.apimachinery.pkg.runtime', '', '').scalar(
  'RawExtension',
  anyObject('Any object, kept as it is.'),
);

export const IntOrString = vocabulary('io.k8s.apimachinery.pkg.util.intstr', '', '').scalar('IntOrString', {
  format: 'int-or-string',
  oneOf: [{ type: 'integer' }, { type: 'string' }],
  description: 'A whole number or a string.',
  'x-kubernetes-int-or-string': true,
});

export const Quantity = vocabulary('io.k8s.apimachinery.pkg.api.resource', '', '').scalar(
  'Quantity',
  {
    format: 'quantity',
    oneOf: [{ type: 'string' }, { type: 'number' }],
    description: 'An amount with a unit, such as `500m`, `1.5`, `128Mi` or `2G`.',
  },
  quantityErrors,
);

export const time = (description: string): Schema => ref(Time, description);
export const microTime = (description: string): Schema => ref(MicroTime, description);

export const OwnerReference = object(
  'OwnerReference',
  'Points at an object that this one belongs to, in the same namespace or cluster-scoped.',
  {
    apiVersion: str('API version of the owner.'),
    blockOwnerDeletion: bool('The owner cannot go in a foreground deletion before this object is gone.'),
    controller: bool('The owner is the one controller that manages this object.'),
    kind: str('Kind of the owner.'),
    name: str('Name of the owner.'),
    uid: str('UID of the owner.'),
  },
  { required: ['apiVersion', 'kind', 'name', 'uid'], atomic: true },
);

export const ManagedFieldsEntry = object('ManagedFieldsEntry', 'Which fields one manager set, how and when.', {
  apiVersion: str('Version of the schema in which the fields are named.'),
  fieldsType: str('Format of the field set; always `FieldsV1`.'),
  fieldsV1: ref(FieldsV1, 'The fields.'),
  manager: str('Name of the manager.'),
  operation: str('`Apply` or `Update`.'),
  subresource: str('Subresource through which the fields were set; empty for the object itself.'),
  time: time('When the entry was last changed.'),
});

export const ObjectMeta = object(
  'ObjectMeta',
  'What every stored object has: its name, its labels, its history.',
  {
    annotations: stringMap('Free text under qualified names, for tools and people. Not searchable.'),
    creationTimestamp: time('When the server created the object. Read-only.'),
    deletionGracePeriodSeconds: int64('Seconds the object gets to end by itself. Read-only.'),
    deletionTimestamp: time('When the object will be or was due to go; set by a graceful deletion. Read-only.'),
    finalizers: set({ type: 'string' }, 'Names that must all be taken off before the object really goes.', {
      'x-kubernetes-patch-strategy': 'merge',
    }),
    generateName: str('Prefix for a unique name that the server makes when `name` is empty.'),
    generation: int64('Counts changes of the desired state. Read-only.'),
    labels: stringMap('Short names and values to group and select objects by.'),
    managedFields: list(ManagedFieldsEntry, 'Who set which field. Kept by the server.'),
    name: str('Name of the object, unique in its namespace for its kind. Cannot be changed.'),
    namespace: str('Namespace of the object; empty for cluster-scoped kinds. Cannot be changed.'),
    ownerReferences: listBy(['uid'], OwnerReference, 'Objects this one depends on; it is collected when all are gone.'),
    resourceVersion: str('Opaque version of the stored object; send it back to detect concurrent changes.'),
    selfLink: str('No longer filled in.'),
    uid: str('Identity of the object in time and space. Read-only.'),
  },
  { check: metadataErrors },
);

/** Metadata of a built-in kind: the same type with one rule more. */
export const metadata: Schema = {
  ...ref(ObjectMeta, 'Standard metadata of the object.'),
  builtin: { ...(ObjectMeta.builtin as Definition), check: builtinMetadataErrors as Definition['check'] },
};

export const ListMeta = object('ListMeta', 'What every list has.', {
  continue: str('Token to ask for the next page with; empty on the last one.'),
  remainingItemCount: int64('Number of objects after this page, when known.'),
  resourceVersion: str('Version of the collection this list shows; watch from here.'),
  selfLink: str('No longer filled in.'),
});

export const LabelSelectorRequirement = object(
  'LabelSelectorRequirement',
  'A condition on one label.',
  {
    key: str('Name of the label.'),
    operator: str('`In`, `NotIn`, `Exists` or `DoesNotExist`.'),
    values: strings('Values to compare with; empty for `Exists` and `DoesNotExist`.'),
  },
  { required: ['key', 'operator'] },
);

export const LabelSelector = object(
  'LabelSelector',
  'Selects objects by their labels. All conditions must hold; an empty selector matches everything.',
  {
    matchExpressions: list(LabelSelectorRequirement, 'Conditions on labels.'),
    matchLabels: stringMap('Labels that must be there with these values.'),
  },
  { atomic: true, check: labelSelectorErrors },
);

export const FieldSelectorRequirement = object(
  'FieldSelectorRequirement',
  'A condition on one field.',
  {
    key: str('Name of the field.'),
    operator: str('`In`, `NotIn`, `Exists` or `DoesNotExist`.'),
    values: strings('Values to compare with; empty for `Exists` and `DoesNotExist`.'),
  },
  { required: ['key', 'operator'] },
);

export const Condition = object(
  'Condition',
  'One aspect of the state of an object, as last observed.',
  {
    lastTransitionTime: time('When `status` last changed.'),
    message: str('Details for people; may be empty.'),
    observedGeneration: int64('`metadata.generation` this condition was computed from.', { minimum: 0 }),
    reason: str('Why, in one CamelCase word for programs.'),
    status: str('`True`, `False` or `Unknown`.'),
    type: str('Name of the aspect, in CamelCase.'),
  },
  { zero: ['lastTransitionTime', 'message', 'reason', 'status', 'type'] },
);

export const Preconditions = object('Preconditions', 'What must hold for an operation to be carried out.', {
  resourceVersion: str('The object still has this version.'),
  uid: str('The object is still this one.'),
});

const DELETION_PROPAGATION = ['Background', 'Foreground', 'Orphan'];

export const DeleteOptions = kind('DeleteOptions', 'How to delete an object.', {
  dryRun: strings('`All`: go through everything, store nothing.'),
  gracePeriodSeconds: int64('Seconds before the object goes; 0 is at once, absent is the default of the kind.'),
  ignoreStoreReadErrorWithClusterBreakingPotential: bool(
    'Delete even an object that can no longer be read. Dangerous.',
  ),
  orphanDependents: bool('Deprecated; use `propagationPolicy`.'),
  preconditions: ref(Preconditions, 'What must hold, else the deletion is refused with 409.'),
  propagationPolicy: oneOf(DELETION_PROPAGATION, 'What happens to dependents: kept, deleted before, deleted after.'),
});

const StatusCause = object('StatusCause', 'One of several reasons for a failure.', {
  field: str('Path of the field that caused it, such as `spec.ports[0].port`.'),
  message: str('The cause, for people.'),
  reason: str('The cause, for programs.'),
});

const StatusDetails = object('StatusDetails', 'What a failure is about.', {
  causes: list(StatusCause, 'The individual causes.'),
  group: str('API group of the resource.'),
  kind: str('Kind or resource of the object.'),
  name: str('Name of the object.'),
  retryAfterSeconds: int32('Seconds to wait before trying again.'),
  uid: str('UID of the object.'),
});

export const Status = kind('Status', 'The answer to a request that has no object to return.', {
  code: int32('HTTP status code.'),
  details: ref(StatusDetails, 'What the answer is about.', { 'x-kubernetes-list-type': 'atomic' }),
  message: str('The outcome, for people.'),
  metadata: ref(ListMeta, 'Standard list metadata.'),
  reason: str('Why it failed, for programs.'),
  status: str('`Success` or `Failure`.'),
});
