import { Agent, request } from 'undici';
import { errorText } from '../../controller/aggregate-error.ts';
import type { Log } from '../../controller/log.ts';
import { seconds } from '../../kube/duration.ts';
import { parseFlags } from '../../staticpod/node/flags.ts';
import { isSameMaterial, materialFromFiles, type TlsMaterial } from '../client/material.ts';
import { type ReloadingServer, type ServingFiles, startReloadingServer } from './reloading-server.ts';

export interface MetricsProxyOptions {
  /** Where etcd shows its metrics, for holders of a certificate of its own signer. */
  readonly endpoint: string;
  /** Where scrapers ask, with a certificate of the metrics signer; `https://<address>:<port>`. */
  readonly metricsAddress: string;
  readonly serving: ServingFiles;
  readonly client: { readonly ca: string; readonly cert: string; readonly key: string };
}

/** Named as those of `etcd grpc-proxy start`, which stands here in OpenShift; etcd's own refuses our certificates for their common name. */
const FLAGS = {
  endpoints: 'text',
  'metrics-addr': 'text',
  cert: 'text',
  key: 'text',
  cacert: 'text',
  'cert-file': 'text',
  'key-file': 'text',
  'trusted-ca-file': 'text',
} as const;

/** Reads the command line of `rotunda etcd-metrics-proxy`. */
export function parseMetricsProxyOptions(argv: readonly string[]): MetricsProxyOptions {
  const flags = parseFlags(argv, FLAGS);
  const required = (name: keyof typeof FLAGS): string => {
    const value = flags[name];
    if (!value) throw new Error(`--${name} is required`);
    return value;
  };
  return {
    endpoint: required('endpoints'),
    metricsAddress: required('metrics-addr'),
    serving: { cert: required('cert-file'), key: required('key-file'), clientCa: required('trusted-ca-file') },
    client: { ca: required('cacert'), cert: required('cert'), key: required('key') },
  };
}

const SCRAPE_LIMIT_MS = seconds(10);
const LARGEST_METRICS_BYTES = 16 * 1024 * 1024;

/** Hands etcd's metrics to scrapers that only the metrics signer vouches for (spec 40, P-4). */
export async function startMetricsProxy(
  options: MetricsProxyOptions,
  log: Pick<Log, 'warn' | 'info'>,
): Promise<ReloadingServer> {
  const source = materialFromFiles(options.client);
  let material: TlsMaterial | undefined;
  let agent: Agent | undefined;
  const currentAgent = async () => {
    const next = await source();
    if (agent !== undefined && isSameMaterial(material, next)) return agent;
    agent?.close().catch(() => {});
    material = next;
    agent = new Agent({
      allowH2: false,
      connections: 2,
      maxResponseSize: LARGEST_METRICS_BYTES,
      connect: { ...next, timeout: SCRAPE_LIMIT_MS },
    });
    return agent;
  };
  const scrape = async () => {
    const { statusCode, headers, body } = await request(new URL('/metrics', options.endpoint), {
      dispatcher: await currentAgent(),
      signal: AbortSignal.timeout(SCRAPE_LIMIT_MS),
    });
    return { statusCode, contentType: String(headers['content-type'] ?? 'text/plain'), text: await body.text() };
  };
  const { hostname, port } = new URL(options.metricsAddress);
  const server = await startReloadingServer(
    { address: hostname, port: Number(port) },
    options.serving,
    ({ url = '/', method }, response) => {
      const [pathname] = url.split('?', 1);
      if (pathname !== '/metrics' || method !== 'GET') {
        response.writeHead(404).end('not found\n');
        return;
      }
      scrape().then(
        ({ statusCode, contentType, text }) =>
          response.writeHead(statusCode, { 'content-type': contentType }).end(text),
        (error: unknown) => {
          log.warn({ why: errorText(error) }, 'etcd does not show its metrics');
          response.writeHead(502).end('etcd does not answer\n');
        },
      );
    },
    log,
  );
  return {
    url: server.url,
    async stop() {
      await server.stop();
      await agent?.close().catch(() => {});
    },
  };
}
