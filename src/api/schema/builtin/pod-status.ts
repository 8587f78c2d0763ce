import { bool, int32, int64, list, listBy, map, mapList, ref, str, vocabulary } from '../dsl.ts';
import { ResourceRequirements } from './container.ts';
import { Quantity, time } from './meta.ts';

/** What the kubelet reports about a pod. */

const { object } = vocabulary('io.k8s.api.core.v1', '', 'v1');

const ContainerState = object('ContainerState', 'Exactly one of waiting, running and terminated.', {
  running: ref(
    object('ContainerStateRunning', 'The container runs.', { startedAt: time('When it was started.') }),
    'The container runs.',
  ),
  terminated: ref(
    object(
      'ContainerStateTerminated',
      'The container has ended.',
      {
        containerID: str('ID of the container, `<type>://<id>`.'),
        exitCode: int32('Exit code.'),
        finishedAt: time('When it ended.'),
        message: str('Its last words.'),
        reason: str('Why it ended, in one word.'),
        signal: int32('Signal that ended it.'),
        startedAt: time('When it was started.'),
      },
      { zero: ['exitCode'] },
    ),
    'The container has ended.',
  ),
  waiting: ref(
    object('ContainerStateWaiting', 'The container does not run yet.', {
      message: str('Details for people.'),
      reason: str('Why, in one word, such as `CrashLoopBackOff`.'),
    }),
    'The container does not run yet.',
  ),
});

const LinuxContainerUser = object(
  'LinuxContainerUser',
  'User and groups of the first process.',
  {
    gid: int64('Primary group.'),
    supplementalGroups: list({ type: 'integer', format: 'int64' }, 'Further groups.'),
    uid: int64('User.'),
  },
  { zero: ['gid', 'uid'] },
);

const ResourceHealth = object(
  'ResourceHealth',
  'Health of one device.',
  { health: str('`Healthy`, `Unhealthy` or `Unknown`.'), resourceID: str('ID of the device.') },
  { zero: ['resourceID'] },
);

const ResourceStatus = object(
  'ResourceStatus',
  'Health of the devices of one resource.',
  {
    name: str('Name of the resource.'),
    resources: mapList(['resourceID'], ResourceHealth, 'The devices.'),
  },
  { zero: ['name'] },
);

const VolumeMountStatus = object(
  'VolumeMountStatus',
  'How a volume is mounted.',
  {
    mountPath: str('Path in the container.'),
    name: str('Name of the volume.'),
    readOnly: bool('Mounted read-only.'),
    recursiveReadOnly: str('`Disabled` or `Enabled`.'),
  },
  { zero: ['mountPath', 'name'] },
);

export const ContainerStatus = object(
  'ContainerStatus',
  'State of one container.',
  {
    allocatedResources: map(Quantity, 'Resources the node has set aside.'),
    allocatedResourcesStatus: listBy(['name'], ResourceStatus, 'Health of the devices.'),
    containerID: str('ID of the container, `<type>://<id>`.'),
    image: str('Image it runs.'),
    imageID: str('ID of that image.'),
    lastState: ref(ContainerState, 'State of the run before this one.'),
    name: str('Name of the container.'),
    ready: bool('Passed its readiness probe.'),
    resources: ref(ResourceRequirements, 'Requests and limits in force.'),
    restartCount: int32('How often it was restarted.'),
    started: bool('Passed its startup probe.'),
    state: ref(ContainerState, 'State now.'),
    stopSignal: str('Signal that stops it.'),
    user: ref(
      object('ContainerUser', 'User of the first process.', { linux: ref(LinuxContainerUser, 'On Linux.') }),
      'User of the first process.',
    ),
    volumeMounts: listBy(['mountPath'], VolumeMountStatus, 'How volumes are mounted.'),
  },
  { zero: ['image', 'imageID', 'name', 'ready', 'restartCount'] },
);

const PodCondition = object(
  'PodCondition',
  'One aspect of the state of a pod.',
  {
    lastProbeTime: time('When it was last checked.'),
    lastTransitionTime: time('When `status` last changed.'),
    message: str('Details for people.'),
    observedGeneration: int64('`metadata.generation` this was computed from.'),
    reason: str('Why, in one word for programs.'),
    status: str('`True`, `False` or `Unknown`.'),
    type: str('Name of the aspect, such as `Ready`.'),
  },
  { zero: ['status', 'type'] },
);

const HostIP = object('HostIP', 'An address of the node.', { ip: str('The address.') }, { zero: ['ip'] });
const PodIP = object('PodIP', 'An address of the pod.', { ip: str('The address.') }, { zero: ['ip'] });

const PodResourceClaimStatus = object(
  'PodResourceClaimStatus',
  'The claim made for an entry of `spec.resourceClaims`.',
  { name: str('Name of the entry.'), resourceClaimName: str('Name of the claim.') },
  { zero: ['name'] },
);

export const PodStatus = object('PodStatus', 'State of a pod as last observed.', {
  conditions: listBy(['type'], PodCondition, 'State of the pod by aspects.'),
  containerStatuses: list(ContainerStatus, 'State of each container.'),
  ephemeralContainerStatuses: list(ContainerStatus, 'State of each ephemeral container.'),
  hostIP: str('Address of the node.'),
  hostIPs: list(HostIP, 'All addresses of the node.', {
    'x-kubernetes-patch-strategy': 'merge',
    'x-kubernetes-patch-merge-key': 'ip',
  }),
  initContainerStatuses: list(ContainerStatus, 'State of each init container.'),
  message: str('Why the pod is in this state, for people.'),
  nominatedNodeName: str('Node where room is being made for the pod.'),
  observedGeneration: int64('`metadata.generation` the kubelet has seen.'),
  phase: str('`Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.'),
  podIP: str('Address of the pod.'),
  podIPs: listBy(['ip'], PodIP, 'All addresses of the pod.'),
  qosClass: str('`Guaranteed`, `Burstable` or `BestEffort`; follows from requests and limits.'),
  reason: str('Why the pod is in this state, in one word.'),
  resize: str('Progress of a change of resources.'),
  resourceClaimStatuses: listBy(
    ['name'],
    PodResourceClaimStatus,
    'State of the claims of devices.',
    'merge,retainKeys',
  ),
  startTime: time('When the kubelet took the pod on.'),
});
