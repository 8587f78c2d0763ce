import { duplicate, type FieldError, notFound } from './field-error.ts';
import { isObject } from './json.ts';
import type { JsonObject } from './schema.ts';

/** Names inside a pod are unique, and mounts name volumes that exist. */
export function podSpecErrors(spec: JsonObject, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const volumes = named(spec['volumes']);
  const claims = new Set(volumes.map(({ element }) => element['name']));
  errors.push(...duplicates(volumes, `${path}.volumes`, new Set()));
  const names = new Set<unknown>();
  for (const field of ['containers', 'initContainers', 'ephemeralContainers']) {
    const containers = named(spec[field]);
    errors.push(...duplicates(containers, `${path}.${field}`, names));
    for (const { element, index } of containers) {
      errors.push(...mountErrors(element, claims, `${path}.${field}[${index}]`));
    }
  }
  return errors;
}

interface Named {
  readonly element: JsonObject;
  readonly index: number;
}

function named(list: unknown): Named[] {
  if (!Array.isArray(list)) return [];
  return (list as unknown[]).flatMap((element, index) =>
    isObject(element) && (element['name'] ?? '') !== '' ? [{ element, index }] : [],
  );
}

function duplicates(list: readonly Named[], path: string, seen: Set<unknown>): FieldError[] {
  return list.flatMap(({ element, index }) => {
    const { name } = element;
    if (seen.has(name)) return [duplicate(`${path}[${index}].name`, name)];
    seen.add(name);
    return [];
  });
}

function mountErrors(container: JsonObject, volumes: ReadonlySet<unknown>, path: string): FieldError[] {
  return named(container['volumeMounts']).flatMap(({ element, index }) =>
    volumes.has(element['name']) ? [] : [notFound(`${path}.volumeMounts[${index}].name`, element['name'])],
  );
}
