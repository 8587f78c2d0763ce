import { isObject, withField } from './json.ts';
import type { JsonObject } from './schema.ts';

/** The old and the new name of the service account are kept equal. */
export function completePodSpec(spec: JsonObject): JsonObject {
  const { serviceAccount, serviceAccountName } = spec;
  const name = (serviceAccountName ?? '') === '' ? serviceAccount : serviceAccountName;
  if (typeof name !== 'string' || name === '') return spec;
  const completed = serviceAccountName === name ? spec : withField(spec, 'serviceAccountName', name);
  return serviceAccount === name ? completed : withField(completed, 'serviceAccount', name);
}

/** Defaults that pods get and pod templates do not. */
export function completePod(pod: JsonObject): JsonObject {
  const { spec } = pod;
  if (!isObject(spec)) return pod;
  let completed = spec;
  for (const field of ['containers', 'initContainers']) {
    const containers = completed[field];
    if (!Array.isArray(containers)) continue;
    const after = (containers as unknown[]).map(container =>
      isObject(container) ? completeContainer(container, spec['hostNetwork'] === true) : container,
    );
    if (after.some((container, index) => container !== containers[index]))
      completed = withField(completed, field, after);
  }
  if (completed['enableServiceLinks'] === undefined) completed = withField(completed, 'enableServiceLinks', true);
  return completed === spec ? pod : withField(pod, 'spec', completed);
}

function completeContainer(container: JsonObject, hostNetwork: boolean): JsonObject {
  const withRequests = requestsFromLimits(container);
  return hostNetwork ? hostPorts(withRequests) : withRequests;
}

function requestsFromLimits(container: JsonObject): JsonObject {
  const { resources } = container;
  if (!isObject(resources) || !isObject(resources['limits'])) return container;
  const { limits } = resources;
  const requests = isObject(resources['requests']) ? resources['requests'] : {};
  if (Object.keys(limits).every(name => Object.hasOwn(requests, name))) return container;
  return withField(container, 'resources', withField(resources, 'requests', { ...limits, ...requests }));
}

/** On the network of the host, the port of the container is the port of the host. */
function hostPorts(container: JsonObject): JsonObject {
  const { ports } = container;
  if (!Array.isArray(ports)) return container;
  const missing = (port: unknown): port is JsonObject =>
    isObject(port) && !port['hostPort'] && port['containerPort'] !== undefined;
  if (!ports.some(missing)) return container;
  const after = (ports as unknown[]).map(port =>
    missing(port) ? withField(port, 'hostPort', port['containerPort']) : port,
  );
  return withField(container, 'ports', after);
}
