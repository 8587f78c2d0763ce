import { bool, int32, list, listBy, oneOf, ref, set, str, stringMap, strings, vocabulary } from '../dsl.ts';
import { type FieldError, required } from '../field-error.ts';
import { isObject, withField } from '../json.ts';
import type { JsonObject } from '../schema.ts';
import { PROTOCOLS } from './container.ts';
import { Condition, IntOrString, metadata } from './meta.ts';
import { ObjectReference } from './reference.ts';

/** Services and the endpoints behind them. */

const { object, kind } = vocabulary('io.k8s.api.core.v1', '', 'v1');
const discovery = vocabulary('io.k8s.api.discovery.v1', 'discovery.k8s.io', 'v1');

const ServicePort = object(
  'ServicePort',
  'A port of a service.',
  {
    appProtocol: str('Protocol of the application, such as `kubernetes.io/h2c`.'),
    name: str('Name of the port; required when there are several.'),
    nodePort: int32('Port on every node, for types `NodePort` and `LoadBalancer`.', { minimum: 0, maximum: 65535 }),
    port: int32('Number of the port.', { minimum: 1, maximum: 65535 }),
    protocol: oneOf(PROTOCOLS, 'Protocol of the port.', { default: 'TCP' }),
    targetPort: ref(IntOrString, 'Number or name of the port of the pods; default is `port`.'),
  },
  { required: ['port'], complete: completeServicePort },
);

const SessionAffinityConfig = object('SessionAffinityConfig', 'Settings of session affinity.', {
  clientIP: ref(
    object('ClientIPConfig', 'Affinity by client address.', {
      timeoutSeconds: int32('Seconds a client stays with its pod.', { minimum: 1, maximum: 86400 }),
    }),
    'Affinity by client address.',
  ),
});

const ServiceSpec = object(
  'ServiceSpec',
  'How a service is reached and what is behind it.',
  {
    allocateLoadBalancerNodePorts: bool('Whether a load balancer service gets node ports.'),
    clusterIP: str('Address of the service; `None` for a headless one. Given by the server when empty.'),
    clusterIPs: strings('Addresses of the service, at most one of each family.'),
    externalIPs: strings('Further addresses at which nodes accept traffic for the service.'),
    externalName: str('Name that the service is an alias of, for type `ExternalName`.'),
    externalTrafficPolicy: oneOf(['Cluster', 'Local'], 'Where traffic from outside may go.'),
    healthCheckNodePort: int32('Port of the health check, for load balancers with policy `Local`.'),
    internalTrafficPolicy: oneOf(['Cluster', 'Local'], 'Where traffic from inside may go.'),
    ipFamilies: list({ type: 'string', enum: ['IPv4', 'IPv6'] }, 'Address families of the service.'),
    ipFamilyPolicy: oneOf(['PreferDualStack', 'RequireDualStack', 'SingleStack'], 'Whether both families are wanted.'),
    loadBalancerClass: str('Which implementation serves a load balancer service.'),
    loadBalancerIP: str('Deprecated.'),
    loadBalancerSourceRanges: strings('Client ranges the load balancer lets through.'),
    ports: listBy(['port', 'protocol'], ServicePort, 'Ports of the service.'),
    publishNotReadyAddresses: bool('Pods count as endpoints before they are ready.'),
    selector: stringMap('Labels of the pods behind the service; none when endpoints are kept by hand.', {
      'x-kubernetes-map-type': 'atomic',
    }),
    sessionAffinity: oneOf(['ClientIP', 'None'], 'Whether a client stays with its pod.', { default: 'None' }),
    sessionAffinityConfig: ref(SessionAffinityConfig, 'Settings of session affinity.'),
    trafficDistribution: str('Preference for near endpoints, such as `PreferClose`.'),
    type: oneOf(['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort'], 'How the service is reached.', {
      default: 'ClusterIP',
    }),
  },
  { complete: completeServiceSpec },
);

const PortStatus = object(
  'PortStatus',
  'State of a port of a load balancer.',
  { error: str('What is wrong with it.'), port: int32('Number of the port.'), protocol: str('Protocol of the port.') },
  { zero: ['port', 'protocol'] },
);

const LoadBalancerIngress = object('LoadBalancerIngress', 'Where a load balancer is reached.', {
  hostname: str('Its name.'),
  ip: str('Its address.'),
  ipMode: str('`VIP` or `Proxy`.'),
  ports: list(PortStatus, 'State of its ports.'),
});

const ServiceStatus = object('ServiceStatus', 'State of a service.', {
  conditions: listBy(['type'], Condition, 'State of the service by aspects.'),
  loadBalancer: ref(
    object('LoadBalancerStatus', 'State of a load balancer.', {
      ingress: list(LoadBalancerIngress, 'Where it is reached.'),
    }),
    'State of the load balancer.',
  ),
});

export const Service = kind(
  'Service',
  'A stable name and address for a set of pods.',
  {
    metadata,
    spec: ref(ServiceSpec, 'What is wanted.'),
    status: ref(ServiceStatus, 'State of the service. Read-only.'),
  },
  { check: ({ spec }) => portErrors(isObject(spec) ? spec : {}) },
);

