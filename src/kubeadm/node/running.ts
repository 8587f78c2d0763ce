import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import type { HostFiles } from '../../host/port.ts';
import { floorToMs, parseRfc3339 } from '../../kube/time.ts';
import { RESTART } from '../names.ts';
import { COMPONENTS, type Component, type RunningPod } from './sight.ts';

/** The static pods of a node by what the API shows of them: their mirror pods. */
export function runningPods(pods: readonly Pod[], nodeName: string): ReadonlyMap<Component, RunningPod> {
  return new Map(
    COMPONENTS.flatMap(component => {
      const pod = pods.find(({ metadata }) => metadata?.name === `${component}-${nodeName}`);
      const running = pod === undefined ? undefined : runningPod(pod);
      return running === undefined ? [] : [[component, running] as const];
    }),
  );
}

function runningPod({ metadata, spec, status }: Pod): RunningPod | undefined {
  const [container] = spec?.containers ?? [];
  const state = status?.containerStatuses?.find(({ name }) => name === container?.name);
  const startedAt = parseRfc3339(state?.state?.running?.startedAt ?? '');
  if (container === undefined || startedAt === undefined || metadata?.deletionTimestamp !== undefined) return undefined;
  return {
    startedAt: floorToMs(startedAt),
    restart: metadata?.annotations?.[RESTART],
    command: [...(container.command ?? []), ...(container.args ?? [])],
    isReady: (status?.conditions ?? []).some(({ type, status: value }) => type === 'Ready' && value === 'True'),
  };
}

const KUBELET = 'kubelet';
const LARGEST_FILE_BYTES = 1024 * 1024;
/** Of a tick in which the kernel tells the age of processes. */
const TICK_MS = 10;
/** In /proc/<pid>/stat, counted behind the name of the program. */
const START_TIME = 19;

/** When the kubelet's process began, as /proc of the host tells; undefined: there is none to be seen. */
export async function kubeletStartedAt(files: HostFiles): Promise<Date | undefined> {
  const read = async (path: string) => {
    try {
      return (await files.read(path, LARGEST_FILE_BYTES))?.toString('latin1');
    } catch {
      // It has ended since.
      return undefined;
    }
  };
  const bootSeconds = Number(/^btime (\d+)$/m.exec((await read('/proc/stat')) ?? '')?.[1] ?? Number.NaN);
  if (Number.isNaN(bootSeconds)) return undefined;
  for (const pid of ((await files.list('/proc')) ?? []).filter(name => /^\d+$/.test(name))) {
    if ((await read(`/proc/${pid}/comm`))?.trim() !== KUBELET) continue;
    const stat = (await read(`/proc/${pid}/stat`)) ?? '';
    const ticks = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[START_TIME]);
    if (Number.isFinite(ticks)) return new Date(bootSeconds * 1000 + ticks * TICK_MS);
  }
  return undefined;
}
