import type { ObjectKey, Resource } from './resource.ts';

/** The path of all objects of a kind, of one namespace or of all. */
export function collectionPath(resource: Resource, namespace?: string): string {
  const { group, version, plural, namespaced } = resource;
  if (!namespaced && namespace !== undefined) {
    throw new TypeError(`${plural} live in no namespace, but "${namespace}" was given`);
  }
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  return namespace === undefined ? `${root}/${plural}` : `${root}/namespaces/${segment(namespace)}/${plural}`;
}

/** The path of one object, or of its subresource. */
export function objectPath(resource: Resource, { name, namespace }: ObjectKey, subresource?: string): string {
  if (resource.namespaced && namespace === undefined) {
    throw new TypeError(`${resource.plural} "${name}": expected a namespace, none was given`);
  }
  const path = `${collectionPath(resource, namespace)}/${segment(name)}`;
  return subresource === undefined ? path : `${path}/${segment(subresource)}`;
}

/** `?a=1&b=2`, leaving out what is undefined; empty when nothing is left. */
export function queryString(parameters: Readonly<Record<string, string | number | boolean | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) query.set(name, String(value));
  const text = query.toString();
  return text === '' ? '' : `?${text}`;
}

/** What the API itself demands of a name in a path; anything else could reach another object than the one that is meant. */
function segment(name: string): string {
  if (name === '' || name === '.' || name === '..' || /[/%]/.test(name)) {
    throw new TypeError(`"${name}" cannot be a part of an API path`);
  }
  return encodeURIComponent(name);
}
