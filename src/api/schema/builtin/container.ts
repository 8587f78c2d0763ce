import { bool, int32, list, listBy, map, mapList, oneOf, ref, str, strings, vocabulary } from '../dsl.ts';
import type { FieldError } from '../field-error.ts';
import { invalid, required } from '../field-error.ts';
import { isObject, withField } from '../json.ts';
import { dnsLabelErrors } from '../name.ts';
import type { JsonObject } from '../schema.ts';
import { Quantity } from './meta.ts';
import { Lifecycle, Probe } from './probe.ts';
import { ConfigMapKeySelector, ObjectFieldSelector, ResourceFieldSelector, SecretKeySelector } from './reference.ts';
import { SecurityContext } from './security.ts';

/** One container of a pod, of each of the three sorts. */

const { object } = vocabulary('io.k8s.api.core.v1', '', 'v1');

export const PROTOCOLS = ['SCTP', 'TCP', 'UDP'];
export const PULL_POLICIES = ['Always', 'IfNotPresent', 'Never'];

const ContainerPort = object(
  'ContainerPort',
  'A port a container listens on.',
  {
    containerPort: int32('Number of the port.', { minimum: 1, maximum: 65535 }),
    hostIP: str('Address of the host to bind to.'),
    hostPort: int32('Port of the host that leads here.', { minimum: 0, maximum: 65535 }),
    name: str('Name of the port, for services to refer to.'),
    protocol: oneOf(PROTOCOLS, 'Protocol of the port.', { default: 'TCP' }),
  },
  { required: ['containerPort'] },
);

const EnvVarSource = object('EnvVarSource', 'Where the value of a variable comes from; exactly one of these.', {
  configMapKeyRef: ref(ConfigMapKeySelector, 'A key of a ConfigMap.'),
  fieldRef: ref(ObjectFieldSelector, 'A field of the pod.'),
  resourceFieldRef: ref(ResourceFieldSelector, 'A resource of the container.'),
  secretKeyRef: ref(SecretKeySelector, 'A key of a Secret.'),
});

const EnvVar = object(
  'EnvVar',
  'An environment variable.',
  {
    name: str('Name of the variable.'),
    value: str('Value; `$(OTHER)` is replaced by earlier variables.'),
    valueFrom: ref(EnvVarSource, 'Source of the value; not together with `value`.'),
  },
  { required: ['name'], check: envErrors },
);

const ENV_SOURCE = {
  name: str('Name of the object.', { default: '' }),
  optional: bool('The object may be missing.'),
};

const EnvFromSource = object('EnvFromSource', 'Takes all keys of an object as variables.', {
  configMapRef: ref(object('ConfigMapEnvSource', 'All keys of a ConfigMap.', ENV_SOURCE), 'The ConfigMap.'),
  prefix: str('Put before every name.'),
  secretRef: ref(object('SecretEnvSource', 'All keys of a Secret.', ENV_SOURCE), 'The Secret.'),
});

const ResourceClaim = object(
  'ResourceClaim',
  'Use of a resource claim of the pod.',
  {
    name: str('Name of the entry in `spec.resourceClaims`.'),
    request: str('One request of the claim; default is all of them.'),
  },
  { required: ['name'] },
);

export const ResourceRequirements = object('ResourceRequirements', 'What is reserved and how much may be used.', {
  claims: mapList(['name'], ResourceClaim, 'Resource claims of the pod that are used.'),
  limits: map(Quantity, 'Most that may be used.'),
  requests: map(Quantity, 'What is reserved; default is the limit.'),
});

const ContainerResizePolicy = object(
  'ContainerResizePolicy',
  'What a change of a resource means for a running container.',
  {
    resourceName: oneOf(['cpu', 'memory'], 'The resource.'),
    restartPolicy: oneOf(['NotRequired', 'RestartContainer'], 'Whether the container is restarted.'),
  },
  { required: ['resourceName', 'restartPolicy'] },
);

const VolumeMount = object(
  'VolumeMount',
  'Where a volume appears in the container.',
  {
    mountPath: str('Path in the container; no `:`.'),
    mountPropagation: oneOf(['Bidirectional', 'HostToContainer', 'None'], 'Whether later mounts are seen.'),
    name: str('Name of the volume.'),
    readOnly: bool('Mounts read-only.'),
    recursiveReadOnly: oneOf(['Disabled', 'Enabled', 'IfPossible'], 'Whether mounts below are read-only too.'),
    subPath: str('Path in the volume; default is its root.'),
    subPathExpr: str('Like `subPath`, with `$(VAR)` replaced.'),
  },
  { required: ['mountPath', 'name'] },
);

