import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import type { PodLogOptions, PodLogs } from '../api/rest/core.ts';
import { KubeError } from '../kube/error.ts';
import { readLog } from './container-log.ts';
import type { HostedPod } from './hosted-pod.ts';
import type { PodRunner } from './pod-runner.ts';

/** What the output of pods is read from. */
export interface LogNode {
  readonly name: string;
  runner(namespace: string, name: string): PodRunner | undefined;
  hosted(namespace: string, name: string): HostedPod | undefined;
}

/** The output of the containers of these nodes, for `kubectl logs`. */
export function localPodLogs(nodes: () => Iterable<LogNode>): PodLogs {
  return {
    read(pod, container, options) {
      const nodeName = pod.spec?.nodeName ?? '';
      const node = [...nodes()].find(({ name }) => name === nodeName);
      if (node === undefined) throw new KubeError(500, 'InternalError', `node "${nodeName}" is not on this machine`);
      const { name = '', namespace = '' } = pod.metadata ?? {};
      const hosted = node.hosted(namespace, name);
      if (hosted !== undefined) return hostedLog(hosted, container, options);
      const runner = node.runner(namespace, name);
      if (runner === undefined) throw badRequest(`pod ${name} is not on node ${nodeName} yet`);
      return containerLog(runner, pod, container, options);
    },
  };
}

function hostedLog(pod: HostedPod, name: string, options: PodLogOptions): AsyncIterable<Uint8Array> {
  if (name !== pod.container) throw badRequest(`container ${name} is not valid for pod ${pod.key}`);
  if (options.previous) throw badRequest(`previous terminated container "${name}" in pod "${pod.key}" not found`);
  return output(pod.logPath, options, () => false);
}

function containerLog(runner: PodRunner, pod: Pod, name: string, options: PodLogOptions): AsyncIterable<Uint8Array> {
  const container = runner.container(name);
  const podName = pod.metadata?.name ?? '';
  if (container === undefined) throw badRequest(`container ${name} is not valid for pod ${podName}`);
  const { state, lastState, restartCount } = container.snapshot();
  if (options.previous && restartCount === 0) {
    throw badRequest(`previous terminated container "${name}" in pod "${podName}" not found`);
  }
  const isFirstStart = state.waiting !== undefined && lastState === undefined;
  if (isFirstStart && !options.previous) {
    const reason = state.waiting?.reason ?? 'ContainerCreating';
    throw badRequest(`container "${name}" in pod "${podName}" is waiting to start: ${reason}`);
  }
  const run = restartCount;
  const isOver = () => {
    const now = container.snapshot();
    return now.restartCount !== run || now.state.running === undefined;
  };
  return output(container.logPath(options.previous), options, isOver);
}

function output(path: string, options: PodLogOptions, isOver: () => boolean): AsyncIterable<Uint8Array> {
  const { follow, signal, sinceSeconds, sinceTime } = options;
  const since = sinceSeconds === undefined ? sinceTime : new Date(Date.now() - sinceSeconds * 1000);
  return readLog(path, {
    tailLines: options.tailLines,
    since,
    timestamps: options.timestamps,
    limitBytes: options.limitBytes,
    follow: follow && !options.previous ? { isOver, signal } : undefined,
  });
}

function badRequest(message: string): KubeError {
  return new KubeError(400, 'BadRequest', message);
}
