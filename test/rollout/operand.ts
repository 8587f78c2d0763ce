import type { ConfigMap, Pod, Secret } from 'kubernetes-types/core/v1.d.ts';
import type { Resource } from '../../src/kube/resource.ts';
import { OPERAND_NAMESPACE } from '../../src/kube-apiserver/namespaces.ts';
import {
  CERTS_MOUNT,
  OPERAND_OBJECTS,
  RESOURCES_MOUNT,
  UNREVISIONED,
} from '../../src/kube-apiserver/operand-objects.ts';
import { KUBE_API_SERVERS } from '../../src/kube-apiserver/resources.ts';
import type { CertificateAndKey } from '../../src/pki/authority.ts';
import { issueServing, issueSigner } from '../../src/pki/issue.ts';
import { systemKeys } from '../../src/pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../../src/pki/pem.ts';
import { RESOURCE_DIRECTORY, type StaticPodOperatorConfig } from '../../src/staticpod/config.ts';
import type { StaticPodOperatorResource } from '../../src/staticpod/operator.ts';

/** A small kube-apiserver: the real certificate syncer and its lists, few revisioned objects, a stand-in as the server. */
export const NAMESPACE = OPERAND_NAMESPACE;
export const OPERATORS = KUBE_API_SERVERS as Resource<StaticPodOperatorResource>;
export const PORT = 6443;
export const MANIFEST = 'kube-apiserver-pod.yaml';

/** Read only when the process starts, so a change needs a new revision. */
export const REVISIONED_SECRET = 'etcd-client';
export const OPTIONAL_SECRET = 'encryption-config';
/** What the server shows in handshakes; a change must not restart it. */
export const SERVING_SECRET = 'service-network-serving-certkey';
export const POD_CONFIG_MAP = 'kube-apiserver-pod';

export const CONFIG: StaticPodOperatorConfig = {
  operandName: 'kube-apiserver',
  operandNamespace: NAMESPACE,
  staticPodName: 'kube-apiserver',
  operandLabels: { apiserver: 'true' },
  operator: OPERATORS,
  revisioned: {
    configMaps: [{ name: POD_CONFIG_MAP }, { name: 'config' }],
    secrets: [{ name: REVISIONED_SECRET }, { name: OPTIONAL_SECRET, optional: true }],
  },
  unrevisioned: UNREVISIONED,
  installer: { command: ['cluster-kube-apiserver-operator', 'installer'], image: 'rotunda' },
  pruner: { command: ['cluster-kube-apiserver-operator', 'prune'], directoryPrefix: POD_CONFIG_MAP },
};

/** The manifest as an operator renders it, before the revision is filled in. */
export function manifest(): Pod {
  const pair = (directory: string, name: string) => [
    `${directory}/secrets/${name}/tls.crt`,
    `${directory}/secrets/${name}/tls.key`,
  ];
  const [servingCert, servingKey] = pair(CERTS_MOUNT, SERVING_SECRET);
  const [etcdCert, etcdKey] = pair(RESOURCES_MOUNT, REVISIONED_SECRET);
  const volumeMounts = [
    { name: 'resource-dir', mountPath: RESOURCES_MOUNT },
    { name: 'cert-dir', mountPath: CERTS_MOUNT },
  ];
  const fieldEnv = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } });
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      namespace: NAMESPACE,
      name: 'kube-apiserver',
      labels: { app: 'kube-apiserver', apiserver: 'true', revision: 'REVISION' },
    },
    spec: {
      hostNetwork: true,
      terminationGracePeriodSeconds: 5,
      containers: [
        {
          name: 'kube-apiserver',
          image: 'kube-apiserver',
          command: ['kube-apiserver'],
          args: [
            `--secure-port=${PORT}`,
            `--tls-cert-file=${servingCert}`,
            `--tls-private-key-file=${servingKey}`,
            `--client-ca-file=${CERTS_MOUNT}/configmaps/client-ca/ca-bundle.crt`,
            `--etcd-certfile=${etcdCert}`,
            `--etcd-keyfile=${etcdKey}`,
          ],
          volumeMounts,
          terminationMessagePolicy: 'FallbackToLogsOnError',
          readinessProbe: { httpGet: { scheme: 'HTTPS', port: PORT, path: 'readyz' }, periodSeconds: 1 },
        },
        {
          name: 'kube-apiserver-cert-syncer',
          image: 'rotunda',
          command: ['cluster-kube-apiserver-operator', 'cert-syncer'],
          args: ['--namespace=$(POD_NAMESPACE)', `--destination-dir=${CERTS_MOUNT}`],
          env: [fieldEnv('POD_NAME', 'metadata.name'), fieldEnv('POD_NAMESPACE', 'metadata.namespace')],
          volumeMounts,
        },
      ],
      volumes: [
        { name: 'resource-dir', hostPath: { path: `${RESOURCE_DIRECTORY}/${POD_CONFIG_MAP}-REVISION` } },
        { name: 'cert-dir', hostPath: { path: `${RESOURCE_DIRECTORY}/${UNREVISIONED.directory}` } },
      ],
    },
  };
}

const ISSUE = { keys: systemKeys, lifetimeMs: 24 * 3_600_000, algorithm: 'P-256' as const };

export const newSigner = (): Promise<CertificateAndKey> =>
  issueSigner({ ...ISSUE, now: new Date(), commonName: 'signer' });
export const newPair = (signer: CertificateAndKey): Promise<CertificateAndKey> =>
  issueServing({ ...ISSUE, now: new Date(), signer, hostnames: ['kubernetes.default.svc'] });

/** A pair as the data of a Secret. */
export function pairData(pair: CertificateAndKey): Record<string, string> {
  return { 'tls.crt': base64(encodeCertificates(pair.chain)), 'tls.key': base64(encodePrivateKey(pair.key)) };
}

/** Everything the operand needs, in its namespace. */
export async function operandObjects(
  signer: CertificateAndKey,
): Promise<{ configMaps: ConfigMap[]; secrets: Secret[] }> {
  const metadata = (name: string) => ({ namespace: NAMESPACE, name });
  const bundle = encodeCertificates(signer.chain);
  const data = pairData(await newPair(signer));
  const synced = OPERAND_OBJECTS.filter(({ carrier, optional }) => carrier === 'sync' && !optional);
  const names = (kind: string) => synced.filter(object => object.kind === kind);
  const secret = (name: string): Secret => ({ metadata: metadata(name), type: 'Opaque', data });
  return {
    configMaps: [
      { metadata: metadata(POD_CONFIG_MAP), data: { 'pod.yaml': JSON.stringify(manifest()) } },
      { metadata: metadata('config'), data: { 'config.yaml': '{}' } },
      ...names('ConfigMap').map(({ name, files }) => ({
        metadata: metadata(name),
        data: Object.fromEntries(files.map(file => [file, bundle])),
      })),
    ],
    secrets: [secret(REVISIONED_SECRET), ...names('Secret').map(({ name }) => secret(name))],
  };
}

export function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
