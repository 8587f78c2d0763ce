import { useEffect, useState } from 'preact/hooks';
import type { ObjectRef } from '../src/trust/object.ts';

/** Where the user is: `#/certificates/secret/<namespace>/<name>?state=Due`. */
export interface Route {
  readonly path: readonly string[];
  readonly query: URLSearchParams;
}

export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const listener = () => setHash(location.hash);
    addEventListener('hashchange', listener);
    return () => removeEventListener('hashchange', listener);
  }, []);
  return routeOf(hash);
}

function routeOf(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  return { path: path.split('/').filter(Boolean).map(decoded), query: new URLSearchParams(query) };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The page of an object. */
export function hrefOf({ kind, namespace, name }: ObjectRef): string {
  return `#/certificates/${kind.toLowerCase()}/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
}
