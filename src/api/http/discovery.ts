import { createHash } from 'node:crypto';
import type { APIGroup, APIResource } from 'kubernetes-types/meta/v1.d.ts';
import { apiVersionOfKind, type Kind, type Subresource } from '../kinds/kind.ts';
import type { Registry } from '../kinds/registry.ts';

/** A document that changes only when the kinds do. */
export interface Published {
  readonly body: Buffer;
  readonly etag: string;
}

/** What is served, told in both ways Kubernetes has: list by list, and all at once. */
export class Discovery {
  readonly #registry: Registry;
  #version = -1;
  #documents = new Map<string, Published>();

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  /** The document at `/api`, `/apis`, `/api/v1`, `/apis/<group>` or `/apis/<group>/<version>`. */
  document(path: string): Published | undefined {
    return this.#cached(path, () => this.#describe(path));
  }

  /** Everything below `/api` or `/apis` in one. */
  aggregated(root: 'api' | 'apis'): Published {
    return this.#cached(`${root} aggregated`, () => this.#aggregate(root)) as Published;
  }

  #cached(key: string, make: () => object | undefined): Published | undefined {
    if (this.#version !== this.#registry.version) {
      this.#documents.clear();
      this.#version = this.#registry.version;
    }
    const known = this.#documents.get(key);
    if (known !== undefined) return known;
    const document = make();
    if (document === undefined) return undefined;
    const made = publish(document);
    this.#documents.set(key, made);
    return made;
  }

  #describe(path: string): object | undefined {
    const [root, group, version, more] = path.split('/').filter(part => part !== '');
    if (root === 'api') {
      if (group === undefined) return { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] };
      return version === undefined ? this.#resources('', group) : undefined;
    }
    if (root !== 'apis' || more !== undefined) return undefined;
    if (group === undefined) return { kind: 'APIGroupList', apiVersion: 'v1', groups: this.#groups() };
    if (version !== undefined) return this.#resources(group, version);
    const found = this.#groups().find(({ name }) => name === group);
    return found === undefined ? undefined : { kind: 'APIGroup', apiVersion: 'v1', ...found };
  }

  #groups(): APIGroup[] {
    const groups = new Map<string, APIGroup['versions']>();
    for (const { group, version } of this.#registry.groupVersions()) {
      if (group === '') continue;
      groups.set(group, [...(groups.get(group) ?? []), { groupVersion: `${group}/${version}`, version }]);
    }
    return [...groups].map(([name, versions]) => ({
      name,
      versions,
      preferredVersion: versions[0] as APIGroup['versions'][0],
    }));
  }

  #kinds(group: string, version: string): Kind[] {
    return this.#registry
      .all()
      .filter(kind => kind.group === group && kind.version === version)
      .sort((a, b) => (a.plural < b.plural ? -1 : 1));
  }

  #resources(group: string, version: string): object | undefined {
    const kinds = this.#kinds(group, version);
    if (kinds.length === 0) return undefined;
    const groupVersion = apiVersionOfKind({ group, version });
    return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion, resources: kinds.flatMap(resourceEntries) };
  }

  #aggregate(root: 'api' | 'apis'): object {
    const groups = new Map<string, object[]>();
    for (const { group, version } of this.#registry.groupVersions()) {
      if ((group === '') !== (root === 'api')) continue;
      const resources = this.#kinds(group, version).map(aggregatedEntry);
      groups.set(group, [...(groups.get(group) ?? []), { version, resources, freshness: 'Current' }]);
    }
    const items = [...groups].map(([name, versions]) => ({
      metadata: { ...(name === '' ? {} : { name }), creationTimestamp: null },
      versions,
    }));
    return { kind: 'APIGroupDiscoveryList', apiVersion: 'apidiscovery.k8s.io/v2', metadata: {}, items };
  }
}

export function publish(document: object): Published {
  const body = Buffer.from(JSON.stringify(document));
  return { body, etag: `"${createHash('sha256').update(body).digest('hex').toUpperCase()}"` };
}

function resourceEntries(kind: Kind): APIResource[] {
  const own: APIResource = {
    name: kind.plural,
    singularName: kind.singular,
    namespaced: kind.namespaced,
    kind: kind.kind,
    verbs: [...kind.verbs],
    ...(kind.shortNames.length === 0 ? {} : { shortNames: [...kind.shortNames] }),
    ...(kind.categories.length === 0 ? {} : { categories: [...kind.categories] }),
    ...(kind.bucket === '' ? {} : { storageVersionHash: storageHash(kind) }),
  };
  const below = byName(kind.subresources).map(({ name, verbs, kind: other }) => ({
    name: `${kind.plural}/${name}`,
    singularName: '',
    namespaced: kind.namespaced,
    ...(other === undefined ? { kind: kind.kind } : { group: other.group, version: other.version, kind: other.kind }),
    verbs: [...verbs],
  }));
  return [own, ...below.map(withoutEmptyGroup)];
}

function aggregatedEntry(kind: Kind): object {
  const { group, version } = kind;
  return {
    resource: kind.plural,
    responseKind: { group, version, kind: kind.kind },
    scope: kind.namespaced ? 'Namespaced' : 'Cluster',
    singularResource: kind.singular,
    verbs: kind.verbs,
    ...(kind.shortNames.length === 0 ? {} : { shortNames: kind.shortNames }),
    ...(kind.categories.length === 0 ? {} : { categories: kind.categories }),
    ...(kind.subresources.length === 0
      ? {}
      : {
          subresources: byName(kind.subresources).map(({ name, verbs, kind: other }) => ({
            subresource: name,
            responseKind: other ?? { group, version, kind: kind.kind },
            verbs,
          })),
        }),
  };
}

function byName(subresources: readonly Subresource[]): Subresource[] {
  return [...subresources].sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** A kind of the core group is named without group and version, as that of the resource itself. */
function withoutEmptyGroup(resource: APIResource): APIResource {
  const { group, version, ...rest } = resource;
  return group === undefined || group === '' || version === undefined ? rest : resource;
}

function storageHash({ group, plural, custom, version }: Kind): string {
  const text = `${group}/${custom?.storageVersion ?? version}/${plural}`;
  return createHash('sha256').update(text).digest().subarray(0, 8).toString('base64');
}
