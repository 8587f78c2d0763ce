import type { ObjectLists } from '../staticpod/config.ts';
import { RESOURCE_DIRECTORY } from '../staticpod/config.ts';
import type { Delivery, Takes, Use } from '../trust/graph.ts';
import type { ObjectRef } from '../trust/object.ts';
import { OPERAND_NAMESPACE } from './namespaces.ts';

/** One object the static pod consumes, all of them in the operand's namespace (spec 20, 3.2 and 3.3). */
export interface OperandObject {
  readonly kind: ObjectRef['kind'];
  readonly name: string;
  /** `revision`: a change means a new revision and a restart; `sync`: the files are replaced in place. */
  readonly carrier: 'revision' | 'sync';
  readonly optional: boolean;
  /** The keys that become files; `<...>` where only the content knows. */
  readonly files: readonly string[];
  readonly uses: readonly Use[];
  readonly writtenBy: string;
}

/** The directory of in-place files, below the static-pod resources of a node. */
export const CERTS_DIRECTORY = 'kube-apiserver-certs';
/** Revision directories are called so, with the number of the revision behind. */
export const REVISION_DIRECTORY_PREFIX = 'kube-apiserver-pod';
/** The two directories as the containers see them. */
export const RESOURCES_MOUNT = '/etc/kubernetes/static-pod-resources';
export const CERTS_MOUNT = '/etc/kubernetes/static-pod-certs';

export const KUBE_APISERVER = 'kube-apiserver';
export const CERT_SYNCER = 'cert-syncer';
export const CERT_REGENERATION = 'cert-regeneration-controller';
export const CHECK_ENDPOINTS = 'check-endpoints';
export const WATCH_TERMINATION = 'watch-termination';
/** A person on a control-plane node, or a program inside the pod that lives for one task. */
export const NODE_ADMIN = 'node administrator';

const BUNDLE = ['ca-bundle.crt'];
const PAIR = ['tls.crt', 'tls.key'];
const PUBLIC_KEYS = ['service-account-001.pub', 'service-account-NNN.pub'];

const ROTATION = 'CertRotationController';
const TARGET_CONFIG = 'TargetConfigController';
const STATIC_RESOURCES = 'static resource controller';
const RESOURCE_SYNC = 'ResourceSyncController';
const BY_OBSERVER = 'ResourceSyncController (rule set by config observer)';

/** At most so many certificates of the user are served. */
export const MOST_USER_CERTIFICATES = 10;

/** The Secret that holds the user's certificate number `index`. */
export function userCertificateName(index: number): string {
  return `user-serving-cert-${String(index).padStart(3, '0')}`;
}

/** The built-in certificates that are chosen by name, in the server's order; those of the user follow. */
export const NAMED_CERTIFICATES = [
  'localhost-serving-cert-certkey',
  'service-network-serving-certkey',
  'external-loadbalancer-serving-certkey',
  'internal-loadbalancer-serving-certkey',
  'localhost-recovery-serving-certkey',
] as const;

