import type { Container, EphemeralContainer, Pod } from 'kubernetes-types/core/v1.d.ts';
import { isPathRequest, type ResourceAttributes } from './attributes.ts';
import type { Authorizer, Decision } from './authorize.ts';
import { nodeRules } from './bootstrap-roles.ts';
import { ruleAllows } from './rule.ts';
import { nodeNameOf } from './user.ts';

/** Finds the pods of a node; the server answers from its store, synchronously. */
export interface NodePods {
  podsOnNode(nodeName: string): Iterable<Pod>;
}

export const NODE_LEASE_NAMESPACE = 'kube-node-lease';

/** Put by a kubelet on the pod that shows what it runs from a file of its own. */
export const MIRROR_POD = 'kubernetes.io/config.mirror';

const RULES = nodeRules();
const READING = new Set(['get', 'list', 'watch']);
const NO_OPINION: Decision = { verdict: 'no-opinion', reason: '' };

/**
 * Gives a kubelet (`system:node:<name>`) the rights of the role `system:node`, narrowed to what its node needs: Secrets
 * and ConfigMaps that its pods refer to, tokens for their service accounts, its own Lease and Node.
 */
export function createNodeAuthorizer(pods: NodePods): Authorizer {
  return {
    authorize(attributes) {
      const nodeName = nodeNameOf(attributes.user);
      if (nodeName === undefined || isPathRequest(attributes)) return NO_OPINION;
      if (nodeName === '') return refuse(`unknown node for user ${JSON.stringify(attributes.user.name)}`);
      const why = whyNotForNode(attributes, nodeName, pods);
      if (why !== undefined) return refuse(why);
      return RULES.some(rule => ruleAllows(rule, attributes)) ? { verdict: 'allow', reason: '' } : NO_OPINION;
    },
  };
}

/** The names of all Secrets or ConfigMaps a pod refers to. */
export function referencedNames(pod: Pod, kind: 'secrets' | 'configmaps'): Set<string> {
  const {
    volumes = [],
    imagePullSecrets = [],
    initContainers = [],
    containers = [],
    ephemeralContainers = [],
  } = pod.spec ?? {};
  const names: (string | undefined)[] = [];
  for (const volume of volumes) {
    const sources = volume.projected?.sources ?? [];
    if (kind === 'secrets') names.push(volume.secret?.secretName, ...sources.map(source => source.secret?.name));
    else names.push(volume.configMap?.name, ...sources.map(source => source.configMap?.name));
  }
  if (kind === 'secrets') names.push(...imagePullSecrets.map(secret => secret.name));
  for (const container of [...initContainers, ...containers, ...ephemeralContainers])
    names.push(...environmentNames(container, kind));
  return new Set(names.flatMap(name => name || []));
}

/** Why a request is outside what a node may touch; undefined when the role's rules alone decide. */
function whyNotForNode(attributes: ResourceAttributes, nodeName: string, pods: NodePods): string | undefined {
  const { group, resource, subresource, namespace, name, verb } = attributes;
  if (group === '' && (resource === 'secrets' || resource === 'configmaps')) {
    if (name === '' || namespace === '') return 'No Object name found';
    for (const pod of podsGivingRights(pods, nodeName, namespace)) {
      if (referencedNames(pod, resource).has(name)) return undefined;
    }
    return noRelation(nodeName);
  }
  if (group === '' && resource === 'serviceaccounts' && subresource === 'token') {
    for (const pod of podsGivingRights(pods, nodeName, namespace)) {
      if (pod.spec?.serviceAccountName === name) return undefined;
    }
    return noRelation(nodeName);
  }
  if (group === 'coordination.k8s.io' && resource === 'leases') {
    if (namespace !== NODE_LEASE_NAMESPACE)
      return `can only access leases in the ${JSON.stringify(NODE_LEASE_NAMESPACE)} system namespace`;
    if (verb !== 'create' && name !== nodeName)
      return 'can only access node lease with the same name as the requesting node';
  }
  if (group === '' && resource === 'nodes' && READING.has(verb) && name !== nodeName) {
    return `node ${JSON.stringify(nodeName)} cannot read ${name === '' ? 'all nodes' : JSON.stringify(name)}, only its own Node object`;
  }
  return undefined;
}

/** A node makes mirror pods itself, wherever it likes: if they gave it rights, it could give itself any. */
function* podsGivingRights(pods: NodePods, nodeName: string, namespace: string): Generator<Pod> {
  for (const pod of pods.podsOnNode(nodeName)) {
    const { metadata } = pod;
    if (metadata?.namespace === namespace && metadata.annotations?.[MIRROR_POD] === undefined) yield pod;
  }
}

function noRelation(nodeName: string): string {
  return `no relationship found between node ${JSON.stringify(nodeName)} and this object`;
}

function environmentNames(
  container: Container | EphemeralContainer,
  kind: 'secrets' | 'configmaps',
): (string | undefined)[] {
  const { env = [], envFrom = [] } = container;
  return kind === 'secrets'
    ? [...env.map(variable => variable.valueFrom?.secretKeyRef?.name), ...envFrom.map(source => source.secretRef?.name)]
    : [
        ...env.map(variable => variable.valueFrom?.configMapKeyRef?.name),
        ...envFrom.map(source => source.configMapRef?.name),
      ];
}

/** Other authorizers may still allow it: a node can be given more by RBAC. */
function refuse(reason: string): Decision {
  return { verdict: 'no-opinion', reason };
}