const EndpointAddress = object(
  'EndpointAddress',
  'An address of an endpoint.',
  {
    hostname: str('Host name of the endpoint.'),
    ip: str('The address.'),
    nodeName: str('Node of the endpoint.'),
    targetRef: ref(ObjectReference, 'The pod.'),
  },
  { required: ['ip'], atomic: true },
);

const EndpointPort = object(
  'EndpointPort',
  'A port of endpoints.',
  {
    appProtocol: str('Protocol of the application.'),
    name: str('Name of the port of the service.'),
    port: int32('Number of the port.', { minimum: 1, maximum: 65535 }),
    protocol: oneOf(PROTOCOLS, 'Protocol of the port.', { default: 'TCP' }),
  },
  { required: ['port'], atomic: true },
);

const EndpointSubset = object('EndpointSubset', 'Addresses with the same ports.', {
  addresses: list(EndpointAddress, 'Addresses that are ready.'),
  notReadyAddresses: list(EndpointAddress, 'Addresses that are not ready.'),
  ports: list(EndpointPort, 'Ports of the addresses.'),
});

export const Endpoints = kind('Endpoints', 'The addresses behind a service. Deprecated in favour of EndpointSlice.', {
  metadata,
  subsets: list(EndpointSubset, 'The addresses, grouped by ports.'),
});

const SliceEndpoint = discovery.object(
  'Endpoint',
  'One endpoint of a service.',
  {
    addresses: set({ type: 'string' }, 'Addresses of the endpoint; the first is used.'),
    conditions: ref(
      discovery.object('EndpointConditions', 'State of an endpoint.', {
        ready: bool('Takes new traffic.'),
        serving: bool('Passes its readiness probe, even while it ends.'),
        terminating: bool('Is ending.'),
      }),
      'State of the endpoint.',
    ),
    deprecatedTopology: stringMap('Deprecated.'),
    hints: ref(
      discovery.object('EndpointHints', 'Who should use an endpoint.', {
        forNodes: list(
          discovery.object('ForNode', 'A node.', { name: str('Name of the node.') }, { required: ['name'] }),
          'Nodes that should use it.',
        ),
        forZones: list(
          discovery.object('ForZone', 'A zone.', { name: str('Name of the zone.') }, { required: ['name'] }),
          'Zones that should use it.',
        ),
      }),
      'Who should use the endpoint.',
    ),
    hostname: str('Host name of the endpoint.'),
    nodeName: str('Node of the endpoint.'),
    targetRef: ref(ObjectReference, 'The pod.'),
    zone: str('Zone of the endpoint.'),
  },
  { required: ['addresses'] },
);

const SlicePort = discovery.object(
  'EndpointPort',
  'A port of a slice.',
  {
    appProtocol: str('Protocol of the application.'),
    name: str('Name of the port of the service.', { default: '' }),
    port: int32('Number of the port; absent for all ports.'),
    protocol: oneOf(PROTOCOLS, 'Protocol of the port.', { default: 'TCP' }),
  },
  { atomic: true },
);

export const EndpointSlice = discovery.kind(
  'EndpointSlice',
  'Some of the endpoints behind a service.',
  {
    addressType: oneOf(['FQDN', 'IPv4', 'IPv6'], 'What addresses are. Cannot be changed.'),
    endpoints: list(SliceEndpoint, 'The endpoints, at most 1000.'),
    metadata,
    ports: list(SlicePort, 'Ports of the endpoints, at most 100.'),
  },
  { required: ['addressType'], zero: ['endpoints'] },
);

function completeServicePort(port: JsonObject): JsonObject {
  const { targetPort } = port;
  const absent = targetPort === undefined || targetPort === 0 || targetPort === '';
  return absent && port['port'] !== undefined ? withField(port, 'targetPort', port['port']) : port;
}

/** Only a service without an address of its own can do without ports. */
function portErrors({ ports, clusterIP, type }: JsonObject): FieldError[] {
  if (clusterIP === 'None' || type === 'ExternalName') return [];
  return Array.isArray(ports) && ports.length > 0 ? [] : [required('spec.ports')];
}

const CLIENT_STAYS_SECONDS = 10_800;

function completeServiceSpec(spec: JsonObject): JsonObject {
  let completed = spec;
  const fill = (field: string, value: unknown) => {
    if ((completed[field] ?? '') === '') completed = withField(completed, field, value);
  };
  const { type, sessionAffinity, sessionAffinityConfig } = spec;
  const external = type === 'NodePort' || type === 'LoadBalancer';
  if (external) fill('externalTrafficPolicy', 'Cluster');
  if (external || type === 'ClusterIP') fill('internalTrafficPolicy', 'Cluster');
  if (type === 'LoadBalancer') fill('allocateLoadBalancerNodePorts', true);
  if (sessionAffinity === 'ClientIP' && !hasTimeout(sessionAffinityConfig)) {
    completed = withField(completed, 'sessionAffinityConfig', { clientIP: { timeoutSeconds: CLIENT_STAYS_SECONDS } });
  }
  return completed;
}

function hasTimeout(config: unknown): boolean {
  return isObject(config) && isObject(config['clientIP']) && config['clientIP']['timeoutSeconds'] !== undefined;
}