/** Every object of the operand. The order matters: the first revisioned ConfigMap holds the pod manifest. */
export const OPERAND_OBJECTS: readonly OperandObject[] = [
  revisioned('ConfigMap', 'kube-apiserver-pod', ['pod.yaml', 'forceRedeploymentReason', 'version'], TARGET_CONFIG, []),
  revisioned('ConfigMap', 'config', ['config.yaml'], TARGET_CONFIG, [atStart('--openshift-config')]),
  revisioned('ConfigMap', 'kube-apiserver-cert-syncer-kubeconfig', ['kubeconfig'], STATIC_RESOURCES, [
    { process: CERT_SYNCER, setting: 'cert-syncer --kubeconfig', takes: 'restart' },
    { process: CERT_REGENERATION, setting: 'cert-regeneration-controller --kubeconfig', takes: 'restart' },
    { process: WATCH_TERMINATION, setting: 'watch-termination --kubeconfig', takes: 'restart' },
  ]),
  optional(
    revisioned('ConfigMap', 'oauth-metadata', ['oauthMetadata'], BY_OBSERVER, [
      atStart('authConfig.oauthMetadataFile'),
    ]),
  ),
  optional(revisioned('ConfigMap', 'cloud-config', ['<cloud.conf>'], BY_OBSERVER, [atStart('--cloud-config')])),
  revisioned('ConfigMap', 'bound-sa-token-signing-certs', PUBLIC_KEYS, 'BoundSATokenSignerController', [
    atStart('serviceAccountPublicKeyFiles (directory)'),
  ]),
  revisioned('ConfigMap', 'etcd-serving-ca', BUNDLE, RESOURCE_SYNC, [atStart('--etcd-cafile')]),
  optional(
    revisioned(
      'ConfigMap',
      'kube-apiserver-server-ca',
      BUNDLE,
      TARGET_CONFIG,
      [CERT_SYNCER, CERT_REGENERATION, WATCH_TERMINATION, CHECK_ENDPOINTS, NODE_ADMIN].map(process => ({
        process,
        setting: 'certificate-authority of the in-pod kubeconfigs',
        takes: 'restart' as const,
      })),
    ),
  ),
  revisioned('ConfigMap', 'kubelet-serving-ca', BUNDLE, RESOURCE_SYNC, [atStart('--kubelet-certificate-authority')]),
  revisioned('ConfigMap', 'sa-token-signing-certs', PUBLIC_KEYS, RESOURCE_SYNC, [
    atStart('serviceAccountPublicKeyFiles (directory)'),
  ]),
  revisioned('ConfigMap', 'kube-apiserver-audit-policies', ['policy.yaml'], 'AuditPolicyController', [
    atStart('--audit-policy-file'),
  ]),
  // The etcd client reads its pair for every handshake, but a revisioned file never changes in place.
  revisioned('Secret', 'etcd-client', PAIR, RESOURCE_SYNC, [
    { process: KUBE_APISERVER, setting: '--etcd-certfile', takes: 'per-handshake' },
    { process: KUBE_APISERVER, setting: '--etcd-keyfile', takes: 'per-handshake' },
  ]),
  optional(
    revisioned('Secret', 'encryption-config', ['encryption-config'], 'ResourceSyncController (conditional rule)', [
      atStart('--encryption-provider-config'),
    ]),
  ),
  revisioned('Secret', 'localhost-recovery-serving-certkey', PAIR, `${ROTATION} LocalhostRecoveryServing`, [
    live('servingInfo.namedCertificates[4]'),
  ]),
  revisioned(
    'Secret',
    'localhost-recovery-client-token',
    ['token', 'ca.crt', 'namespace', 'service-ca.crt'],
    'token controller of kube-controller-manager',
    [CERT_SYNCER, CERT_REGENERATION, WATCH_TERMINATION].map(process => ({
      process,
      setting: 'tokenFile of kube-apiserver-cert-syncer-kubeconfig',
      takes: 'restart' as const,
    })),
  ),
  optional(
    revisioned('Secret', 'webhook-authenticator', ['kubeConfig'], BY_OBSERVER, [
      atStart('--authentication-token-webhook-config-file'),
    ]),
  ),

  synced('ConfigMap', 'aggregator-client-ca', BUNDLE, RESOURCE_SYNC, [live('--requestheader-client-ca-file')]),
  synced('ConfigMap', 'client-ca', BUNDLE, 'TargetConfigController; cert-regeneration-controller', [
    live('--client-ca-file'),
  ]),
  optional(
    synced('ConfigMap', 'trusted-ca-bundle', BUNDLE, 'cluster-network-operator injection', [
      atStart('copied over the system trust store when the kube-apiserver container starts'),
    ]),
  ),
  synced('ConfigMap', 'control-plane-node-kubeconfig', ['kubeconfig'], STATIC_RESOURCES, [
    { process: NODE_ADMIN, setting: '', takes: 'on-use' },
  ]),
  synced('ConfigMap', 'check-endpoints-kubeconfig', ['kubeconfig'], STATIC_RESOURCES, [
    { process: CHECK_ENDPOINTS, setting: 'check-endpoints --kubeconfig', takes: 'restart' },
  ]),
  synced('Secret', 'aggregator-client', PAIR, ROTATION, [
    live('--proxy-client-cert-file'),
    live('--proxy-client-key-file'),
  ]),
  synced('Secret', 'localhost-serving-cert-certkey', PAIR, ROTATION, [live('servingInfo.namedCertificates[0]')]),
  synced('Secret', 'service-network-serving-certkey', PAIR, ROTATION, [
    live('--tls-cert-file'),
    live('--tls-private-key-file'),
    live('servingInfo.namedCertificates[1]'),
  ]),
  synced('Secret', 'external-loadbalancer-serving-certkey', PAIR, ROTATION, [live('servingInfo.namedCertificates[2]')]),
  synced('Secret', 'internal-loadbalancer-serving-certkey', PAIR, ROTATION, [live('servingInfo.namedCertificates[3]')]),
  synced(
    'Secret',
    'bound-service-account-signing-key',
    ['service-account.key', 'service-account.pub'],
    'BoundSATokenSignerController',
    [atStart('--service-account-signing-key-file')],
  ),
  synced('Secret', 'control-plane-node-admin-client-cert-key', PAIR, ROTATION, [
    { process: NODE_ADMIN, setting: 'control-plane-node-kubeconfig', takes: 'on-use' },
  ]),
  synced('Secret', 'check-endpoints-client-cert-key', PAIR, ROTATION, [
    { process: CHECK_ENDPOINTS, setting: 'check-endpoints-kubeconfig', takes: 'watch' },
  ]),
  synced('Secret', 'kubelet-client', PAIR, ROTATION, [
    live('--kubelet-client-certificate', 'per-handshake'),
    live('--kubelet-client-key', 'per-handshake'),
  ]),
  synced(
    'Secret',
    'node-kubeconfigs',
    ['localhost.kubeconfig', 'localhost-recovery.kubeconfig', 'lb-ext.kubeconfig', 'lb-int.kubeconfig'],
    'NodeKubeconfigController',
    [{ process: NODE_ADMIN, setting: '', takes: 'on-use' }],
  ),
  // Replacing the default certificate is switched off (spec 20, 8.3.5); the name stays reserved.
  optional(synced('Secret', 'user-serving-cert', PAIR, 'nobody', [])),
  ...Array.from({ length: MOST_USER_CERTIFICATES }, (_, index) =>
    optional(
      synced('Secret', userCertificateName(index), PAIR, BY_OBSERVER, [
        live(`servingInfo.namedCertificates[${NAMED_CERTIFICATES.length + index}]`),
      ]),
    ),
  ),
];

