import { bool, int32, int64, list, listBy, map, ref, set, str, strings, vocabulary } from '../dsl.ts';
import { duplicate, type FieldError } from '../field-error.ts';
import { isObject } from '../json.ts';
import type { JsonObject } from '../schema.ts';
import { metadata, Quantity, time } from './meta.ts';
import { Taint } from './scheduling.ts';

/** Nodes. */

const { object, kind } = vocabulary('io.k8s.api.core.v1', '', 'v1');

const ConfigMapNodeConfigSource = object(
  'ConfigMapNodeConfigSource',
  'A ConfigMap with the configuration of a kubelet. No longer supported.',
  {
    kubeletConfigKey: str('Key of the configuration.'),
    name: str('Name of the ConfigMap.'),
    namespace: str('Namespace of the ConfigMap.'),
    resourceVersion: str('Version of the ConfigMap.'),
    uid: str('UID of the ConfigMap.'),
  },
  { required: ['kubeletConfigKey', 'name', 'namespace'] },
);

const NodeConfigSource = object(
  'NodeConfigSource',
  'Where a kubelet has its configuration from. No longer supported.',
  {
    configMap: ref(ConfigMapNodeConfigSource, 'A ConfigMap.'),
  },
);

const NodeSpec = object(
  'NodeSpec',
  'What is wanted of a node.',
  {
    configSource: ref(NodeConfigSource, 'No longer supported.'),
    externalID: str('No longer used.'),
    podCIDR: str('Range of addresses for pods.'),
    podCIDRs: set({ type: 'string' }, 'Ranges of addresses for pods, at most one of each family.', {
      'x-kubernetes-patch-strategy': 'merge',
    }),
    providerID: str('ID of the machine at its provider, `<provider>://<id>`.'),
    taints: list(Taint, 'Keep pods away that do not tolerate them.'),
    unschedulable: bool('No new pods; what `kubectl cordon` sets.'),
  },
  { check: repeatedTaints },
);

const NodeCondition = object(
  'NodeCondition',
  'One aspect of the state of a node.',
  {
    lastHeartbeatTime: time('When it was last reported.'),
    lastTransitionTime: time('When `status` last changed.'),
    message: str('Details for people.'),
    reason: str('Why, in one word for programs.'),
    status: str('`True`, `False` or `Unknown`.'),
    type: str('Name of the aspect, such as `Ready`.'),
  },
  { zero: ['status', 'type'] },
);

const NodeAddress = object(
  'NodeAddress',
  'A name or address of a node.',
  {
    address: str('The name or address.'),
    type: str('`Hostname`, `InternalIP`, `ExternalIP`, `InternalDNS` or `ExternalDNS`.'),
  },
  { zero: ['address', 'type'] },
);

const AttachedVolume = object(
  'AttachedVolume',
  'A volume that is attached to the node.',
  { devicePath: str('Path of the device.'), name: str('Name of the volume.') },
  { zero: ['devicePath', 'name'] },
);

const ContainerImage = object('ContainerImage', 'An image on the node.', {
  names: strings('Names of the image.'),
  sizeBytes: int64('Size in bytes.'),
});

const DaemonEndpoint = object(
  'DaemonEndpoint',
  'Where a daemon listens.',
  { Port: int32('Number of the port.') },
  { zero: ['Port'] },
);

const NodeSystemInfo = object(
  'NodeSystemInfo',
  'Hardware, operating system and versions of a node.',
  {
    architecture: str('Processor architecture.'),
    bootID: str('Changes with every boot.'),
    containerRuntimeVersion: str('Container runtime, `<type>://<version>`.'),
    kernelVersion: str('Kernel version.'),
    kubeProxyVersion: str('Deprecated.'),
    kubeletVersion: str('Kubelet version.'),
    machineID: str('ID of the machine.'),
    operatingSystem: str('Operating system, such as `linux`.'),
    osImage: str('Name of the operating system image.'),
    swap: ref(object('NodeSwapStatus', 'Swap space.', { capacity: int64('Bytes of swap.') }), 'Swap space.'),
    systemUUID: str('UUID of the system.'),
  },
  {
    zero: [
      'architecture',
      'bootID',
      'containerRuntimeVersion',
      'kernelVersion',
      'kubeProxyVersion',
      'kubeletVersion',
      'machineID',
      'operatingSystem',
      'osImage',
      'systemUUID',
    ],
  },
);

const NodeConfigStatus = object('NodeConfigStatus', 'Configuration in use. No longer supported.', {
  active: ref(NodeConfigSource, 'In use.'),
  assigned: ref(NodeConfigSource, 'Assigned.'),
  error: str('Why the assigned one is not in use.'),
  lastKnownGood: ref(NodeConfigSource, 'What it falls back to.'),
});

const NodeRuntimeHandler = object('NodeRuntimeHandler', 'A handler of the container runtime.', {
  features: ref(
    object('NodeRuntimeHandlerFeatures', 'What a handler can do.', {
      recursiveReadOnlyMounts: bool('Recursive read-only mounts.'),
      userNamespaces: bool('User namespaces.'),
    }),
    'What it can do.',
  ),
  name: str('Name of the handler; empty for the default one.'),
});

const NodeStatus = object('NodeStatus', 'State of a node as last reported.', {
  addresses: listBy(['type'], NodeAddress, 'Names and addresses of the node.'),
  allocatable: map(Quantity, 'Resources that pods can have.'),
  capacity: map(Quantity, 'Resources of the node.'),
  conditions: listBy(['type'], NodeCondition, 'State of the node by aspects.'),
  config: ref(NodeConfigStatus, 'No longer supported.'),
  daemonEndpoints: ref(
    object('NodeDaemonEndpoints', 'Where daemons of the node listen.', {
      kubeletEndpoint: ref(DaemonEndpoint, 'The kubelet.'),
    }),
    'Where daemons of the node listen.',
  ),
  features: ref(
    object('NodeFeatures', 'What the runtime of a node can do.', {
      supplementalGroupsPolicy: bool('Policies for supplemental groups.'),
    }),
    'What the runtime can do.',
  ),
  images: list(ContainerImage, 'Images on the node.'),
  nodeInfo: ref(NodeSystemInfo, 'Hardware, operating system and versions.'),
  phase: str('No longer filled in.'),
  runtimeHandlers: list(NodeRuntimeHandler, 'Handlers of the container runtime.'),
  volumesAttached: list(AttachedVolume, 'Volumes attached to the node.'),
  volumesInUse: strings('Volumes mounted on the node.'),
});

export const Node = kind('Node', 'A machine that runs pods.', {
  metadata,
  spec: ref(NodeSpec, 'What is wanted.'),
  status: ref(NodeStatus, 'What was last reported. Read-only.'),
});

function repeatedTaints({ taints }: JsonObject, path: string): FieldError[] {
  if (!Array.isArray(taints)) return [];
  const seen = new Set<string>();
  return (taints as unknown[]).flatMap((taint, index) => {
    if (!isObject(taint)) return [];
    const identity = `${String(taint['effect'])} ${String(taint['key'])}`;
    if (seen.has(identity)) {
      const error = duplicate(`${path}.taints[${index}]`, taint);
      return [{ ...error, detail: 'taints must be unique by key and effect' }];
    }
    seen.add(identity);
    return [];
  });
}
