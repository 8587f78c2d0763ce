import { hostname } from 'node:os';
import { isAbsolute } from 'node:path';
import { startHealthServer } from '../../controller/health.ts';
import { createLog } from '../../controller/log.ts';
import { controllerMetrics, createRegistry } from '../../controller/metrics.ts';
import { linuxHost } from '../../host/linux.ts';
import type { Access } from '../../kube/access.ts';
import { HttpKube } from '../../kube/client.ts';
import { systemClock } from '../../kube/clock.ts';
import { SINGLETON_CORRELATION } from '../../kube/event-correlation.ts';
import { EventWriter } from '../../kube/event-writer.ts';
import { loadAccess } from '../../kube/kubeconfig.ts';
import { nodeAccess, POD_TOKEN } from '../../kubeadm/node/access.ts';
import { KubeadmAgent } from '../../kubeadm/node/agent.ts';
import { askServer } from '../../kubeadm/node/ask.ts';
import { placesOf } from '../../kubeadm/node/places.ts';
import { systemKeys } from '../../pki/keys.ts';
import { listenAddressFrom, logLevelFrom } from '../flag-values.ts';
import { untilStopped } from '../signals.ts';
import { UsageError } from '../usage-error.ts';

export interface KubeadmAgentFlags {
  readonly nodeName?: string | undefined;
  readonly root: string;
  readonly certificatesDir: string;
  readonly kubeconfig?: string | undefined;
  readonly listen: string;
  readonly logLevel: string;
}

const NAME = 'kubeadm-agent';

/** Runs the agent of one node until SIGINT or SIGTERM; a step under way is finished first. */
export async function runKubeadmAgent(flags: KubeadmAgentFlags): Promise<void> {
  const nodeName = flags.nodeName ?? (process.env.NODE_NAME || hostname().toLowerCase());
  requireAbsolute('--root', flags.root);
  requireAbsolute('--certificates-dir', flags.certificatesDir);
  const { host: address, port } = listenAddressFrom('--listen', flags.listen);
  const log = createLog({ name: NAME, level: logLevelFrom(flags.logLevel) });
  const stop = new AbortController();
  void untilStopped().then(() => {
    log.info({}, 'told to stop');
    stop.abort(new Error('the agent is told to stop'));
  });
  const host = await linuxHost({ root: flags.root });
  const onError = (error: Error) => log.warn({ err: error }, 'credentials not taken');
  const connect = (access: Access) =>
    new HttpKube(access, { fieldManager: NAME, onWarning: text => log.warn({ text }, 'the API warns') });
  const kube = connect(
    flags.kubeconfig === undefined
      ? nodeAccess({ files: host.files, tokenFile: POD_TOKEN, onError })
      : await loadAccess({ path: flags.kubeconfig, onError }).catch((error: Error) => {
          throw new UsageError(error.message);
        }),
  );
  const nodeKube = connect(nodeAccess({ files: host.files, onError }));
  const registry = createRegistry();
  const health = await startHealthServer({ clock: systemClock, metrics: registry, host: address, port });
  log.info({ url: health.url, node: nodeName }, 'serving health and metrics');
  const writer = new EventWriter(kube, {
    correlation: SINGLETON_CORRELATION,
    onError: error => log.warn({ err: error }, 'an event could not be written'),
  });
  const involved = { kind: 'Node', apiVersion: 'v1', name: nodeName, uid: nodeName };
  try {
    const agent = new KubeadmAgent({
      kube,
      nodeKube,
      host,
      nodeName,
      places: placesOf(flags.certificatesDir),
      keys: systemKeys,
      ask: askServer,
      clock: systemClock,
      log,
      events: writer.recorder(NAME, involved),
      metrics: controllerMetrics(registry)('KubeadmAgent'),
    });
    await agent.run(stop.signal);
  } finally {
    await writer.stop();
    await Promise.all([health.stop(), kube.close(), nodeKube.close()]);
  }
}

function requireAbsolute(flag: string, path: string): void {
  const isClean = isAbsolute(path) && (path === '/' || (!path.endsWith('/') && !/\/(\.{0,2})(\/|$)/.test(path)));
  if (!isClean) throw new UsageError(`${flag} must be an absolute path without "." and "..", found "${path}"`);
}