/** The lists the revision controller and the installer work with. */
export const REVISIONED: ObjectLists = listsOf('revision');
/** The lists the cert syncer works with. */
export const UNREVISIONED: ObjectLists & { directory: string } = { ...listsOf('sync'), directory: CERTS_DIRECTORY };

export function operandRef({ kind, name }: Pick<OperandObject, 'kind' | 'name'>): ObjectRef {
  return { kind, namespace: OPERAND_NAMESPACE, name };
}

/** Where the object is on a control-plane node. */
export function hostDirectoryOf(object: OperandObject): string {
  const base = object.carrier === 'revision' ? `${REVISION_DIRECTORY_PREFIX}-<REVISION>` : CERTS_DIRECTORY;
  return `${RESOURCE_DIRECTORY}/${base}/${subdirectoryOf(object)}`;
}

/** Where the containers of the pod see it. */
export function mountedDirectoryOf(object: Pick<OperandObject, 'kind' | 'name' | 'carrier'>): string {
  return `${object.carrier === 'revision' ? RESOURCES_MOUNT : CERTS_MOUNT}/${subdirectoryOf(object)}`;
}

/** The path of one file of an object as the containers see it. Throws for an object that is not in the table. */
export function mountedFile(kind: ObjectRef['kind'], name: string, file: string): string {
  const object = OPERAND_OBJECTS.find(candidate => candidate.kind === kind && candidate.name === name);
  if (object === undefined) throw new RangeError(`${kind} ${name} is not among the objects of the static pod`);
  return `${mountedDirectoryOf(object)}/${file}`;
}

export function operandDeliveries(): Delivery[] {
  return OPERAND_OBJECTS.map(object => ({
    object: operandRef(object),
    carrier: object.carrier,
    nodes: 'control-plane',
    hostDirectory: hostDirectoryOf(object),
    directory: mountedDirectoryOf(object),
    files: object.files,
    optional: object.optional,
    uses: object.uses,
  }));
}

function listsOf(carrier: OperandObject['carrier']): ObjectLists {
  const list = (kind: ObjectRef['kind']) =>
    OPERAND_OBJECTS.filter(object => object.carrier === carrier && object.kind === kind).map(object => ({
      name: object.name,
      ...(object.optional ? { optional: true } : {}),
    }));
  return { configMaps: list('ConfigMap'), secrets: list('Secret') };
}

function subdirectoryOf({ kind, name }: Pick<OperandObject, 'kind' | 'name'>): string {
  return `${kind === 'Secret' ? 'secrets' : 'configmaps'}/${name}`;
}

function object(
  carrier: OperandObject['carrier'],
  kind: ObjectRef['kind'],
  name: string,
  files: readonly string[],
  writtenBy: string,
  uses: readonly Use[],
): OperandObject {
  return { kind, name, carrier, optional: false, files, uses, writtenBy };
}

function revisioned(kind: ObjectRef['kind'], name: string, files: readonly string[], by: string, uses: readonly Use[]) {
  return object('revision', kind, name, files, by, uses);
}

function synced(kind: ObjectRef['kind'], name: string, files: readonly string[], by: string, uses: readonly Use[]) {
  return object('sync', kind, name, files, by, uses);
}

function optional(required: OperandObject): OperandObject {
  return { ...required, optional: true };
}

/** kube-apiserver takes a change while it runs (spec 20, section 7). */
function live(setting: string, takes: Takes = 'watch'): Use {
  return { process: KUBE_APISERVER, setting, takes };
}

/** kube-apiserver reads it when it starts, and never again. */
function atStart(setting: string): Use {
  return { process: KUBE_APISERVER, setting, takes: 'restart' };
}
