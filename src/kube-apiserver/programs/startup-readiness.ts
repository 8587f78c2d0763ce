import { Agent, get } from 'node:https';
import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { type Clock, sleep, systemClock } from '../../kube/clock.ts';
import { seconds } from '../../kube/duration.ts';
import { listAll } from '../../kube/list.ts';
import type { Kube } from '../../kube/port.ts';
import { PODS, type Resource } from '../../kube/resource.ts';
import type { MonitoredOperand } from '../../staticpod/node/main.ts';
import type { Readiness } from '../../staticpod/node/startup-monitor.ts';
import { onThisNode } from '../../staticpod/node/this-node.ts';
import { OPERAND_NAMESPACE } from '../namespaces.ts';
import { KUBE_API_SERVERS } from '../resources.ts';
import { API_PORT } from '../target-config/pod.ts';

const LOCAL_URL = `https://localhost:${API_PORT}`;

/** What the startup monitor has to know of kube-apiserver: `rotunda startup-monitor`. */
export const monitoredKubeApiserver: MonitoredOperand = {
  operator: KUBE_API_SERVERS as Resource<never>,
  isReady: context => kubeApiserverReadiness({ ...context, url: onThisNode(LOCAL_URL, process.env) }),
};

export interface ReadinessContext {
  readonly kube: Kube;
  readonly nodeName: string;
  readonly revision: number;
  readonly signal: AbortSignal;
  readonly url?: string | undefined;
  readonly clock?: Clock | undefined;
}

const ANSWER_LIMIT_MS = seconds(4);
/** Ready means ready several times in a row. */
const READY_TIMES = 3;
const READY_PAUSE_MS = seconds(5);

const READY: Readiness = { ready: true, reason: '', message: '' };

/**
 * Whether the server of this revision works (spec 20, 5.4): no older one answers in its place, it is healthy, stays ready, and the
 * kubelet says so too. The order matters: the first thing that is wrong is the reason that people will read.
 */
export async function kubeApiserverReadiness(context: ReadinessContext): Promise<Readiness> {
  const { signal, url = LOCAL_URL, clock = systemClock } = context;
  const agent = new Agent({ rejectUnauthorized: false });
  try {
    const steps: (() => Promise<Readiness>)[] = [
      // A list that fails may mean that the new server is not up yet; that shows in the next step.
      async () => podReadiness(await podsOf(context).catch(() => undefined), context, false),
      () => answers(new URL('/healthz/etcd', url), 'UnhealthyEtcd', agent, signal),
      () => answers(new URL('/healthz?verbose=true', url), 'Unhealthy', agent, signal),
      ...Array.from({ length: READY_TIMES }, (_, index) => async () => {
        if (index > 0) await sleep(clock, READY_PAUSE_MS, signal);
        return answers(new URL('/readyz?verbose=true', url), 'NotReady', agent, signal);
      }),
      async () => podReadiness(await podsOf(context), context, true),
    ];
    for (const step of steps) {
      signal.throwIfAborted();
      const outcome = await step();
      if (!outcome.ready) return outcome;
    }
    return READY;
  } finally {
    agent.destroy();
  }
}

async function podsOf({ kube, nodeName, signal }: ReadinessContext): Promise<Pod[]> {
  const { items } = await listAll(kube, PODS, {
    namespace: OPERAND_NAMESPACE,
    labelSelector: 'apiserver=true',
    signal,
  });
  return items.filter(({ spec }) => spec?.nodeName === nodeName);
}

/** Judges the mirror pod; `mustRun` also asks whether the kubelet finds it ready. */
export function podReadiness(
  pods: readonly Pod[] | undefined,
  { nodeName, revision }: Pick<ReadinessContext, 'nodeName' | 'revision'>,
  mustRun: boolean,
): Readiness {
  if (pods === undefined) return READY;
  const [pod, ...others] = pods;
  if (pod === undefined)
    return not('PodNotRunning', `waiting for kube-apiserver static pod for node ${nodeName} to show up`);
  const name = pod.metadata?.name ?? '';
  if (others.length > 0) {
    const names = pods.map(({ metadata }) => metadata?.name).join(' ');
    return not('PodListError', `multiple kube-apiserver static pods for node ${nodeName} found: ${names}`);
  }
  const label = pod.metadata?.labels?.revision ?? '';
  if (!/^\d+$/.test(label))
    return not('InvalidPod', `invalid revision label on static pod ${name}: ${JSON.stringify(label)}`);
  if (Number(label) !== revision) {
    return not(
      'UnexpectedRevision',
      `waiting for kube-apiserver static pod ${name} of revision ${revision}, found ${label}`,
    );
  }
  if (!mustRun) return READY;
  const { phase, conditions = [] } = pod.status ?? {};
  const isReady = phase === 'Running' && conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
  return isReady
    ? READY
    : not('PodNotReady', `waiting for kube-apiserver static pod ${name} to be ready: ${phase ?? 'Unknown'}`);
}

/** 200 is good; whatever else comes back is told. */
function answers(url: URL, reason: string, agent: Agent, signal: AbortSignal): Promise<Readiness> {
  return new Promise(resolve => {
    const request = get(url, { agent, signal, timeout: ANSWER_LIMIT_MS }, response => {
      const parts: string[] = [];
      response.setEncoding('utf8');
      response.on('data', (part: string) => {
        if (parts.join('').length < LONGEST_MESSAGE) parts.push(part);
      });
      response.on('error', error => resolve(not(`${reason}Error`, error.message)));
      response.on('end', () =>
        resolve(response.statusCode === 200 ? READY : not(reason, parts.join('').slice(0, LONGEST_MESSAGE))),
      );
    });
    request.on('timeout', () => request.destroy(new Error(`no answer within ${ANSWER_LIMIT_MS} ms`)));
    request.on('error', error => resolve(not(`${reason}Error`, error.message)));
  });
}

const LONGEST_MESSAGE = 2048;

function not(reason: string, message: string): Readiness {
  return { ready: false, reason, message };
}
