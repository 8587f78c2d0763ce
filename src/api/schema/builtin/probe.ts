import { int32, int64, list, oneOf, ref, str, strings, vocabulary } from '../dsl.ts';
import { type FieldError, required } from '../field-error.ts';
import { withField } from '../json.ts';
import type { JsonObject } from '../schema.ts';
import { IntOrString } from './meta.ts';

/** How the kubelet asks a container whether it is well, and tells it what happens. */

const { object } = vocabulary('io.k8s.api.core.v1', '', 'v1');

const ExecAction = object('ExecAction', 'Runs a command in the container.', {
  command: strings('The command and its arguments; no shell around it. Exit code 0 is success.'),
});

const HTTPHeader = object(
  'HTTPHeader',
  'A header of the request.',
  { name: str('Name of the header.'), value: str('Value of the header.') },
  { required: ['name'], zero: ['value'] },
);

const HTTPGetAction = object(
  'HTTPGetAction',
  'Sends an HTTP GET request.',
  {
    host: str('Host to connect to; default is the IP of the pod.'),
    httpHeaders: list(HTTPHeader, 'Headers of the request.'),
    path: str('Path of the request.', { default: '/' }),
    port: ref(IntOrString, 'Number or name of the port.'),
    scheme: oneOf(['HTTP', 'HTTPS'], 'Scheme of the request.', { default: 'HTTP' }),
  },
  { required: ['port'] },
);

const TCPSocketAction = object(
  'TCPSocketAction',
  'Opens a TCP connection.',
  {
    host: str('Host to connect to; default is the IP of the pod.'),
    port: ref(IntOrString, 'Number or name of the port.'),
  },
  { required: ['port'] },
);

const GRPCAction = object(
  'GRPCAction',
  'Calls the gRPC health service.',
  {
    port: int32('Number of the port.', { minimum: 1, maximum: 65535 }),
    service: str('Name of the service to ask about.', { default: '' }),
  },
  { required: ['port'] },
);

const SleepAction = object(
  'SleepAction',
  'Waits.',
  { seconds: int64('How long.', { minimum: 0 }) },
  { zero: ['seconds'] },
);

export const Probe = object(
  'Probe',
  'A check of the health of a container. Exactly one of `exec`, `grpc`, `httpGet` and `tcpSocket` says how.',
  {
    exec: ref(ExecAction, 'Checks by running a command.'),
    failureThreshold: int32('Failures in a row until the container counts as failed. Default 3.', { minimum: 0 }),
    grpc: ref(GRPCAction, 'Checks by a gRPC health call.'),
    httpGet: ref(HTTPGetAction, 'Checks by an HTTP request; 200 to 399 is success.'),
    initialDelaySeconds: int32('Seconds after the start until the first check.', { minimum: 0 }),
    periodSeconds: int32('Seconds between checks. Default 10.', { minimum: 0 }),
    successThreshold: int32('Successes in a row until the container counts as well again. Default 1.', { minimum: 0 }),
    tcpSocket: ref(TCPSocketAction, 'Checks by opening a connection.'),
    terminationGracePeriodSeconds: int64('Seconds to end in after a failure; default is that of the pod.', {
      minimum: 1,
    }),
    timeoutSeconds: int32('Seconds until a check counts as failed. Default 1.', { minimum: 0 }),
  },
  { complete: completeProbe, check: probeErrors },
);

const LifecycleHandler = object('LifecycleHandler', 'What to do at a point in the life of a container.', {
  exec: ref(ExecAction, 'Runs a command.'),
  httpGet: ref(HTTPGetAction, 'Sends an HTTP request.'),
  sleep: ref(SleepAction, 'Waits.'),
  tcpSocket: ref(TCPSocketAction, 'Kept for compatibility; does nothing.'),
});

export const Lifecycle = object('Lifecycle', 'What to do after the start and before the stop of a container.', {
  postStart: ref(LifecycleHandler, 'Right after the start; when it fails, the container is restarted.'),
  preStop: ref(LifecycleHandler, 'Before the stop; the grace period runs meanwhile.'),
  stopSignal: str('Signal that stops the container; default is that of the image.'),
});

/** Go cannot tell 0 from absent here, so 0 takes the default too. */
const PROBE_DEFAULTS = { timeoutSeconds: 1, periodSeconds: 10, successThreshold: 1, failureThreshold: 3 };

function completeProbe(probe: JsonObject): JsonObject {
  let completed = probe;
  for (const [field, value] of Object.entries(PROBE_DEFAULTS)) {
    if (!probe[field]) completed = withField(completed, field, value);
  }
  return completed;
}

const HANDLERS = ['exec', 'httpGet', 'tcpSocket', 'grpc'];

function probeErrors(probe: JsonObject, path: string): FieldError[] {
  const given = HANDLERS.filter(handler => probe[handler] !== undefined);
  if (given.length === 0) return [required(path, 'must specify a handler type')];
  return given.slice(1).map(handler => ({
    path: `${path}.${handler}`,
    reason: 'FieldValueForbidden',
    detail: 'may not specify more than 1 handler type',
  }));
}
