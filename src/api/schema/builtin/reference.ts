import { bool, int32, list, oneOf, ref, str, strings, vocabulary } from '../dsl.ts';
import { Quantity } from './meta.ts';

/** How core types point at other objects, at keys in them and at fields of the pod. */

const { object } = vocabulary('io.k8s.api.core.v1', '', 'v1');

export const LocalObjectReference = object(
  'LocalObjectReference',
  'Names an object in the same namespace.',
  { name: str('Name of the object.', { default: '' }) },
  { atomic: true },
);

export const ObjectReference = object(
  'ObjectReference',
  'Points at any object.',
  {
    apiVersion: str('API version of the object.'),
    fieldPath: str('Part of the object that is meant, such as `spec.containers{etcd}`.'),
    kind: str('Kind of the object.'),
    name: str('Name of the object.'),
    namespace: str('Namespace of the object.'),
    resourceVersion: str('Version of the object that is meant.'),
    uid: str('UID of the object.'),
  },
  { atomic: true },
);

export const TypedLocalObjectReference = object(
  'TypedLocalObjectReference',
  'Points at an object of any kind in the same namespace.',
  {
    apiGroup: str('API group; empty for the core group.'),
    kind: str('Kind of the object.'),
    name: str('Name of the object.'),
  },
  { required: ['kind', 'name'], atomic: true },
);

export const TypedObjectReference = object(
  'TypedObjectReference',
  'Points at an object of any kind, maybe in another namespace.',
  {
    apiGroup: str('API group; empty for the core group.'),
    kind: str('Kind of the object.'),
    name: str('Name of the object.'),
    namespace: str('Namespace of the object; absent for the same one.'),
  },
  { required: ['kind', 'name'] },
);

export const ConfigMapKeySelector = object(
  'ConfigMapKeySelector',
  'One key of a ConfigMap.',
  {
    key: str('The key.'),
    name: str('Name of the ConfigMap.', { default: '' }),
    optional: bool('The ConfigMap or the key may be missing.'),
  },
  { required: ['key'], atomic: true },
);

export const SecretKeySelector = object(
  'SecretKeySelector',
  'One key of a Secret.',
  {
    key: str('The key.'),
    name: str('Name of the Secret.', { default: '' }),
    optional: bool('The Secret or the key may be missing.'),
  },
  { required: ['key'], atomic: true },
);

export const ObjectFieldSelector = object(
  'ObjectFieldSelector',
  'A field of the pod itself.',
  {
    apiVersion: str('Version of the schema the path is written for.', { default: 'v1' }),
    fieldPath: str('The field, such as `metadata.name` or `status.podIP`.'),
  },
  { required: ['fieldPath'], atomic: true },
);

export const ResourceFieldSelector = object(
  'ResourceFieldSelector',
  "A container's resource request or limit.",
  {
    containerName: str('The container; may be left out in environment variables.'),
    divisor: ref(Quantity, 'Unit of the value; default 1.', { default: '0' }),
    resource: str('What to read, such as `limits.cpu`.'),
  },
  { required: ['resource'], atomic: true },
);

export const KeyToPath = object(
  'KeyToPath',
  'Puts one key into a file.',
  {
    key: str('The key.'),
    mode: int32('Permission bits of the file, 0 to 0777.', { minimum: 0, maximum: 511 }),
    path: str('Relative path of the file; no `..`.'),
  },
  { required: ['key', 'path'] },
);

const OPERATORS = ['DoesNotExist', 'Exists', 'Gt', 'In', 'Lt', 'NotIn'];

export const NodeSelectorRequirement = object(
  'NodeSelectorRequirement',
  'A condition on a label or field of a node.',
  {
    key: str('Name of the label or field.'),
    operator: oneOf(OPERATORS, 'How the key relates to the values.'),
    values: strings('Values to compare with; one number for `Gt` and `Lt`, none for `Exists` and `DoesNotExist`.'),
  },
  { required: ['key', 'operator'] },
);

export const NodeSelectorTerm = object(
  'NodeSelectorTerm',
  'Conditions that must all hold for a node. An empty term matches nothing.',
  {
    matchExpressions: list(NodeSelectorRequirement, 'Conditions on labels.'),
    matchFields: list(NodeSelectorRequirement, 'Conditions on fields.'),
  },
  { atomic: true },
);

export const NodeSelector = object(
  'NodeSelector',
  'Selects nodes: one of the terms must match.',
  { nodeSelectorTerms: list(NodeSelectorTerm, 'The terms.') },
  { required: ['nodeSelectorTerms'], atomic: true },
);
