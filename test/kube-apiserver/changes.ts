import { generateKeyPairSync } from 'node:crypto';
import { BUNDLE_KEY } from '../../src/certrotation/bundle.ts';
import { isNotFound } from '../../src/kube/error.ts';
import type { Kube } from '../../src/kube/port.ts';
import { CONFIG_MAPS, type Resource, SECRETS } from '../../src/kube/resource.ts';
import {
  CONFIG_NAMESPACE as CONFIG,
  MANAGED_NAMESPACE as MANAGED,
  OPERAND_NAMESPACE as OPERAND,
  OPERATOR_NAMESPACE as OPERATOR,
} from '../../src/kube-apiserver/namespaces.ts';
import { API_SERVERS, AUTHENTICATIONS, CLUSTER, KUBE_API_SERVERS } from '../../src/kube-apiserver/resources.ts';
import type { LocalCluster } from '../../src/local/cluster.ts';
import { base64, bundleOf, forceRotation, newCa, newClient, newServing, pairData } from './cluster.ts';

export type Change = (cluster: LocalCluster) => Promise<unknown>;

export const USER_NAME = 'www.example.com';

/** A kubeconfig that needs no other file. */
const WEBHOOK = {
  apiVersion: 'v1',
  kind: 'Config',
  clusters: [{ name: 'webhook', cluster: { server: 'https://webhook.example.com' } }],
  users: [{ name: 'webhook', user: { token: 'a token' } }],
  contexts: [{ name: 'webhook', context: { cluster: 'webhook', user: 'webhook' } }],
  'current-context': 'webhook',
};

/** How each object of the static pod is made to change: at its source, so that no controller puts it back. */
export const CHANGES: Readonly<Record<string, Change>> = {
  'kube-apiserver-pod': ({ kube }) => merge(kube, KUBE_API_SERVERS, { spec: { forceRedeploymentReason: 'because' } }),
  config: async ({ kube }) => {
    await setSecret(kube, CONFIG, 'www', pairData(await newServing(USER_NAME)));
    const namedCertificates = [{ names: [USER_NAME], servingCertificate: { name: 'www' } }];
    await merge(kube, API_SERVERS, { spec: { servingCerts: { namedCertificates } } });
  },
  'oauth-metadata': async ({ kube }) => {
    await setConfigMap(kube, CONFIG, 'oauth', { oauthMetadata: '{}' });
    await setAuthentication(kube, { oauthMetadata: { name: 'oauth' } });
  },
  'bound-sa-token-signing-certs': ({ kube }) =>
    kube.delete(SECRETS, { namespace: OPERATOR, name: 'next-bound-service-account-signing-key' }),
  'etcd-serving-ca': ({ kube }) => addCa(kube, CONFIG, 'etcd-serving-ca'),
  'kube-apiserver-server-ca': cluster => forceRotation(cluster, OPERATOR, 'localhost-serving-signer'),
  'kubelet-serving-ca': ({ kube }) => addCa(kube, MANAGED, 'csr-controller-ca'),
  'sa-token-signing-certs': async ({ kube }) => {
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const text = publicKey.export({ format: 'pem', type: 'spki' }).toString();
    await setConfigMap(kube, MANAGED, 'sa-token-signing-certs', { 'service-account-002.pub': text });
  },
  'kube-apiserver-audit-policies': ({ kube }) =>
    merge(kube, API_SERVERS, { spec: { audit: { profile: 'WriteRequestBodies' } } }),
  'etcd-client': async ({ kube }) => setSecret(kube, CONFIG, 'etcd-client', pairData(await newClient('etcd-client'))),
  'encryption-config': ({ kube }) =>
    setSecret(kube, MANAGED, 'encryption-config-openshift-kube-apiserver', { 'encryption-config': base64('{}') }),
  'localhost-recovery-serving-certkey': cluster =>
    forceRotation(cluster, OPERAND, 'localhost-recovery-serving-certkey'),
  'localhost-recovery-client-token': ({ kube }) =>
    kube.delete(SECRETS, { namespace: OPERAND, name: 'localhost-recovery-client-token' }),
  'webhook-authenticator': async ({ kube }) => {
    await setSecret(kube, CONFIG, 'webhook', { kubeConfig: base64(JSON.stringify(WEBHOOK)) });
    await setAuthentication(kube, { webhookTokenAuthenticator: { kubeConfig: { name: 'webhook' } } });
  },

  'aggregator-client-ca': cluster => forceRotation(cluster, OPERATOR, 'aggregator-client-signer'),
  'client-ca': async ({ kube }) =>
    setConfigMap(kube, CONFIG, 'admin-kubeconfig-client-ca', { [BUNDLE_KEY]: bundleOf(await newCa('admin')) }),
  'trusted-ca-bundle': async ({ kube }) =>
    setConfigMap(kube, OPERAND, 'trusted-ca-bundle', { [BUNDLE_KEY]: bundleOf(await newCa('proxy')) }),
  'node-kubeconfigs': cluster => forceRotation(cluster, OPERATOR, 'node-system-admin-client'),
  'user-serving-cert-000': async ({ kube }) => setSecret(kube, CONFIG, 'www', pairData(await newServing(USER_NAME))),
  ...Object.fromEntries(
    [
      'aggregator-client',
      'localhost-serving-cert-certkey',
      'service-network-serving-certkey',
      'external-loadbalancer-serving-certkey',
      'internal-loadbalancer-serving-certkey',
      'control-plane-node-admin-client-cert-key',
      'check-endpoints-client-cert-key',
      'kubelet-client',
    ].map(name => [name, (cluster: LocalCluster) => forceRotation(cluster, OPERAND, name)]),
  ),
};

