import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Api, startApi } from '../api/api.ts';
import { type Log, silentLog } from '../controller/log.ts';
import { systemClock } from '../kube/clock.ts';
import { formatGoDuration, seconds } from '../kube/duration.ts';
import { SINGLETON_CORRELATION } from '../kube/event-correlation.ts';
import { EventWriter } from '../kube/event-writer.ts';
import type { Kube } from '../kube/port.ts';
import { VERSION } from '../kube/version.ts';
import { OPERATOR_NAMESPACE } from '../kube-apiserver/namespaces.ts';
import { runKubeApiserverOperator } from '../kube-apiserver/operator.ts';
import type { OperandProgram } from '../kube-apiserver/target-config/controller.ts';
import { type KeyAlgorithm, systemKeys } from '../pki/keys.ts';
import { nodeAddress } from './addresses.ts';
import { provideClusterInputs } from './cluster-inputs.ts';
import { rolledOut } from './cluster-ready.ts';
import { applyDefinitions } from './definitions.ts';
import { LocalNode } from './node.ts';
import { localPodLogs } from './pod-logs.ts';
import type { ProgramOptions } from './programs.ts';
import { engineTokens } from './tokens.ts';

export interface LocalClusterOptions {
  /** Everything is below it; a start with the same directory goes on where the last one ended. */
  readonly dir: string;
  readonly controlPlane?: number | undefined;
  readonly workers?: number | undefined;
  /** How long a day of rotation lasts. */
  readonly dayMs?: number | undefined;
  /** 0 takes the one of the last start, or else a free one. */
  readonly apiPort?: number | undefined;
  readonly keyAlgorithm?: KeyAlgorithm | undefined;
  readonly programs?: ProgramOptions | undefined;
  /** How long an installer waits for writes of others to settle. */
  readonly settleMs?: number | undefined;
  /** How long servers must have been ready before the next node is touched. */
  readonly minReadyMs?: number | undefined;
  readonly log?: Log | undefined;
}

export interface LocalCluster {
  readonly api: Api;
  readonly kube: Kube;
  readonly kubeconfigPath: string;
  readonly nodes: readonly LocalNode[];
  readonly controlPlane: readonly LocalNode[];
  /** Resolves when every control-plane node serves the latest revision; rejects when the cluster is closed before. */
  ready(): Promise<void>;
  /** Resolves when the operators have ended; rejects when one of them gave up. */
  readonly ended: Promise<void>;
  /** Ends operators, pods, nodes and the API, in this order. */
  close(): Promise<void>;
}

const DEFAULTS = { controlPlane: 3, workers: 2, apiPort: 0, settleMs: seconds(1), minReadyMs: seconds(5) } as const;
const MOST_CONTROL_PLANE = 9;
const MOST_WORKERS = 100;
/** Addresses of workers begin here, so that they stay when the control plane grows. */
const FIRST_WORKER_INDEX = 50;

/** Programs resolves these names to this program and to kube-apiserver or its stand-in. */
const PROGRAM: OperandProgram = {
  flavor: 'kubernetes',
  image: 'kube-apiserver',
  operatorImage: 'rotunda',
  operatorCommand: ['rotunda'],
  version: VERSION,
};

/** Starts a whole cluster on this machine: the API, its nodes, and the operators in this process. */
export async function startLocalCluster(options: LocalClusterOptions): Promise<LocalCluster> {
  const { controlPlane, workers, apiPort, settleMs, minReadyMs, log = silentLog } = withDefaults(options);
  const dir = resolve(options.dir);
  const stop = new AbortController();
  const nodes: LocalNode[] = [];
  const api = await startApi({
    dir,
    port: apiPort || lastPort(dir),
    podLogs: localPodLogs(() => nodes),
    onError: (what, err) => log.warn({ what, err }, 'the API failed at something'),
  });
  const { kube, kubeconfigPath = join(dir, 'kubeconfig') } = api;
  const writer = new EventWriter(kube, {
    correlation: SINGLETON_CORRELATION,
    onError: err => log.warn({ err }, 'an event could not be written'),
  });
  let ended = Promise.resolve();
  const close = async () => {
    stop.abort(new Error('the cluster is closed'));
    await ended.catch(() => {});
    await writer.stop();
    await Promise.all(nodes.map(node => node.stop()));
    await api.close();
  };
  try {
    const names = [...numbered('master', controlPlane, 0), ...numbered('worker', workers, FIRST_WORKER_INDEX)];
    const { hostname, port } = new URL(api.url);
    const env = {
      KUBERNETES_SERVICE_HOST: hostname,
      KUBERNETES_SERVICE_PORT: port,
      ROTUNDA_SETTLE_PAUSE: formatGoDuration(settleMs),
    };
    for (const { name, role, index } of names) {
      nodes.push(
        new LocalNode({
          name,
          root: join(dir, 'nodes', name),
          kube,
          address: nodeAddress(dir, index),
          labels: { [`node-role.kubernetes.io/${role}`]: '' },
          kubeconfig: kubeconfigPath,
          issueToken: engineTokens(api.engine),
          env,
          programs: options.programs,
          log,
        }),
      );
    }
    const masters = nodes.slice(0, controlPlane);
    await applyDefinitions(kube);
    await api.engine.idle();
    const addresses = new Map(masters.map(({ name, address }) => [name, address]));
    await provideClusterInputs({ kube, clock: systemClock, keys: systemKeys, controlPlane: addresses });
    for (const node of nodes) await node.start();
    const involved = { apiVersion: 'v1', kind: 'Namespace', name: OPERATOR_NAMESPACE, namespace: OPERATOR_NAMESPACE };
    const operator = {
      kube,
      clock: systemClock,
      keys: systemKeys,
      events: writer.recorder('kube-apiserver-operator', involved),
      log: log.child({ operator: 'kube-apiserver' }),
      program: PROGRAM,
      dayMs: options.dayMs,
      keyAlgorithm: options.keyAlgorithm,
      minReadyMs,
    };
    ended = runKubeApiserverOperator(operator, stop.signal);
    ended.catch(err => log.error({ err }, 'the kube-apiserver operator gave up'));
    const ready = () => rolledOut(kube, masters, stop.signal);
    return { api, kube, kubeconfigPath, nodes, controlPlane: masters, ready, ended, close };
  } catch (error) {
    await close();
    throw error;
  }
}

function withDefaults(options: LocalClusterOptions) {
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
  const all = { ...DEFAULTS, ...given } as typeof DEFAULTS &
    LocalClusterOptions &
    Record<keyof typeof DEFAULTS, number>;
  expectCount('controlPlane', all.controlPlane, 1, MOST_CONTROL_PLANE);
  expectCount('workers', all.workers, 0, MOST_WORKERS);
  return all;
}

function expectCount(what: string, found: number, least: number, most: number): void {
  if (Number.isInteger(found) && found >= least && found <= most) return;
  throw new RangeError(`expected ${what} from ${least} to ${most}, found ${found}`);
}

/** Programs that outlived a killed cluster know the API by its port. */
function lastPort(dir: string): number {
  const path = join(dir, 'kubeconfig');
  if (!existsSync(path)) return 0;
  return Number(/server: "?https:\/\/[^\s"]+:(\d+)/.exec(readFileSync(path, 'utf8'))?.[1] ?? 0);
}

function numbered(role: string, count: number, first: number): { name: string; role: string; index: number }[] {
  return Array.from({ length: count }, (_, number) => ({ name: `${role}-${number}`, role, index: first + number }));
}
