import { isDeepStrictEqual } from 'node:util';
import type { TokenRequest } from 'kubernetes-types/authentication/v1.d.ts';
import type { Node, Pod } from 'kubernetes-types/core/v1.d.ts';
import { KubeError } from '../../kube/error.ts';
import type { KubeObject } from '../../kube/resource.ts';
import { forbiddenObject } from './forbidden.ts';
import { MIRROR_POD, NODE_LEASE_NAMESPACE, referencedNames } from './node.ts';
import { nodeNameOf, type User } from './user.ts';

/** A write on its way into the store, after authorization. */
export interface WriteRequest {
  readonly user: User;
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE';
  readonly group: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  /** What is to be stored; for a subresource with a kind of its own (Eviction, TokenRequest), that object. */
  readonly object?: KubeObject | undefined;
  readonly oldObject?: KubeObject | undefined;
}

/** Finds what a node refers to; the server answers from its store, synchronously. */
export interface NodeRestrictionLister {
  pod(namespace: string, name: string): Pod | undefined;
  node(name: string): Node | undefined;
}

/** Lets a kubelet write only its own Node, Lease and pods; throws `KubeError` 403. Other users pass. */
export function checkNodeRestriction(request: WriteRequest, lister: NodeRestrictionLister): void {
  const nodeName = nodeNameOf(request.user);
  if (nodeName === undefined) return;
  const why =
    nodeName === ''
      ? `could not determine node from user ${JSON.stringify(request.user.name)}`
      : whyRefused(request, nodeName, lister);
  if (why !== undefined) throw forbiddenObject(request.group, request.resource, request.name, why);
}

function whyRefused(request: WriteRequest, nodeName: string, lister: NodeRestrictionLister): string | undefined {
  switch (`${request.group}/${request.resource}`) {
    case '/pods':
      return whyPodRefused(request, nodeName, lister);
    case '/nodes':
      return whyNodeRefused(request, nodeName);
    case '/serviceaccounts':
      return whyTokenRefused(request, nodeName, lister);
    case 'coordination.k8s.io/leases':
      return whyLeaseRefused(request, nodeName);
    default:
      return undefined;
  }
}

function whyPodRefused(request: WriteRequest, nodeName: string, lister: NodeRestrictionLister): string | undefined {
  const { operation, subresource } = request;
  const quoted = JSON.stringify(nodeName);
  switch (subresource) {
    case '':
      if (operation === 'CREATE') return whyMirrorPodRefused(request.object as Pod, nodeName, lister);
      if (operation === 'DELETE') {
        const elsewhere = storedPod(request, lister).spec?.nodeName !== nodeName;
        return elsewhere ? `node ${quoted} can only delete pods with spec.nodeName set to itself` : undefined;
      }
      return `unexpected operation ${JSON.stringify(operation)}, node ${quoted} can only create and delete mirror pods`;
    case 'status': {
      const [pod, old] = [request.object as Pod, request.oldObject as Pod | undefined];
      if (old?.spec?.nodeName !== nodeName) {
        return `node ${quoted} can only update pod status for pods with spec.nodeName set to itself`;
      }
      const labelsKept = isDeepStrictEqual(old.metadata?.labels ?? {}, pod.metadata?.labels ?? {});
      return labelsKept ? undefined : `node ${quoted} cannot update labels through pod status`;
    }
    case 'eviction':
      if (storedPod(request, lister).spec?.nodeName === nodeName) return undefined;
      return `node ${nodeName} can only evict pods with spec.nodeName set to itself`;
    default:
      return `unexpected pod subresource ${JSON.stringify(subresource)}, only 'status' and 'eviction' are allowed`;
  }
}

function whyMirrorPodRefused(pod: Pod, nodeName: string, lister: NodeRestrictionLister): string | undefined {
  const quoted = JSON.stringify(nodeName);
  if (pod.metadata?.annotations?.[MIRROR_POD] === undefined) {
    return `pod does not have ${JSON.stringify(MIRROR_POD)} annotation, node ${quoted} can only create mirror pods`;
  }
  if (pod.spec?.nodeName !== nodeName) return `node ${quoted} can only create pods with spec.nodeName set to itself`;
  const owners = pod.metadata.ownerReferences ?? [];
  if (owners.length > 1) return `node ${quoted} can only create pods with a single owner reference set to itself`;
  const [owner] = owners;
  if (owner === undefined || owner.apiVersion !== 'v1' || owner.kind !== 'Node' || owner.name !== nodeName) {
    return `node ${quoted} can only create pods with an owner reference set to itself`;
  }
  if (owner.controller !== true)
    return `node ${quoted} can only create pods with a controller owner reference set to itself`;
  if (owner.blockOwnerDeletion === true) return `node ${quoted} must not set blockOwnerDeletion on an owner reference`;
  const node = lister.node(nodeName);
  if (node === undefined) throw notFound('nodes', nodeName);
  if (owner.uid !== node.metadata?.uid) {
    return `node ${nodeName} UID mismatch: expected ${owner.uid} got ${node.metadata?.uid ?? ''}`;
  }
  const referenced = referencedKind(pod);
  return referenced === undefined ? undefined : `node ${quoted} can not create pods that reference ${referenced}`;
}

