import { dump } from 'js-yaml';
import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { BUNDLE_KEY } from '../certrotation/bundle.ts';
import { TLS_CERT, TLS_KEY } from '../certrotation/secret.ts';
import { OPERAND_NAMESPACE, OPERATOR_NAMESPACE } from './namespaces.ts';
import { CHECK_ENDPOINTS, mountedFile } from './operand-objects.ts';
import { type Infrastructure, internalUrlOf } from './resources.ts';

/** One cluster, one user, one context. */
interface Kubeconfig {
  readonly cluster: { readonly name: string; readonly server: string; readonly serverName?: string | undefined };
  /** As files, or as content in base64. */
  readonly authority: { readonly file: string } | { readonly data: string };
  readonly user: {
    readonly name: string;
    readonly credential: Readonly<Record<string, string>>;
  };
  readonly context: string;
}

const LOCALHOST = 'https://localhost:6443';
const RECOVERY_NAME = 'localhost-recovery';
const SERVER_CA_FILE = mountedFile('ConfigMap', 'kube-apiserver-server-ca', 'ca-bundle.crt');

/** Valid inside the static pod only: they point to files there (spec 20, 5.1.9 and 8.1.5). */
export const IN_POD_KUBECONFIGS: readonly ConfigMap[] = [
  inPod('kube-apiserver-cert-syncer-kubeconfig', 'kube-apiserver-cert-syncer', RECOVERY_NAME, {
    tokenFile: mountedFile('Secret', 'localhost-recovery-client-token', 'token'),
  }),
  inPod('check-endpoints-kubeconfig', CHECK_ENDPOINTS, undefined, pairOf('check-endpoints-client-cert-key')),
  inPod(
    'control-plane-node-kubeconfig',
    'control-plane-node',
    undefined,
    pairOf('control-plane-node-admin-client-cert-key'),
  ),
];

export interface NodeKubeconfigInputs {
  /** `node-system-admin-client` of the operator's namespace. */
  readonly client: Secret | undefined;
  /** `kube-apiserver-server-ca` of the operand's namespace. */
  readonly serverCA: ConfigMap | undefined;
  readonly infrastructure: Infrastructure | undefined;
}

const USER = 'system:admin';

/** Secret `node-kubeconfigs`: what an administrator uses on a control-plane node. Throws when something is missing (spec 20, 8.1). */
export function nodeKubeconfigs({ client, serverCA, infrastructure }: NodeKubeconfigInputs): Secret {
  const from = `secret ${OPERATOR_NAMESPACE}/node-system-admin-client`;
  if (client === undefined) throw new Error(`${from} does not exist`);
  const certificate = client.data?.[TLS_CERT];
  const key = client.data?.[TLS_KEY];
  if (!certificate) throw new Error(`system:admin client certificate missing from ${from}`);
  if (!key) throw new Error(`system:admin client private key missing from ${from}`);
  const bundle = serverCA?.data?.[BUNDLE_KEY];
  if (!bundle)
    throw new Error(`serving CA bundle missing from configmap ${OPERAND_NAMESPACE}/kube-apiserver-server-ca`);
  if (infrastructure === undefined) throw new Error('infrastructures.config.openshift.io/cluster does not exist');
  const [internal, external] = [internalUrlOf(infrastructure), infrastructure.status?.apiServerURL ?? ''];
  if (internal === '') throw new Error('APIServerInternalURL missing from infrastructure/cluster');
  if (external === '') throw new Error('APIServerURL missing from infrastructure/cluster');

  const file = (name: string, server: string, serverName?: string) =>
    dump(
      kubeconfigOf({
        cluster: { name, server, serverName },
        authority: { data: base64(bundle) },
        user: { name: USER, credential: { 'client-certificate-data': certificate, 'client-key-data': key } },
        context: USER,
      }),
      { lineWidth: -1, seqNoIndent: true },
    );
  return {
    metadata: { namespace: OPERAND_NAMESPACE, name: 'node-kubeconfigs' },
    type: 'Opaque',
    data: {
      'localhost.kubeconfig': base64(file('localhost', LOCALHOST)),
      'localhost-recovery.kubeconfig': base64(file(RECOVERY_NAME, LOCALHOST, RECOVERY_NAME)),
      'lb-ext.kubeconfig': base64(file('lb-ext', external)),
      'lb-int.kubeconfig': base64(file('lb-int', internal)),
    },
  };
}

function inPod(
  name: string,
  user: string,
  serverName: string | undefined,
  credential: Readonly<Record<string, string>>,
): ConfigMap {
  const config = kubeconfigOf({
    cluster: { name: 'loopback', server: LOCALHOST, serverName },
    authority: { file: SERVER_CA_FILE },
    user: { name: user, credential },
    context: user,
  });
  // Byte for byte as upstream writes it: a revision holds the text, and another form of it would be another revision.
  const kubeconfig = dump({ ...config, preferences: {} }, { lineWidth: -1, sortKeys: true });
  return { metadata: { namespace: OPERAND_NAMESPACE, name }, data: { kubeconfig } };
}

function pairOf(secret: string): Record<string, string> {
  return {
    'client-certificate': mountedFile('Secret', secret, TLS_CERT),
    'client-key': mountedFile('Secret', secret, TLS_KEY),
  };
}

function kubeconfigOf({ cluster, authority, user, context }: Kubeconfig) {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        cluster: {
          ...('file' in authority
            ? { 'certificate-authority': authority.file }
            : { 'certificate-authority-data': authority.data }),
          server: cluster.server,
          ...(cluster.serverName === undefined ? {} : { 'tls-server-name': cluster.serverName }),
        },
        name: cluster.name,
      },
    ],
    contexts: [{ context: { cluster: cluster.name, user: user.name }, name: context }],
    'current-context': context,
    users: [{ name: user.name, user: user.credential }],
  };
}

function base64(text: string): string {
  return Buffer.from(text, 'utf8').toString('base64');
}
