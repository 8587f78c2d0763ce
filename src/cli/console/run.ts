import { HttpKube } from '../../kube/client.ts';
import { loadAccess } from '../../kube/kubeconfig.ts';
import { withCluster } from '../cluster.ts';
import { requestTimeoutMs } from '../cluster-flags.ts';
import { untilStopped } from '../signals.ts';
import { UsageError } from '../usage-error.ts';
import type { ConsoleFlags } from './command.ts';
import { isLoopback } from './http.ts';
import { clusterProber } from './prober.ts';
import { startConsole } from './server.ts';
import type { TlsFiles } from './tls.ts';

/** Serves the console of the cluster the flags name until it is told to stop. */
export async function runConsole(options: {
  readonly flags: ConsoleFlags;
  readonly port: number;
  readonly tls: TlsFiles | undefined;
}): Promise<void> {
  const { flags, port, tls } = options;
  const { host, hostname: hostnames } = flags;
  if (tls === undefined && !isLoopback(host)) {
    throw new UsageError(`--host ${host} can be reached by others: give --tls-cert and --tls-key`);
  }
  // Says in one line what is wrong with a cluster that cannot be reached.
  await withCluster(flags, ({ kube }) => kube.request('GET', '/version'));
  const access = await loadAccess({ path: flags.kubeconfig, context: flags.context });
  const kube = new HttpKube(access, { fieldManager: 'rotunda-console', requestTimeoutMs: requestTimeoutMs(flags) });
  const prober = flags.probe ? await clusterProber(kube) : undefined;
  prober?.start();
  try {
    const served = await startConsole({ access, kube, host, port, tls, hostnames, prober }).catch(asUsageError);
    const stopped = untilStopped();
    const tell = () => process.stdout.write(`ready: ${served.url}, log in once with ${served.loginUrl()}\n`);
    tell();
    const isAsking = process.stdin.isTTY;
    if (isAsking) {
      process.stderr.write('press Enter for another link, Ctrl-C to stop\n');
      process.stdin.on('data', tell);
    }
    await stopped;
    if (isAsking) process.stdin.off('data', tell).pause();
    await served.close();
  } finally {
    await prober?.stop();
    await kube.close();
  }
}

const INPUT_FAULTS = new Set(['EADDRINUSE', 'EADDRNOTAVAIL', 'EACCES', 'ENOENT', 'ENOTFOUND', 'EISDIR']);

function asUsageError(error: unknown): never {
  const { code = '', message } = error as NodeJS.ErrnoException;
  if (INPUT_FAULTS.has(code) || code.startsWith('ERR_OSSL')) throw new UsageError(message);
  throw error;
}
