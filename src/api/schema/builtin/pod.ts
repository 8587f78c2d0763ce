import { bool, int32, int64, list, listBy, map, oneOf, ref, str, stringMap, strings, vocabulary } from '../dsl.ts';
import { completePod, completePodSpec } from '../pod-defaults.ts';
import { podSpecErrors } from '../pod-rules.ts';
import type { JsonObject } from '../schema.ts';
import { Container, EphemeralContainer, ResourceRequirements } from './container.ts';
import { metadata, ObjectMeta, Quantity } from './meta.ts';
import { PodStatus } from './pod-status.ts';
import { LocalObjectReference, ObjectReference } from './reference.ts';
import { Affinity, podPreemptionPolicy, Toleration, TopologySpreadConstraint } from './scheduling.ts';
import { PodSecurityContext } from './security.ts';
import { Volume } from './volume.ts';

/** Pods, pod templates, and the binding of a pod to its node. */

const { object, kind } = vocabulary('io.k8s.api.core.v1', '', 'v1');

const PodDNSConfig = object('PodDNSConfig', 'DNS settings that are added to those of the policy.', {
  nameservers: strings('Addresses of name servers.'),
  options: list(
    object('PodDNSConfigOption', 'An option of the resolver.', {
      name: str('Name of the option.'),
      value: str('Value of the option.'),
    }),
    'Options of the resolver.',
  ),
  searches: strings('Search domains.'),
});

const HostAlias = object(
  'HostAlias',
  'A line of `/etc/hosts`.',
  { hostnames: strings('Names of the address.'), ip: str('The address.') },
  { required: ['ip'] },
);

const PodOS = object(
  'PodOS',
  'The operating system of a pod.',
  { name: oneOf(['linux', 'windows'], 'Name of the operating system.') },
  { required: ['name'] },
);

const PodReadinessGate = object(
  'PodReadinessGate',
  'A further condition for readiness.',
  { conditionType: str('Type of a condition of the pod that must be true.') },
  { required: ['conditionType'] },
);

const PodSchedulingGate = object(
  'PodSchedulingGate',
  'Holds the scheduling of a pod back while it is there.',
  { name: str('Name of the gate.') },
  { required: ['name'] },
);

const PodResourceClaim = object(
  'PodResourceClaim',
  'A resource claim of the pod; exactly one of claim and template.',
  {
    name: str('Name by which containers refer to it.'),
    resourceClaimName: str('An existing claim.'),
    resourceClaimTemplateName: str('A template to make the claim from.'),
  },
  { required: ['name'] },
);

const DNS_POLICIES = ['ClusterFirst', 'ClusterFirstWithHostNet', 'Default', 'None'];
const spreadKeys = ['topologyKey', 'whenUnsatisfiable'] as const;

export const PodSpec = object(
  'PodSpec',
  'What runs in a pod, as whom, with what, and where it may run.',
  {
    activeDeadlineSeconds: int64('Seconds the pod may be active before it is stopped.', { minimum: 1 }),
    affinity: ref(Affinity, 'Conditions and wishes about nodes and other pods.'),
    automountServiceAccountToken: bool('Whether a service account token is mounted.'),
    containers: listBy(['name'], Container, 'The containers; at least one. Cannot be added or removed later.'),
    dnsConfig: ref(PodDNSConfig, 'DNS settings that are added to those of `dnsPolicy`.'),
    dnsPolicy: oneOf(DNS_POLICIES, 'Where DNS settings come from.', { default: 'ClusterFirst' }),
    enableServiceLinks: bool('Environment variables for the services of the namespace.'),
    ephemeralContainers: listBy(['name'], EphemeralContainer, 'Containers put into the running pod to look around.'),
    hostAliases: listBy(['ip'], HostAlias, 'Lines for `/etc/hosts`.'),
    hostIPC: bool("Shares the node's IPC namespace."),
    hostNetwork: bool("Shares the node's network."),
    hostPID: bool("Shares the node's process namespace."),
    hostUsers: bool("Shares the node's user namespace; default true."),
    hostname: str('Host name of the pod; default is its name.'),
    imagePullSecrets: listBy(['name'], LocalObjectReference, 'Secrets with credentials of image registries.'),
    initContainers: listBy(
      ['name'],
      Container,
      'Containers that run to their end, one after the other, before the others.',
    ),
    nodeName: str('The node the pod runs on; set by the scheduler, or here to go around it.'),
    nodeSelector: stringMap('Labels a node must have.', { 'x-kubernetes-map-type': 'atomic' }),
    os: ref(PodOS, 'Operating system of the containers.'),
    overhead: map(Quantity, 'Resources the sandbox itself takes; set from the runtime class.'),
    preemptionPolicy: podPreemptionPolicy,
    priority: int32('Priority of the pod; set from the priority class.'),
    priorityClassName: str('Priority class, such as `system-node-critical`.'),
    readinessGates: list(PodReadinessGate, 'Further conditions for readiness.'),
    resourceClaims: listBy(['name'], PodResourceClaim, 'Claims of devices.', 'merge,retainKeys'),
    resources: ref(ResourceRequirements, 'CPU and memory of all containers together.'),
    restartPolicy: oneOf(['Always', 'Never', 'OnFailure'], 'When containers are restarted.', { default: 'Always' }),
    runtimeClassName: str('Runtime class; default is the runtime of the node.'),
    schedulerName: str('Scheduler that places the pod.', { default: 'default-scheduler' }),
    schedulingGates: listBy(['name'], PodSchedulingGate, 'While any is left, the pod is not scheduled.'),
    securityContext: ref(PodSecurityContext, 'Security settings of all containers.', { default: {} }),
    serviceAccount: str('Old name of `serviceAccountName`.'),
    serviceAccountName: str('Service account the pod runs as.'),
    setHostnameAsFQDN: bool("The host name is the pod's fully qualified name."),
    shareProcessNamespace: bool('All containers see the processes of each other.'),
    subdomain: str('The pod is `<hostname>.<subdomain>.<namespace>.svc.<cluster domain>`.'),
    terminationGracePeriodSeconds: int64('Seconds to end in before the kill.', { default: 30, minimum: 0 }),
    tolerations: list(Toleration, 'Taints of nodes that are tolerated.'),
    topologySpreadConstraints: listBy(spreadKeys, TopologySpreadConstraint, 'How pods are spread over domains.'),
    volumes: listBy(['name'], Volume, 'Volumes for the containers.', 'merge,retainKeys'),
  },
  { required: ['containers'], complete: completePodSpec, check: podSpecErrors },
);

export const PodTemplateSpec = object('PodTemplateSpec', 'The pods that are made.', {
  metadata: ref(ObjectMeta, 'Labels and annotations of the pods.'),
  spec: ref(PodSpec, 'What runs in the pods.'),
});

export const Pod = kind(
  'Pod',
  'Containers that run together on one node.',
  { metadata, spec: ref(PodSpec, 'What is wanted.'), status: ref(PodStatus, 'What was last observed. Read-only.') },
  { complete: (pod: JsonObject) => completePod(pod) },
);

export const PodTemplate = kind('PodTemplate', 'A pod template that is stored by itself.', {
  metadata,
  template: ref(PodTemplateSpec, 'The pods that are made.'),
});

export const Binding = kind(
  'Binding',
  'Assigns a pod to a node.',
  { metadata, target: ref(ObjectReference, 'The node.') },
  { required: ['target'] },
);
