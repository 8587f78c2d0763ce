import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import type { Cached, RotationCaches } from '../certrotation/controller.ts';
import type { Clock } from '../kube/clock.ts';
import { Informer } from '../kube/informer.ts';
import type { Kube } from '../kube/port.ts';
import { CONFIG_MAPS, type KubeObject, type Resource, SECRETS } from '../kube/resource.ts';
import type { CachedResource } from '../staticpod/objects.ts';
import { WATCHED_NAMESPACES } from './namespaces.ts';
import {
  API_SERVERS,
  type APIServer,
  AUTHENTICATIONS,
  type Authentication,
  INFRASTRUCTURES,
  type Infrastructure,
  NETWORKS,
  type Network,
  PROXIES,
  type Proxy,
} from './resources.ts';

/** What all informers have in common, whatever they watch. */
export interface AnyInformer {
  readonly resource: Resource;
  readonly hasSynced: boolean;
  start(): unknown;
  stop(): Promise<void>;
}

export interface CacheOptions {
  readonly clock: Clock;
  readonly onError: (error: unknown) => void;
}

/** ConfigMaps and Secrets of one namespace. */
export interface NamespaceCaches {
  readonly configMaps: Informer<ConfigMap>;
  readonly secrets: Informer<Secret>;
}

/** The ConfigMaps and Secrets of all namespaces the operator looks into. */
export class ObjectCaches {
  readonly #namespaces: ReadonlyMap<string, NamespaceCaches>;

  /** `existing` are used instead of new ones. */
  constructor(kube: Kube, options: CacheOptions, existing: Readonly<Record<string, NamespaceCaches>> = {}) {
    this.#namespaces = new Map(
      WATCHED_NAMESPACES.map(namespace => [
        namespace,
        existing[namespace] ?? namespaceCaches(kube, namespace, options),
      ]),
    );
  }

  in(namespace: string): NamespaceCaches {
    const caches = this.#namespaces.get(namespace);
    if (caches === undefined) throw new RangeError(`not watching namespace "${namespace}"`);
    return caches;
  }

  get informers(): AnyInformer[] {
    return [...this.#namespaces.values()].flatMap(({ configMaps, secrets }) => [configMaps, secrets]);
  }

  get resources(): CachedResource[] {
    return [...this.#namespaces].flatMap(([namespace, { configMaps, secrets }]) => [
      { resource: CONFIG_MAPS, namespace, lister: configMaps },
      { resource: SECRETS, namespace, lister: secrets },
    ]);
  }

  /** For rotation, which begins only when `ready` is fulfilled: by then the host names are known. */
  forRotation(ready: Promise<unknown>): RotationCaches {
    const gated = <T extends KubeObject>(informer: Informer<T>): Cached<T> => ({
      synced: Promise.all([informer.synced, ready]).then(() => {}),
      subscribe: handlers => informer.subscribe(handlers),
      get: key => informer.get(key),
      remember: object => informer.remember(object),
    });
    return {
      configMaps: namespace => gated(this.in(namespace).configMaps),
      secrets: namespace => gated(this.in(namespace).secrets),
    };
  }
}

/** The cluster's configuration. */
export interface ConfigCaches {
  readonly networks: Informer<Network>;
  readonly infrastructures: Informer<Infrastructure>;
  readonly apiServers: Informer<APIServer>;
  readonly authentications: Informer<Authentication>;
  readonly proxies: Informer<Proxy>;
}

export function configCaches(kube: Kube, options: CacheOptions): ConfigCaches {
  return {
    networks: new Informer(kube, NETWORKS, options),
    infrastructures: new Informer(kube, INFRASTRUCTURES, options),
    apiServers: new Informer(kube, API_SERVERS, options),
    authentications: new Informer(kube, AUTHENTICATIONS, options),
    proxies: new Informer(kube, PROXIES, options),
  };
}

export function namespaceCaches(kube: Kube, namespace: string, options: CacheOptions): NamespaceCaches {
  const selection = { namespace };
  return {
    configMaps: new Informer(kube, CONFIG_MAPS, { ...options, selection }),
    secrets: new Informer(kube, SECRETS, { ...options, selection }),
  };
}

/** Cluster-wide caches for reading. */
export function configResources(caches: ConfigCaches): CachedResource[] {
  return Object.values(caches).map(informer => ({ resource: informer.resource, lister: informer }));
}
