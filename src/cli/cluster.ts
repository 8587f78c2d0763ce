import { X509Certificate } from 'node:crypto';
import type { TlsMaterial } from '../kube/access.ts';
import { HttpKube } from '../kube/client.ts';
import { ConnectionError, KubeError } from '../kube/error.ts';
import { loadAccess } from '../kube/kubeconfig.ts';
import { type ClusterFlags, requestTimeoutMs } from './cluster-flags.ts';
import { UsageError } from './usage-error.ts';

/** A cluster that commands talk to. */
export interface Cluster {
  readonly kube: HttpKube;
  readonly server: string;
  /** What the kubeconfig has besides the key, and the name that the server's certificate has to be good for. */
  readonly shown: Pick<TlsMaterial, 'ca' | 'certificate' | 'serverName'>;
  /** The namespace of the context. */
  readonly namespace: string;
}

/** Runs `work` against the cluster the flags name; whatever goes wrong becomes one line that says what to do. */
export async function withCluster<T>(flags: ClusterFlags, work: (cluster: Cluster) => Promise<T>): Promise<T> {
  const timeoutMs = requestTimeoutMs(flags);
  const access = await loadAccess({ path: flags.kubeconfig, context: flags.context }).catch(asUsageError);
  const { server, tls } = await access.connection().catch(asUsageError);
  const kube = new HttpKube(access, { fieldManager: 'rotunda', requestTimeoutMs: timeoutMs });
  try {
    const { ca, certificate, serverName } = tls;
    const shown = { ca, certificate, serverName };
    return await work({ kube, server: server.href, shown, namespace: access.namespace });
  } catch (error) {
    throw clusterError(error, server.href, tls.certificate, new Date());
  } finally {
    await kube.close();
  }
}

function asUsageError(error: Error): never {
  throw new UsageError(error.message);
}

/** The failure of a request in words for a person; errors of other kinds stay what they are. */
export function clusterError(error: unknown, server: string, certificate: string | undefined, now: Date): unknown {
  const expired = expiryOf(certificate, now);
  if (error instanceof ConnectionError) {
    if (expired !== undefined) return new Error(`cannot talk to the cluster at ${server}: ${expired}`);
    return new Error(`cannot reach the cluster at ${server}: ${error.message} (${error.code})`);
  }
  if (!(error instanceof KubeError)) return error;
  if (error.code === 401) {
    return new Error(`the cluster at ${server} does not accept these credentials: ${expired ?? 'log in again'}`);
  }
  if (error.code === 403) return new Error(`not allowed: ${error.message}`);
  return error;
}

function expiryOf(certificate: string | undefined, now: Date): string | undefined {
  if (certificate === undefined) return undefined;
  try {
    const { validToDate } = new X509Certificate(certificate);
    if (validToDate >= now) return undefined;
    return `the client certificate of the kubeconfig expired at ${validToDate.toISOString()}`;
  } catch {
    return undefined;
  }
}