const VolumeDevice = object(
  'VolumeDevice',
  'A raw block device in the container.',
  { devicePath: str('Path of the device.'), name: str('Name of the claim in the pod.') },
  { required: ['devicePath', 'name'] },
);

const CONTAINER_FIELDS = {
  args: strings('Arguments of the entry point; default is the `CMD` of the image.'),
  command: strings('Entry point; default is the `ENTRYPOINT` of the image.'),
  env: listBy(['name'], EnvVar, 'Environment variables.'),
  envFrom: list(EnvFromSource, 'Sources of many variables; later ones win, `env` wins over all.'),
  image: str('Image to run.'),
  imagePullPolicy: oneOf(PULL_POLICIES, 'When to pull; default `Always` for the tag `latest`, else `IfNotPresent`.'),
  lifecycle: ref(Lifecycle, 'What to do after the start and before the stop.'),
  livenessProbe: ref(Probe, 'Restarts the container when it fails.'),
  name: str('Name of the container, a DNS label unique in the pod. Cannot be changed.'),
  ports: listBy(['containerPort', 'protocol'], ContainerPort, 'Ports the container listens on; for information.'),
  readinessProbe: ref(Probe, 'Takes the pod out of its services while it fails.'),
  resizePolicy: list(ContainerResizePolicy, 'What changes of resources mean.'),
  resources: ref(ResourceRequirements, 'CPU, memory and other resources.', { default: {} }),
  restartPolicy: oneOf(['Always'], 'Only for init containers: `Always` makes a sidecar of it.'),
  securityContext: ref(SecurityContext, 'Security settings; they win over those of the pod.'),
  startupProbe: ref(Probe, 'Holds the other probes back until it succeeds.'),
  stdin: bool('Keeps standard input open.'),
  stdinOnce: bool('Closes standard input after the first session.'),
  terminationMessagePath: str('File whose content becomes the termination message.', {
    default: '/dev/termination-log',
  }),
  terminationMessagePolicy: oneOf(['FallbackToLogsOnError', 'File'], 'Where the termination message comes from.', {
    default: 'File',
  }),
  tty: bool('Gives the container a terminal.'),
  volumeDevices: listBy(['devicePath'], VolumeDevice, 'Block devices of the container.'),
  volumeMounts: listBy(['mountPath'], VolumeMount, 'Volumes of the container.'),
  workingDir: str('Working directory; default is that of the image.'),
};

const CONTAINER_RULES = { required: ['name'], complete: completeContainer, check: containerErrors };

export const Container = object('Container', 'One container of a pod.', CONTAINER_FIELDS, CONTAINER_RULES);

export const EphemeralContainer = object(
  'EphemeralContainer',
  'A container put into a running pod to look around; never restarted.',
  { ...CONTAINER_FIELDS, targetContainerName: str('Container whose processes it sees.') },
  CONTAINER_RULES,
);

function completeContainer(container: JsonObject): JsonObject {
  const { image, imagePullPolicy } = container;
  if (typeof image !== 'string' || (imagePullPolicy ?? '') !== '') return container;
  return withField(container, 'imagePullPolicy', tagOf(image) === 'latest' ? 'Always' : 'IfNotPresent');
}

/** The tag of an image reference: `latest` when it has neither tag nor digest, empty when it has only a digest. */
function tagOf(image: string): string {
  const at = image.indexOf('@');
  const name = at < 0 ? image : image.slice(0, at);
  const colon = name.indexOf(':', name.lastIndexOf('/') + 1);
  if (colon >= 0) return name.slice(colon + 1);
  return at < 0 ? 'latest' : '';
}

function containerErrors(container: JsonObject, path: string): FieldError[] {
  const { name, image } = container;
  return [
    ...(typeof name === 'string' && name !== '' ? dnsLabelErrors(name, `${path}.name`) : []),
    // Published as optional, for tools above pods that fill it in; refused all the same.
    ...((image ?? '') === '' ? [required(`${path}.image`)] : []),
  ];
}

function envErrors(variable: JsonObject, path: string): FieldError[] {
  const { value, valueFrom } = variable;
  if (!isObject(valueFrom)) return [];
  if ((value ?? '') !== '') {
    return [invalid(`${path}.valueFrom`, '', 'may not be specified when `value` is not empty')];
  }
  const sources = Object.keys(valueFrom).length;
  if (sources === 1) return [];
  const detail =
    sources === 0
      ? 'must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`'
      : 'may not have more than one field specified at a time';
  return [invalid(`${path}.valueFrom`, '', detail)];
}