/** Objects that cannot be changed here, and why. */
export const UNCHANGED: Readonly<Record<string, string>> = {
  'kube-apiserver-cert-syncer-kubeconfig': 'its content is fixed; whoever edits it is corrected at once',
  'control-plane-node-kubeconfig': 'its content is fixed',
  'check-endpoints-kubeconfig': 'its content is fixed',
  'cloud-config': 'only on clouds',
  'bound-service-account-signing-key': 'follows bound-sa-token-signing-certs after the roll-out: a test of its own',
  'user-serving-cert': 'nobody writes it (spec 20, 8.3.5)',
};

async function merge(kube: Kube, resource: Resource, body: object): Promise<void> {
  await kube.patch(resource, CLUSTER, { type: 'merge', body });
}

async function setAuthentication(kube: Kube, spec: object): Promise<void> {
  try {
    await kube.create(AUTHENTICATIONS, { metadata: CLUSTER, spec: {} });
  } catch {
    // It is there.
  }
  await merge(kube, AUTHENTICATIONS, { spec });
}

async function addCa(kube: Kube, namespace: string, name: string): Promise<void> {
  const { data = {} } = await kube.get(CONFIG_MAPS, { namespace, name });
  await setConfigMap(kube, namespace, name, { [BUNDLE_KEY]: `${data[BUNDLE_KEY]}${bundleOf(await newCa('another'))}` });
}

async function setConfigMap(kube: Kube, namespace: string, name: string, data: Record<string, string>): Promise<void> {
  await set(kube, CONFIG_MAPS, namespace, name, data);
}

async function setSecret(kube: Kube, namespace: string, name: string, data: Record<string, string>): Promise<void> {
  await set(kube, SECRETS, namespace, name, data);
}

async function set(kube: Kube, resource: Resource, namespace: string, name: string, data: object): Promise<void> {
  try {
    await kube.patch(resource, { namespace, name }, { type: 'merge', body: { data } });
  } catch (error) {
    if (!isNotFound(error)) throw error;
    const type = resource === SECRETS && 'tls.crt' in data ? { type: 'kubernetes.io/tls' } : {};
    await kube.create(resource, { metadata: { namespace, name }, ...type, data } as never);
  }
}
