import type { CustomResourceDefinition } from 'kubernetes-types/apiextensions/v1.d.ts';
import { isAlreadyExists, isNotFound } from '../../kube/error.ts';
import { listAll } from '../../kube/list.ts';
import type { Kube } from '../../kube/port.ts';
import {
  CONFIG_MAPS,
  CUSTOM_RESOURCE_DEFINITIONS,
  type KubeObject,
  NAMESPACES,
  NODES,
  type Resource,
  resource,
  SECRETS,
  SERVICE_ACCOUNTS,
  SERVICES,
} from '../../kube/resource.ts';

const RBAC = 'rbac.authorization.k8s.io/v1';
/** Built-in kinds that a cluster's state is in, those first that others need. Pods, leases and events are made anew. */
const KINDS: readonly Resource[] = [
  NAMESPACES,
  SERVICE_ACCOUNTS,
  resource(RBAC, 'ClusterRole', 'clusterroles', false),
  resource(RBAC, 'ClusterRoleBinding', 'clusterrolebindings', false),
  resource(RBAC, 'Role', 'roles'),
  resource(RBAC, 'RoleBinding', 'rolebindings'),
  CONFIG_MAPS,
  SECRETS,
  SERVICES,
  NODES,
];
/** What every API server makes for itself, each in its own way; roles say so with a label. */
const BUILT_IN: Readonly<Record<string, RegExp>> = {
  namespaces: /^(default|kube-system|kube-public|kube-node-lease)$/,
  serviceaccounts: /^default$/,
  configmaps: /^kube-root-ca\.crt$/,
  services: /^kubernetes$/,
};
const MADE_BY_SERVER = 'kubernetes.io/bootstrapping';
const KNOWN_TO_SERVER = ['uid', 'resourceVersion', 'creationTimestamp', 'generation', 'managedFields', 'selfLink'];
const TOKEN_TYPE = 'kubernetes.io/service-account-token';
/** A definition is served a moment after it was made. */
const DEFINITION_PATIENCE_MS = 30_000;
const LOOK_EVERY_MS = 100;

/** How many objects were moved, by plural. */
export type Moved = Readonly<Record<string, number>>;

/**
 * Copies the state of a cluster from one API to another: definitions, then what they and the built-in kinds describe, with status and
 * with owners under their new identities. What is already there is left alone, so an interrupted move is begun again.
 */
export async function moveCluster(from: Kube, to: Kube): Promise<Moved> {
  const definitions = (await listAll(from, CUSTOM_RESOURCE_DEFINITIONS)).items;
  for (const definition of definitions) await create(to, CUSTOM_RESOURCE_DEFINITIONS, bare(definition));
  const moved: Record<string, number> = { [CUSTOM_RESOURCE_DEFINITIONS.plural]: definitions.length };
  const identities = new Map<string, string>();
  const owned: { kind: Resource; object: KubeObject }[] = [];
  for (const kind of [...KINDS, ...definitions.map(resourceOf)]) {
    const { items } = await listAll(from, kind);
    const own = items.filter(object => !isMadeByServer(kind, object));
    for (const object of own) {
      const { ownerReferences, ...metadata } = bare(object).metadata ?? {};
      const created = await once(kind, () => create(to, kind, { ...bare(object), metadata }));
      const status = (object as { status?: unknown }).status;
      if (status !== undefined && kind.plural !== NAMESPACES.plural) {
        const known = withIdentities(status, identities);
        await to.updateStatus(kind, { ...created, status: known } as KubeObject).catch(ignoreMissingSubresource);
      }
      identities.set(object.metadata?.uid ?? '', created.metadata?.uid ?? '');
      if (ownerReferences !== undefined && ownerReferences.length > 0) owned.push({ kind, object });
    }
    moved[kind.group === '' ? kind.plural : `${kind.plural}.${kind.group}`] = own.length;
  }
  for (const { kind, object } of owned) await setOwners(to, kind, object, identities);
  return moved;
}

const IDENTITY = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

/** A status that tells of other objects by their identity, such as the nodes of an operator, tells of them under the new one. */
function withIdentities(status: unknown, identities: ReadonlyMap<string, string>): unknown {
  return JSON.parse(JSON.stringify(status).replaceAll(IDENTITY, identity => identities.get(identity) ?? identity));
}

/** Owners are known by their identity, which is another one in another API; one that did not move is dropped. */
async function setOwners(
  to: Kube,
  kind: Resource,
  object: KubeObject,
  identities: ReadonlyMap<string, string>,
): Promise<void> {
  const { namespace, name = '', ownerReferences = [] } = object.metadata ?? {};
  const owners = ownerReferences.flatMap(owner => {
    const uid = identities.get(owner.uid);
    return uid === undefined ? [] : [{ ...owner, uid }];
  });
  if (owners.length === 0) return;
  const moved = await to.get(kind, { namespace, name });
  await to.update(kind, { ...moved, metadata: { ...moved.metadata, ownerReferences: owners } });
}

async function create<T extends KubeObject>(to: Kube, kind: Resource<T>, object: T): Promise<T> {
  try {
    return await to.create(kind, object);
  } catch (error) {
    const { namespace, name = '' } = object.metadata ?? {};
    if (isAlreadyExists(error)) return to.get(kind, { namespace, name });
    throw error;
  }
}

/** Asks again while the API does not know the kind yet. */
async function once<T>(kind: Resource, call: () => Promise<T>): Promise<T> {
  const giveUpAt = Date.now() + DEFINITION_PATIENCE_MS;
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!isNotFound(error)) throw error;
      if (Date.now() > giveUpAt) throw new Error(`the API does not serve ${kind.plural}`, { cause: error });
    }
    await new Promise(resolve => setTimeout(resolve, LOOK_EVERY_MS));
  }
}

function isMadeByServer(kind: Resource, object: KubeObject): boolean {
  const { name = '', labels = {} } = object.metadata ?? {};
  const isBuiltIn = (kind.group === '' && BUILT_IN[kind.plural]?.test(name)) || labels[MADE_BY_SERVER] !== undefined;
  return isBuiltIn || (object as { type?: string }).type === TOKEN_TYPE;
}

/** An object without what only its API knows. */
function bare<T extends KubeObject>(object: T): T {
  const copy = structuredClone(object) as T & { status?: unknown; metadata?: Record<string, unknown> };
  delete copy.status;
  for (const field of KNOWN_TO_SERVER) delete copy.metadata?.[field];
  return copy;
}

function ignoreMissingSubresource(error: unknown): void {
  if (!isNotFound(error)) throw error;
}

function resourceOf({ spec }: CustomResourceDefinition): Resource {
  const version = spec.versions.find(({ storage }) => storage) ?? spec.versions[0];
  if (version === undefined) throw new Error(`${spec.names.plural}.${spec.group} has no version`);
  return resource(`${spec.group}/${version.name}`, spec.names.kind, spec.names.plural, spec.scope === 'Namespaced');
}
