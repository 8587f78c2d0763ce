/** What a URL path stands for. */
export type Target = ResourceTarget | { readonly what: 'path'; readonly path: string };

export interface ResourceTarget {
  readonly what: 'resource';
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  /** Empty for cluster-scoped resources and for all namespaces. */
  readonly namespace: string;
  /** Empty for collections. */
  readonly name: string;
  readonly subresource: string;
  /** The old form `/api/v1/watch/...`. */
  readonly watch: boolean;
}

/** Reads `/api/v1/namespaces/default/pods/web/log` and the like; `undefined` when the escapes are broken. */
export function readPath(rawPath: string): Target | undefined {
  const path = decoded(rawPath);
  if (path === undefined) return undefined;
  const [root, ...rest] = path.split('/').filter(part => part !== '');
  const [group, version, ...parts] = root === 'api' ? ['', ...rest] : rest;
  const isResource = (root === 'api' || root === 'apis') && group !== undefined && version !== undefined;
  if (!isResource || parts.length === 0) return { what: 'path', path };
  const watch = parts[0] === 'watch' && parts.length > 1;
  return { what: 'resource', group, version, watch, ...place(watch ? parts.slice(1) : parts) };
}

type Place = Pick<ResourceTarget, 'namespace' | 'plural' | 'name' | 'subresource'>;

/** Parts of the object `namespaces/<name>` itself, which otherwise look like resources in the namespace. */
const NAMESPACE_SUBRESOURCES = new Set(['status', 'finalize']);

function place(parts: readonly string[]): Place {
  const [first = '', second = '', third] = parts;
  if (first === 'namespaces' && third !== undefined && !NAMESPACE_SUBRESOURCES.has(third)) {
    return { namespace: second, ...inNamespace(parts.slice(2)) };
  }
  return { namespace: '', ...inNamespace(parts) };
}

function inNamespace([plural = '', name = '', ...subresource]: readonly string[]): Omit<Place, 'namespace'> {
  return { plural, name, subresource: subresource.join('/') };
}

function decoded(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}
