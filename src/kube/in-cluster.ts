import { join } from 'node:path';
import { type Access, RereadAccess } from './access.ts';
import type { Clock } from './clock.ts';
import { readSmallFile } from './small-file.ts';

type Env = Readonly<Record<string, string | undefined>>;

export interface InClusterOptions {
  readonly env: Env;
  readonly clock?: Clock | undefined;
  readonly onError?: ((error: Error) => void) | undefined;
  /** Where the kubelet mounts the service account. */
  readonly directory?: string | undefined;
}

const SERVICE_ACCOUNT_DIRECTORY = '/var/run/secrets/kubernetes.io/serviceaccount';

/** Whether this process runs in a pod that knows where its API is. */
export function isInCluster(env: Env): boolean {
  return Boolean(env.KUBERNETES_SERVICE_HOST && env.KUBERNETES_SERVICE_PORT);
}

/** The API of the cluster this pod runs in, as its service account. Token and CA are replaced by the kubelet at any time. */
export async function inClusterAccess(options: InClusterOptions): Promise<Access> {
  const { env, clock, onError, directory = SERVICE_ACCOUNT_DIRECTORY } = options;
  if (!isInCluster(env)) {
    throw new Error('expected KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT; this is not a pod');
  }
  const host = env.KUBERNETES_SERVICE_HOST ?? '';
  const server = new URL(`https://${host.includes(':') ? `[${host}]` : host}:${env.KUBERNETES_SERVICE_PORT}`);
  const read = (name: string) => readSmallFile(join(directory, name));
  const namespace = (await read('namespace').catch(() => 'default')).trim();
  const load = async () => {
    const [token, ca] = await Promise.all([read('token'), read('ca.crt')]);
    if (token.trim() === '') throw new Error(`${join(directory, 'token')} is empty`);
    return { server, tls: { ca }, headers: { authorization: `Bearer ${token.trim()}` } };
  };
  return new RereadAccess(load, { namespace, clock, onError });
}
