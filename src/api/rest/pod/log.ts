import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { KubeError } from '../../../kube/error.ts';
import { badRequest } from '../../status.ts';
import type { Call, Core, PodLogOptions } from '../core.ts';
import { get } from '../read.ts';

/** The output of a container. */
export async function readLog(
  core: Core,
  call: Call,
  container: string,
  options: PodLogOptions,
): Promise<AsyncIterable<Uint8Array>> {
  const pod = get(core, call).object as Pod;
  const chosen = containerOf(pod, container);
  if (!pod.spec?.nodeName) return nothing();
  if (core.podLogs === undefined) {
    throw new KubeError(500, 'InternalError', `Internal error occurred: node "${pod.spec.nodeName}" offers no logs`);
  }
  return core.podLogs.read(pod, chosen, options);
}

function containerOf({ metadata, spec }: Pod, asked: string): string {
  const name = metadata?.name ?? '';
  const all = [...(spec?.initContainers ?? []), ...(spec?.containers ?? []), ...(spec?.ephemeralContainers ?? [])];
  const names = all.map(container => container.name);
  if (asked !== '') {
    if (!names.includes(asked)) throw badRequest(`container ${asked} is not valid for pod ${name}`);
    return asked;
  }
  const only = spec?.containers?.length === 1 ? spec.containers[0]?.name : undefined;
  if (only !== undefined) return only;
  throw badRequest(`a container name must be specified for pod ${name}, choose one of: [${names.join(' ')}]`);
}

// eslint-disable-next-line require-yield
async function* nothing(): AsyncGenerator<Uint8Array> {}
