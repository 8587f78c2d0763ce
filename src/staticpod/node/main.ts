import { writeFileSync } from 'node:fs';
import type { ObjectReference, Pod } from 'kubernetes-types/core/v1.d.ts';
import { errorText } from '../../controller/aggregate-error.ts';
import { createLog, type Log } from '../../controller/log.ts';
import { type Access, changedAccess } from '../../kube/access.ts';
import { HttpKube } from '../../kube/client.ts';
import { systemClock } from '../../kube/clock.ts';
import { seconds } from '../../kube/duration.ts';
import { SINGLETON_CORRELATION } from '../../kube/event-correlation.ts';
import { EventWriter } from '../../kube/event-writer.ts';
import { inClusterAccess, isInCluster } from '../../kube/in-cluster.ts';
import { findInvolvedObject } from '../../kube/involved-object.ts';
import { loadAccess } from '../../kube/kubeconfig.ts';
import type { Kube } from '../../kube/port.ts';
import type { Resource } from '../../kube/resource.ts';
import { unloadable } from '../loadable.ts';
import { parseCertSyncerOptions, runCertSyncer, type UnrevisionedLists } from './cert-syncer.ts';
import { systemFiles } from './files.ts';
import { runInstaller } from './installer.ts';
import { parseInstallerOptions } from './installer-options.ts';
import { logFile } from './log-file.ts';
import { PathMap } from './path-map.ts';
import { promoteNode, type StaticPodOperator } from './promote.ts';
import { parsePruneOptions, runPrune } from './prune.ts';
import { parseStartupMonitorOptions, type Readiness, runStartupMonitor } from './startup-monitor.ts';
import { onThisNode } from './this-node.ts';
import { systemLock } from './writers-lock.ts';

/** The environment of a process. */
export type Env = Readonly<Record<string, string | undefined>>;

const REQUEST_TIMEOUT_MS = seconds(14);
const TERMINATION_LOG = '/dev/termination-log';
const LONGEST_TERMINATION_MESSAGE = 4096;

/** `rotunda installer`. Resolves with the exit code. */
export function installerMain(argv: readonly string[], env: Env, mutatePod?: (pod: Pod) => Pod): Promise<number> {
  return asProgram('installer', env, async (log, signal) => {
    const options = parseInstallerOptions(argv, env);
    const client = await connect(options.kubeconfig, env, log);
    try {
      const { reference, error } = await findInvolvedObject(client.kube, options.namespace, env.POD_NAME);
      if (error !== undefined) log.warn({ err: error }, 'events will be about the namespace');
      const events = client.events.recorder('static-pod-installer', reference);
      const deps = {
        kube: client.kube,
        files: systemFiles(),
        clock: systemClock,
        log,
        events,
        lock: systemLock,
        mutatePod,
        contentCheck: unloadable,
        signal,
      };
      await runInstaller(options, deps);
    } finally {
      await client.close();
    }
  });
}

/** `rotunda prune`. */
export function pruneMain(argv: readonly string[], env: Env): Promise<number> {
  return asProgram('prune', env, log =>
    runPrune(parsePruneOptions(argv), { files: systemFiles(), clock: systemClock, log }),
  );
}

/** `rotunda cert-syncer`, with the lists of the operator whose static pod it is part of. */
export function certSyncerMain(argv: readonly string[], env: Env, lists: UnrevisionedLists): Promise<number> {
  return asProgram('cert-syncer', env, async (log, signal) => {
    const options = parseCertSyncerOptions(argv, env, lists);
    const client = await connect(options.kubeconfig, env, log, options.tlsServerName);
    try {
      const events = client.events.recorder('cert-syncer', ownPod(options.namespace, env));
      const deps = { kube: client.kube, files: systemFiles(), lock: systemLock, clock: systemClock, log, events };
      const why = await runCertSyncer(options, deps, signal);
      log.info({ why }, 'ending');
    } finally {
      await client.close();
    }
  });
}

/** What an operator brings to the startup monitor. */
export interface MonitoredOperand {
  readonly operator: Resource<StaticPodOperator>;
  isReady(context: { kube: Kube; nodeName: string; revision: number; signal: AbortSignal }): Promise<Readiness>;
}

