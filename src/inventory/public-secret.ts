import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { loadSecret, TLS_CERT, TLS_KEY } from '../certrotation/secret.ts';
import { certificatesOfKubeconfig } from './kubeconfig.ts';

/** A Secret without anything private: what every command but the writing ones works with. */
export interface PublicSecret extends Secret {
  /** What is wrong with certificate and key together; empty: nothing; absent: the key was not there to look at. */
  keyProblem?: string | undefined;
  /** Client certificates of the kubeconfigs inside, by key of the Secret. */
  kubeconfigs?: Readonly<Record<string, readonly string[]>> | undefined;
}

/** What `oc adm inspect` writes in place of a private value. */
const ELIDED = /^\d+ bytes long$/;

/** Looks once at the key, and forgets it and every other value that is no certificate. */
export function withoutPrivateData(secret: Secret): PublicSecret {
  const { data = {}, ...rest } = secret;
  const kept: Record<string, string> = {};
  const kubeconfigs: Record<string, readonly string[]> = {};
  for (const [key, value] of Object.entries(data)) {
    if (isPublic(key)) {
      kept[key] = value;
      continue;
    }
    const text = Buffer.from(value, 'base64').toString('latin1');
    kept[key] = ELIDED.test(text) ? value : Buffer.from(`${text.length} bytes long`).toString('base64');
    const { clients = [] } = certificatesOfKubeconfig(text) ?? {};
    if (clients.length > 0) kubeconfigs[key] = clients.map(({ pem }) => pem);
  }
  const problem = keyProblem(secret);
  // Values written as plain texts are as private as the others, and so is the copy kubectl apply keeps.
  delete (rest as { stringData?: unknown }).stringData;
  const { annotations, managedFields: _managed, ...metadata } = rest.metadata ?? {};
  const { 'kubectl.kubernetes.io/last-applied-configuration': _applied, ...others } = annotations ?? {};
  return {
    ...rest,
    metadata: { ...metadata, ...(annotations === undefined ? {} : { annotations: others }) },
    data: kept,
    ...(problem === undefined ? {} : { keyProblem: problem }),
    ...(Object.keys(kubeconfigs).length === 0 ? {} : { kubeconfigs }),
  };
}

function isPublic(key: string): boolean {
  return key.endsWith('.crt') || key === 'ca-bundle';
}

function keyProblem(secret: Secret): string | undefined {
  const [certificate, key] = [secret.data?.[TLS_CERT], secret.data?.[TLS_KEY]];
  if (certificate === undefined || key === undefined) return undefined;
  if (ELIDED.test(Buffer.from(key, 'base64').toString('latin1'))) return undefined;
  try {
    loadSecret(secret);
    return '';
  } catch (error) {
    return (error as Error).message;
  }
}
