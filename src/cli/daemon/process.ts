import { access as canAccess } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { startHealthServer } from '../../controller/health.ts';
import { createLog, type Log } from '../../controller/log.ts';
import { createRegistry } from '../../controller/metrics.ts';
import { startHealthEndpoint } from '../../daemon/agent/health-endpoint.ts';
import { AgentMustRestart } from '../../daemon/certificates/controller.ts';
import { machineConfigDaemon } from '../../daemon/daemon.ts';
import type { Host } from '../../host/port.ts';
import { HttpKube } from '../../kube/client.ts';
import { systemClock } from '../../kube/clock.ts';
import { loadAccess } from '../../kube/kubeconfig.ts';
import { listenAddressFrom, logLevelFrom } from '../flag-values.ts';
import { untilStopped } from '../signals.ts';
import { UsageError } from '../usage-error.ts';

export interface DaemonFlags {
  readonly nodeName?: string | undefined;
  readonly root: string;
  readonly local: boolean;
  readonly kubeconfig?: string | undefined;
  readonly nodeKubeconfig?: string | undefined;
  readonly kubeletHealthzEnabled: boolean;
  readonly kubeletHealthzEndpoint: string;
  readonly metricsListen: string;
  readonly healthListen: string;
  readonly logLevel: string;
}

const NAME = 'machine-config-daemon';
const NODE_CREDENTIALS = 'var/lib/kubelet/kubeconfig';

/** Runs the agent of one node until SIGINT or SIGTERM; a file step under way is finished first. */
export async function runDaemon(flags: DaemonFlags): Promise<void> {
  const nodeName = flags.nodeName ?? process.env.NODE_NAME;
  if (!nodeName) throw new UsageError('--node-name or the environment variable NODE_NAME must name the node');
  if (!isAbsolute(flags.root)) throw new UsageError(`--root must be an absolute path, found "${flags.root}"`);
  const metricsAt = listenAddressFrom('--metrics-listen', flags.metricsListen);
  const healthAt = listenAddressFrom('--health-listen', flags.healthListen);
  const log = createLog({ name: NAME, level: logLevelFrom(flags.logLevel) });
  const stop = new AbortController();
  void untilStopped().then(() => {
    log.info({}, 'told to stop');
    stop.abort(new Error('the agent is told to stop'));
  });
  const kube = await connect(flags.kubeconfig, log);
  const nodeKube = await connect(await nodeCredentials(flags), log);
  const registry = createRegistry();
  // Open from the start: a long first update is no reason to be killed (spec 60, D-21).
  const health = await startHealthEndpoint(healthAt);
  const metrics = await startHealthServer({ clock: systemClock, metrics: registry, ...metricsAt });
  log.info({ health: health.url, metrics: `${metrics.url}/metrics` }, 'serving health and metrics');
  try {
    const daemon = machineConfigDaemon({
      kube,
      nodeKube,
      nodeName,
      host: await hostOf(flags),
      clock: systemClock,
      log,
      registry,
      atRest: giveMemoryBack,
      kubeletHealthz: flags.kubeletHealthzEnabled ? flags.kubeletHealthzEndpoint : undefined,
    });
    await daemon.run(stop.signal);
  } catch (error) {
    if (!(error instanceof AgentMustRestart)) throw error;
    log.warn({ why: error.message }, 'ending to be started again');
    process.exitCode = error.exitCode;
  } finally {
    await Promise.all([health.stop(), metrics.stop(), kube.close(), nodeKube.close()]);
  }
}

async function connect(path: string | undefined, log: Log): Promise<HttpKube> {
  const access = await loadAccess({ path, onError: error => log.warn({ err: error }, 'credentials not taken') }).catch(
    (error: Error) => {
      throw new UsageError(error.message);
    },
  );
  return new HttpKube(access, { fieldManager: NAME, onWarning: text => log.warn({ text }, 'the API warns') });
}

/** Whose credentials write the own Node: the kubelet's, unless somebody says otherwise (spec 60, 1.4). */
async function nodeCredentials({ nodeKubeconfig, kubeconfig, root }: DaemonFlags): Promise<string | undefined> {
  if (nodeKubeconfig !== undefined) return nodeKubeconfig;
  if (kubeconfig !== undefined) return kubeconfig;
  const ofKubelet = join(root, NODE_CREDENTIALS);
  return canAccess(ofKubelet).then(
    () => ofKubelet,
    () => undefined,
  );
}

async function hostOf({ root, local }: DaemonFlags): Promise<Host> {
  if (local) return (await import('../../host/local.ts')).localHost({ root });
  return (await import('../../host/linux.ts')).linuxHost({ root });
}

const REST_AFTER_MS = 2000;

/** What the last update left in memory goes back to the machine. */
function giveMemoryBack(): void {
  setTimeout(() => void globalThis.gc?.({ type: 'major', execution: 'async' }), REST_AFTER_MS).unref();
}
