import { CLUSTER_KEY_ALGORITHMS, clusterKeyAlgorithm, type KeyAlgorithm } from '../../pki/keys.ts';
import { FlagError, parseFlags } from '../../staticpod/node/flags.ts';
import { CHECK_ENDPOINTS_PORT } from '../target-config/pod.ts';

type Env = Readonly<Record<string, string | undefined>>;

export interface CertRegenerationOptions {
  readonly kubeconfig?: string | undefined;
  readonly namespace: string;
  readonly keyAlgorithm?: KeyAlgorithm | undefined;
}

/** The flags of `cert-regeneration-controller`. */
export function parseCertRegenerationOptions(argv: readonly string[], env: Env): CertRegenerationOptions {
  const flags = parseFlags(argv, { kubeconfig: 'text', namespace: 'text', 'key-algorithm': 'text' });
  const named = flags['key-algorithm'];
  const keyAlgorithm = named === undefined ? undefined : clusterKeyAlgorithm(named);
  if (named !== undefined && keyAlgorithm === undefined) {
    const known = CLUSTER_KEY_ALGORITHMS.join(', ');
    throw new FlagError(`--key-algorithm: expected one of ${known}, found ${JSON.stringify(named)}`);
  }
  return { kubeconfig: flags.kubeconfig || undefined, namespace: namespaceOf(flags.namespace, env), keyAlgorithm };
}

export interface CheckEndpointsOptions extends Omit<CertRegenerationOptions, 'keyAlgorithm'> {
  readonly podName: string;
  readonly host: string;
  readonly port: number;
}

/** The flags of `check-endpoints`. */
export function parseCheckEndpointsOptions(argv: readonly string[], env: Env): CheckEndpointsOptions {
  const flags = parseFlags(argv, { kubeconfig: 'text', namespace: 'text', listen: 'text' });
  const listen = flags.listen ?? `0.0.0.0:${CHECK_ENDPOINTS_PORT}`;
  const [, host, port] = /^(.+):(\d{1,5})$/.exec(listen) ?? [];
  if (host === undefined || Number(port) > 65_535) {
    throw new FlagError(`--listen: expected <address>:<port>, found ${JSON.stringify(listen)}`);
  }
  if (!env.POD_NAME) throw new FlagError('POD_NAME is not set');
  return {
    kubeconfig: flags.kubeconfig || undefined,
    namespace: namespaceOf(flags.namespace, env),
    podName: env.POD_NAME,
    host: host.replace(/^\[|\]$/g, ''),
    port: Number(port),
  };
}

function namespaceOf(flag: string | undefined, env: Env): string {
  const namespace = flag || env.POD_NAMESPACE;
  if (!namespace) throw new FlagError('--namespace is required');
  return namespace;
}