/** `rotunda startup-monitor`. When it is done it waits to be stopped: its manifest is gone. */
export function startupMonitorMain(argv: readonly string[], env: Env, operand: MonitoredOperand): Promise<number> {
  return asProgram('startup-monitor', env, async (stdoutLog, signal) => {
    const options = parseStartupMonitorOptions(argv);
    const { nodeName, logFilePath } = options;
    const log =
      logFilePath === undefined
        ? stdoutLog
        : createLog({ name: 'startup-monitor', destination: logFile(logFilePath, systemClock) });
    const client = await connect(options.kubeconfig, env, log);
    const { kube } = client;
    try {
      const deps = {
        files: systemFiles(),
        clock: systemClock,
        log,
        isReady: (revision: number, until: AbortSignal) => operand.isReady({ kube, nodeName, revision, signal: until }),
        promote: (node: string, revision: number) => promoteNode(kube, operand.operator, node, revision, systemClock),
        lock: systemLock,
      };
      await runStartupMonitor(options, deps, signal);
      await new Promise<void>(resolve => {
        if (signal.aborted) resolve();
        // Nothing else keeps the process alive.
        const waiting = setInterval(() => {}, seconds(3600));
        signal.addEventListener('abort', () => resolve(clearInterval(waiting)), { once: true });
      });
    } finally {
      await client.close();
    }
  });
}

/** Runs a program until it ends or the process is told to; an error becomes the last line and the termination message. */
export async function asProgram(
  name: string,
  env: Env,
  run: (log: Log, signal: AbortSignal) => Promise<void>,
): Promise<number> {
  const log = createLog({ name });
  const stop = new AbortController();
  const onSignal = (signal: NodeJS.Signals) => {
    log.info({ signal }, 'told to stop');
    stop.abort(new Error(`stopped by ${signal}`));
  };
  process.on('SIGTERM', onSignal);
  process.on('SIGINT', onSignal);
  try {
    await run(log, stop.signal);
    return 0;
  } catch (error) {
    log.error({ err: error }, `${name} failed`);
    leaveTerminationMessage(errorText(error), env);
    return 1;
  } finally {
    process.off('SIGTERM', onSignal);
    process.off('SIGINT', onSignal);
  }
}

export interface NodeClient {
  readonly kube: Kube;
  readonly events: EventWriter;
  close(): Promise<void>;
}

export async function connect(
  kubeconfig: string | undefined,
  env: Env,
  log: Log,
  tlsServerName?: string,
): Promise<NodeClient> {
  const access = await findAccess(kubeconfig, env);
  const kube = new HttpKube(tlsServerName === undefined ? access : askingFor(access, tlsServerName), {
    requestTimeoutMs: REQUEST_TIMEOUT_MS,
  });
  const onError = (error: unknown) => log.warn({ err: error }, 'an event could not be written');
  const events = new EventWriter(kube, { correlation: SINGLETON_CORRELATION, host: env.NODE_NAME, onError });
  return {
    kube,
    events,
    async close() {
      await events.stop();
      await kube.close();
    },
  };
}

/** A local node with an API of its own says where that is; elsewhere the flag does, or the pod's service account. */
async function findAccess(kubeconfig: string | undefined, env: Env): Promise<Access> {
  const path = env.ROTUNDA_KUBECONFIG || kubeconfig;
  if (path === undefined && isInCluster(env)) {
    const access = await inClusterAccess({ env, directory: env.ROTUNDA_SERVICE_ACCOUNT_DIR || undefined });
    // On a local node the service has no address of its own; who answers still has to prove that it is the service.
    return env.ROTUNDA_API_SERVER_NAME ? askingFor(access, env.ROTUNDA_API_SERVER_NAME) : access;
  }
  const mounts = PathMap.fromEnv(env);
  return reaching(await loadAccess({ env, path, placeOf: file => mounts.outside(file) }), env);
}

/** The same access with `localhost` as this node, which still has to prove that it is `localhost`. */
function reaching(access: Access, env: Env): Access {
  return changedAccess(access, connection => {
    const { server, tls } = connection;
    const here = onThisNode(server.href, env);
    if (here === server.href) return connection;
    return { ...connection, server: new URL(here), tls: { ...tls, serverName: tls.serverName ?? server.hostname } };
  });
}

/** The same access, expecting the server to prove another name (spec 30, section 11). */
function askingFor(access: Access, serverName: string): Access {
  return changedAccess(access, connection => ({ ...connection, tls: { ...connection.tls, serverName } }));
}

export function ownPod(namespace: string, env: Env): ObjectReference {
  const { POD_NAME: name, POD_NAMESPACE: podNamespace = namespace } = env;
  if (name) return { apiVersion: 'v1', kind: 'Pod', namespace: podNamespace, name };
  return { apiVersion: 'v1', kind: 'Namespace', name: namespace, namespace };
}

/** The operator shows this text to people (spec 30, 9.6.5 i); without the file the last log lines have to do. */
function leaveTerminationMessage(text: string, env: Env): void {
  try {
    const path = env.ROTUNDA_TERMINATION_LOG || TERMINATION_LOG;
    writeFileSync(path, text.slice(0, LONGEST_TERMINATION_MESSAGE), { flag: 'r+' });
  } catch {
    // Not in a container.
  }
}
