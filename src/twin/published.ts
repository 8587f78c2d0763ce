import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { CONFIG_MAPS, SECRETS } from '../kube/resource.ts';
import type { Texts } from '../trust/material.ts';
import type { ObjectRef } from '../trust/object.ts';
import type { Api } from './api.ts';

/** Those on no node in particular who work with what is in the API at each moment. */
const READERS: ReadonlySet<string> = new Set(['etcd-operator', 'prometheus']);

/** What somebody who runs in a pod of its own has of an object; the same content is the same texts. */
export function publishedIn(api: Api): (process: string, object: ObjectRef) => Texts | undefined {
  const known = new WeakMap<object, Texts>();
  return (process, { kind, namespace, name }) => {
    if (!READERS.has(process)) return undefined;
    const key = { namespace, name };
    const stored: ConfigMap | Secret | undefined =
      kind === 'Secret' ? api.stored(SECRETS, key) : api.stored(CONFIG_MAPS, key);
    if (stored?.data === undefined) return undefined;
    const decoded = (value: string) => (kind === 'Secret' ? Buffer.from(value, 'base64').toString() : value);
    const texts =
      known.get(stored.data) ??
      Object.fromEntries(Object.entries(stored.data).map(([file, value]) => [file, decoded(value)]));
    known.set(stored.data, texts);
    return texts;
  };
}