/** A mirror pod shows what already runs; it must not be a way to read objects of the API. */
function referencedKind(pod: Pod): string | undefined {
  if ((pod.spec?.serviceAccountName ?? '') !== '') return 'serviceaccounts';
  if (referencedNames(pod, 'secrets').size > 0) return 'secrets';
  if (referencedNames(pod, 'configmaps').size > 0) return 'configmaps';
  return pod.spec?.volumes?.some(volume => volume.persistentVolumeClaim !== undefined)
    ? 'persistentvolumeclaims'
    : undefined;
}

function whyNodeRefused({ operation, name, object, oldObject }: WriteRequest, nodeName: string): string | undefined {
  const quoted = JSON.stringify(nodeName);
  if (name !== nodeName) return `node ${quoted} is not allowed to modify node ${JSON.stringify(name)}`;
  const [node, old] = [object as Node | undefined, oldObject as Node | undefined];
  if (operation === 'CREATE') {
    const labels = forbiddenLabels(changedLabels(node, undefined));
    return labels.length === 0
      ? undefined
      : `node ${quoted} is not allowed to set the following labels: ${labels.join(', ')}`;
  }
  if (operation !== 'UPDATE') return undefined;
  if (!isDeepStrictEqual(node?.spec?.taints ?? [], old?.spec?.taints ?? [])) {
    return `node ${quoted} is not allowed to modify taints`;
  }
  if (!isDeepStrictEqual(node?.metadata?.ownerReferences ?? [], old?.metadata?.ownerReferences ?? [])) {
    return `node ${quoted} is not allowed to modify ownerReferences`;
  }
  const labels = forbiddenLabels(changedLabels(node, old));
  return labels.length === 0 ? undefined : `is not allowed to modify labels: ${labels.join(', ')}`;
}

function whyTokenRefused(request: WriteRequest, nodeName: string, lister: NodeRestrictionLister): string | undefined {
  if (request.operation !== 'CREATE' || request.subresource !== 'token') return undefined;
  const reference = (request.object as TokenRequest | undefined)?.spec.boundObjectRef;
  if (reference?.apiVersion !== 'v1' || reference.kind !== 'Pod' || !reference.name) {
    return 'node requested token not bound to a pod';
  }
  if (!reference.uid) return 'node requested token with a pod binding without a uid';
  const pod = lister.pod(request.namespace, reference.name);
  if (pod === undefined) throw notFound('pods', reference.name);
  if (pod.metadata?.uid !== reference.uid) {
    return `the UID in the bound object reference (${reference.uid}) does not match the UID in record. The object might have been deleted and then recreated`;
  }
  return pod.spec?.nodeName === nodeName
    ? undefined
    : 'node requested token bound to a pod scheduled on a different node';
}

function whyLeaseRefused({ operation, namespace, name, object }: WriteRequest, nodeName: string): string | undefined {
  if (namespace !== NODE_LEASE_NAMESPACE) {
    return `can only access leases in the ${JSON.stringify(NODE_LEASE_NAMESPACE)} system namespace`;
  }
  const wanted = operation === 'CREATE' ? (object?.metadata?.name ?? name) : name;
  return wanted === nodeName ? undefined : 'can only access node lease with the same name as the requesting node';
}

function storedPod({ namespace, name }: WriteRequest, lister: NodeRestrictionLister): Pod {
  const pod = lister.pod(namespace, name);
  if (pod === undefined) throw notFound('pods', name);
  return pod;
}

function changedLabels(node: Node | undefined, old: Node | undefined): string[] {
  const [after, before] = [node?.metadata?.labels ?? {}, old?.metadata?.labels ?? {}];
  return [...new Set([...Object.keys(after), ...Object.keys(before)])].filter(key => after[key] !== before[key]);
}

const RESTRICTED_NAMESPACE = 'node-restriction.kubernetes.io';
const KUBERNETES_NAMESPACES = ['kubernetes.io', 'k8s.io'];
const KUBELET_NAMESPACES = ['kubelet.kubernetes.io', 'node.kubernetes.io'];
const KUBELET_LABELS = new Set([
  'kubernetes.io/hostname',
  'kubernetes.io/os',
  'kubernetes.io/arch',
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/arch',
  'beta.kubernetes.io/instance-type',
  'node.kubernetes.io/instance-type',
  'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
]);

/** Labels of Kubernetes itself that a kubelet must not set: workloads are kept off nodes by them. */
function forbiddenLabels(keys: readonly string[]): string[] {
  return keys
    .filter(key => {
      const namespace = key.includes('/') ? key.slice(0, key.indexOf('/')) : '';
      const isIn = (domain: string) => namespace === domain || namespace.endsWith(`.${domain}`);
      if (isIn(RESTRICTED_NAMESPACE)) return true;
      return KUBERNETES_NAMESPACES.some(isIn) && !KUBELET_LABELS.has(key) && !KUBELET_NAMESPACES.some(isIn);
    })
    .sort();
}

function notFound(resource: string, name: string): KubeError {
  return new KubeError(404, 'NotFound', `${resource} ${JSON.stringify(name)} not found`, { name, kind: resource });
}
