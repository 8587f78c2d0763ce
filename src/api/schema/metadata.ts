import { type FieldError, forbidden, invalid, required, tooLong } from './field-error.ts';
import { isObject } from './json.ts';
import { dnsLabel, labelValue, type NameRule, qualifiedName } from './name.ts';
import type { JsonObject } from './schema.ts';

/** Annotations of one object together, keys and values. */
const MAX_ANNOTATION_BYTES = 256 * 1024;

/** What is wrong with labels, annotations, owners and finalizers, at any place where metadata occurs. */
export function metadataErrors(metadata: JsonObject, path: string): FieldError[] {
  return [
    ...labelErrors(metadata['labels'], `${path}.labels`),
    ...annotationErrors(metadata['annotations'], `${path}.annotations`),
    ...ownerErrors(metadata['ownerReferences'], `${path}.ownerReferences`),
    ...finalizerErrors(metadata['finalizers'], `${path}.finalizers`),
  ];
}

/** The finalizers that need no prefix. */
const STANDARD_FINALIZERS = ['kubernetes', 'orphan', 'foregroundDeletion'];

/** Built-in kinds want the names of other finalizers qualified; custom resources and definitions do not. */
export function builtinMetadataErrors(metadata: JsonObject, path: string): FieldError[] {
  const detail = 'name is neither a standard finalizer name nor is it fully qualified';
  const unqualified = listOf(metadata['finalizers']).flatMap((finalizer, index) =>
    finalizer.includes('/') || STANDARD_FINALIZERS.includes(finalizer)
      ? []
      : [invalid(`${path}.finalizers[${index}]`, finalizer, detail)],
  );
  return [...metadataErrors(metadata, path), ...unqualified];
}

/** What is wrong with name and namespace of an object that is to be stored. Ask before `validate`. */
export function identityErrors(metadata: JsonObject, namespaced: boolean, rule: NameRule): FieldError[] {
  const errors: FieldError[] = [];
  const { name = '', generateName = '', namespace = '' } = metadata as Record<string, string | undefined>;
  if (generateName !== '') {
    const withSuffix = generateName.length > 1 ? generateName.replace(/.-$/, 'a') : generateName;
    for (const fault of rule(withSuffix)) errors.push(invalid('metadata.generateName', generateName, fault));
  }
  if (name === '') errors.push(required('metadata.name', 'name or generateName is required'));
  else for (const fault of rule(name)) errors.push(invalid('metadata.name', name, fault));
  if (!namespaced) {
    if (namespace !== '') errors.push(forbidden('metadata.namespace', 'not allowed on this type'));
  } else if (namespace === '') {
    errors.push(required('metadata.namespace'));
  } else {
    for (const fault of dnsLabel(namespace)) errors.push(invalid('metadata.namespace', namespace, fault));
  }
  return errors;
}

const IMMUTABLE = ['name', 'namespace', 'uid', 'creationTimestamp', 'deletionTimestamp', 'deletionGracePeriodSeconds'];

/** What an update may not change in metadata. */
export function metadataUpdateErrors(metadata: JsonObject, old: JsonObject): FieldError[] {
  const errors: FieldError[] = [];
  if (old['deletionTimestamp'] !== undefined) {
    const before = new Set(listOf(old['finalizers']));
    const added = listOf(metadata['finalizers']).filter(finalizer => !before.has(finalizer));
    if (added.length > 0) {
      const shown = added.map(finalizer => JSON.stringify(finalizer)).join(', ');
      const detail = `no new finalizers can be added if the object is being deleted, found new finalizers []string{${shown}}`;
      errors.push(forbidden('metadata.finalizers', detail));
    }
  }
  for (const field of IMMUTABLE) {
    if (metadata[field] !== old[field])
      errors.push(invalid(`metadata.${field}`, metadata[field], 'field is immutable'));
  }
  return errors;
}

export function labelErrors(labels: unknown, path: string): FieldError[] {
  if (!isObject(labels)) return [];
  return Object.entries(labels).flatMap(([key, value]) => [
    ...qualifiedName(key).map(fault => invalid(path, key, fault)),
    ...(typeof value === 'string' ? labelValue(value).map(fault => invalid(path, value, fault)) : []),
  ]);
}

/** What is wrong with a `LabelSelector`. */
export function labelSelectorErrors(selector: JsonObject, path: string): FieldError[] {
  const expressions = Array.isArray(selector['matchExpressions']) ? (selector['matchExpressions'] as unknown[]) : [];
  return [
    ...labelErrors(selector['matchLabels'], `${path}.matchLabels`),
    ...expressions.flatMap((expression, index) =>
      isObject(expression) ? requirementErrors(expression, `${path}.matchExpressions[${index}]`) : [],
    ),
  ];
}

function requirementErrors({ key, operator, values }: JsonObject, path: string): FieldError[] {
  const given = listOf(values);
  const errors: FieldError[] = [];
  if (operator === 'In' || operator === 'NotIn') {
    if (given.length === 0) {
      errors.push(required(`${path}.values`, "must be specified when `operator` is 'In' or 'NotIn'"));
    }
  } else if (operator === 'Exists' || operator === 'DoesNotExist') {
    if (given.length > 0) {
      errors.push(forbidden(`${path}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"));
    }
  } else if ((operator ?? '') !== '') {
    errors.push(invalid(`${path}.operator`, operator, 'not a valid selector operator'));
  }
  if (typeof key === 'string' && key !== '') {
    errors.push(...qualifiedName(key).map(fault => invalid(`${path}.key`, key, fault)));
  }
  given.forEach((value, index) => {
    errors.push(...labelValue(value).map(fault => invalid(`${path}.values[${index}]`, value, fault)));
  });
  return errors;
}

function annotationErrors(annotations: unknown, path: string): FieldError[] {
  if (!isObject(annotations)) return [];
  const entries = Object.entries(annotations);
  const errors = entries.flatMap(([key]) => qualifiedName(key.toLowerCase()).map(fault => invalid(path, key, fault)));
  const size = entries.reduce(
    (sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(String(value)),
    0,
  );
  if (size > MAX_ANNOTATION_BYTES) errors.push(tooLong(path, MAX_ANNOTATION_BYTES));
  return errors;
}

function ownerErrors(owners: unknown, path: string): FieldError[] {
  if (!Array.isArray(owners)) return [];
  const references = (owners as unknown[]).filter(isObject);
  const errors = references
    .filter(owner => owner['apiVersion'] === 'v1' && owner['kind'] === 'Event')
    .map(owner => invalid(path, owner, '/v1, Kind=Event is disallowed from being an owner'));
  const controllers = references.filter(owner => owner['controller'] === true);
  const [first, second] = controllers.map(owner => `${String(owner['kind'])}/${String(owner['name'])}`);
  if (second === undefined) return errors;
  const detail = `Only one reference can have Controller set to true. Found "true" in references for ${first} and ${second}`;
  return [...errors, invalid(path, owners, detail)];
}

function finalizerErrors(finalizers: unknown, path: string): FieldError[] {
  const given = listOf(finalizers);
  const errors = given.flatMap(finalizer => qualifiedName(finalizer).map(fault => invalid(path, finalizer, fault)));
  if (given.includes('orphan') && given.includes('foregroundDeletion')) {
    errors.push(invalid(path, given, 'finalizer orphan and foregroundDeletion cannot be both set'));
  }
  return errors;
}

function listOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter(element => typeof element === 'string') : [];
}
