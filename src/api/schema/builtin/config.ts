import { bool, bytes, list, listBy, map, ref, str, stringMap, strings, vocabulary } from '../dsl.ts';
import { isObject, setField, withField, withoutField } from '../json.ts';
import { dataKeyErrors } from '../name.ts';
import type { JsonObject } from '../schema.ts';
import { metadata, time } from './meta.ts';
import { LocalObjectReference, ObjectReference } from './reference.ts';

/** Namespaces, and what a namespace keeps for its pods: Secrets, ConfigMaps, service accounts. */

const { object, kind } = vocabulary('io.k8s.api.core.v1', '', 'v1');

export const Secret = kind(
  'Secret',
  'Confidential bytes under keys; at most 1 MiB in all.',
  {
    data: map({ type: 'string', format: 'byte' }, 'Values in base64, by key.'),
    immutable: bool('Nothing but metadata can be changed any more, not even this field.'),
    metadata,
    stringData: stringMap('Values as plain text; moved to `data` on writing, never read back.'),
    type: str('Which keys to expect, such as `kubernetes.io/tls`. Cannot be changed.', { default: 'Opaque' }),
  },
  { complete: completeSecret, check: (secret, path) => dataKeyErrors(secret, ['data'], path) },
);

export const ConfigMap = kind(
  'ConfigMap',
  'Configuration under keys; at most 1 MiB in all.',
  {
    binaryData: map(bytes('A value in base64.'), 'Values that are not UTF-8, in base64, by key.'),
    data: stringMap('Values by key.'),
    immutable: bool('Nothing but metadata can be changed any more, not even this field.'),
    metadata,
  },
  { check: (configMap, path) => dataKeyErrors(configMap, ['data', 'binaryData'], path) },
);

export const ServiceAccount = kind('ServiceAccount', 'Who a pod is to the API server and to image registries.', {
  automountServiceAccountToken: bool('Whether pods get a token mounted; they can say otherwise.'),
  imagePullSecrets: list(LocalObjectReference, 'Secrets with credentials of image registries.'),
  metadata,
  secrets: listBy(['name'], ObjectReference, 'Secrets that pods of this account may use.'),
});

const NamespaceCondition = object(
  'NamespaceCondition',
  'One aspect of the state of a namespace.',
  {
    lastTransitionTime: time('When `status` last changed.'),
    message: str('Details for people.'),
    reason: str('Why, in one word for programs.'),
    status: str('`True`, `False` or `Unknown`.'),
    type: str('Name of the aspect, such as `NamespaceContentRemaining`.'),
  },
  { zero: ['status', 'type'] },
);

export const Namespace = kind(
  'Namespace',
  'A scope for names, and for who may do what.',
  {
    metadata,
    spec: ref(
      object('NamespaceSpec', 'What is wanted of a namespace.', {
        finalizers: strings('Names that must be taken off before the namespace goes.'),
      }),
      'What is wanted.',
    ),
    status: ref(
      object('NamespaceStatus', 'State of a namespace.', {
        conditions: listBy(['type'], NamespaceCondition, 'State of the namespace by aspects.'),
        phase: str('`Active` or `Terminating`.'),
      }),
      'State of the namespace. Read-only.',
    ),
  },
  { complete: completeNamespace },
);

function completeSecret(secret: JsonObject): JsonObject {
  const { stringData, data } = secret;
  if (!isObject(stringData)) return secret;
  const merged: Record<string, unknown> = isObject(data) ? { ...data } : {};
  for (const [key, value] of Object.entries(stringData)) {
    setField(merged, key, Buffer.from(String(value), 'utf8').toString('base64'));
  }
  return withField(withoutField(secret, 'stringData'), 'data', merged);
}

/** Every namespace carries its name as a label, so that selectors can mean one namespace. */
const NAME_LABEL = 'kubernetes.io/metadata.name';

function completeNamespace(namespace: JsonObject): JsonObject {
  const meta = namespace['metadata'];
  if (!isObject(meta) || typeof meta['name'] !== 'string') return namespace;
  const labels = isObject(meta['labels']) ? meta['labels'] : {};
  if (labels[NAME_LABEL] === meta['name']) return namespace;
  return withField(namespace, 'metadata', withField(meta, 'labels', withField(labels, NAME_LABEL, meta['name'])));
}
