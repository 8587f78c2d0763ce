import { mountedFile, RESOURCES_MOUNT } from '../operand-objects.ts';
import type { Config, ConfigValue } from '../resources.ts';

/** Which build of kube-apiserver runs: OpenShift's takes a configuration file, the plain one takes flags. */
export type Flavor = 'openshift' | 'kubernetes';

/** Where the audit log and the lock of the server are, on the node and in the pod alike. */
export const AUDIT_DIRECTORY = '/var/log/kube-apiserver';

const arguments_ = (values: Readonly<Record<string, string | readonly string[]>>): Config =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, ([] as string[]).concat(value)]));

/** Which file is whose (spec 20, 4.4). Everything else about certificates comes from the observers. */
const CERTIFICATE_ARGUMENTS = {
  'client-ca-file': mountedFile('ConfigMap', 'client-ca', 'ca-bundle.crt'),
  'etcd-cafile': mountedFile('ConfigMap', 'etcd-serving-ca', 'ca-bundle.crt'),
  'etcd-certfile': mountedFile('Secret', 'etcd-client', 'tls.crt'),
  'etcd-keyfile': mountedFile('Secret', 'etcd-client', 'tls.key'),
  'kubelet-certificate-authority': mountedFile('ConfigMap', 'kubelet-serving-ca', 'ca-bundle.crt'),
  'kubelet-client-certificate': mountedFile('Secret', 'kubelet-client', 'tls.crt'),
  'kubelet-client-key': mountedFile('Secret', 'kubelet-client', 'tls.key'),
  'proxy-client-cert-file': mountedFile('Secret', 'aggregator-client', 'tls.crt'),
  'proxy-client-key-file': mountedFile('Secret', 'aggregator-client', 'tls.key'),
  'requestheader-client-ca-file': mountedFile('ConfigMap', 'aggregator-client-ca', 'ca-bundle.crt'),
  'requestheader-allowed-names': ['kube-apiserver-proxy', 'system:kube-apiserver-proxy', 'system:openshift-aggregator'],
  'requestheader-extra-headers-prefix': 'X-Remote-Extra-',
  'requestheader-group-headers': 'X-Remote-Group',
  'requestheader-username-headers': 'X-Remote-User',
  'service-account-signing-key-file': mountedFile('Secret', 'bound-service-account-signing-key', 'service-account.key'),
  'tls-cert-file': mountedFile('Secret', 'service-network-serving-certkey', 'tls.crt'),
  'tls-private-key-file': mountedFile('Secret', 'service-network-serving-certkey', 'tls.key'),
};

const COMMON_ARGUMENTS = {
  'allow-privileged': 'true',
  'anonymous-auth': 'true',
  'api-audiences': 'https://kubernetes.default.svc',
  'audit-log-format': 'json',
  'audit-log-maxbackup': '10',
  'audit-log-maxsize': '200',
  'audit-log-path': `${AUDIT_DIRECTORY}/audit.log`,
  'audit-policy-file': mountedFile('ConfigMap', 'kube-apiserver-audit-policies', 'policy.yaml'),
  'enable-aggregator-routing': 'true',
  'endpoint-reconciler-type': 'lease',
  'etcd-healthcheck-timeout': '9s',
  'etcd-prefix': 'kubernetes.io',
  'etcd-readycheck-timeout': '9s',
  'event-ttl': '3h',
  'goaway-chance': '0',
  'http2-max-streams-per-connection': '2000',
  'kubelet-preferred-address-types': 'InternalIP',
  'max-mutating-requests-inflight': '1000',
  'max-requests-inflight': '3000',
  'min-request-timeout': '3600',
  'service-account-issuer': 'https://kubernetes.default.svc',
  'service-account-lookup': 'true',
  'service-node-port-range': '30000-32767',
  'shutdown-delay-duration': '70s',
  'shutdown-send-retry-after': 'true',
  'storage-backend': 'etcd3',
  'storage-media-type': 'application/vnd.kubernetes.protobuf',
  'strict-transport-security-directives': 'max-age=31536000,includeSubDomains,preload',
};

const COMMON_PLUGINS = [
  'CertificateApproval',
  'CertificateSigning',
  'CertificateSubjectRestriction',
  'DefaultIngressClass',
  'DefaultStorageClass',
  'DefaultTolerationSeconds',
  'LimitRanger',
  'MutatingAdmissionWebhook',
  'NamespaceLifecycle',
  'NodeRestriction',
  'OwnerReferencesPermissionEnforcement',
  'PersistentVolumeClaimResize',
  'PodNodeSelector',
  'PodTolerationRestriction',
  'Priority',
  'ResourceQuota',
  'RuntimeClass',
  'ServiceAccount',
  'StorageObjectInUseProtection',
  'TaintNodesByCondition',
  'ValidatingAdmissionWebhook',
];

const OPENSHIFT_PLUGINS = [
  'PersistentVolumeLabel',
  'ValidatingAdmissionPolicy',
  'authorization.openshift.io/RestrictSubjectBindings',
  'authorization.openshift.io/ValidateRoleBindingRestriction',
  'config.openshift.io/DenyDeleteClusterConfiguration',
  ...['APIServer', 'Authentication', 'Console', 'FeatureGate', 'Image', 'OAuth', 'Project', 'Scheduler'].map(
    kind => `config.openshift.io/Validate${kind}`,
  ),
  'image.openshift.io/ImagePolicy',
  'network.openshift.io/ExternalIPRanger',
  'network.openshift.io/RestrictedEndpointsAdmission',
  'quota.openshift.io/ClusterResourceQuota',
  'quota.openshift.io/ValidateClusterResourceQuota',
  'route.openshift.io/IngressAdmission',
  'scheduling.openshift.io/OriginPodNodeEnvironment',
  'security.openshift.io/DefaultSecurityContextConstraints',
  'security.openshift.io/SCCExecRestrictions',
  'security.openshift.io/SecurityContextConstraint',
  'security.openshift.io/ValidateSecurityContextConstraints',
  'storage.openshift.io/CSIInlineVolumeSecurity',
];

/** Arguments that only OpenShift's build has, or wants otherwise. */
const FLAVOR_ARGUMENTS: Readonly<Record<Flavor, Readonly<Record<string, string | readonly string[]>>>> = {
  openshift: {
    'authorization-mode': ['Scope', 'SystemMasters', 'RBAC', 'Node'],
    'enable-admission-plugins': [...COMMON_PLUGINS, ...OPENSHIFT_PLUGINS],
    'enable-logs-handler': 'false',
    'kubelet-read-only-port': '0',
    'kubernetes-service-node-port': '0',
  },
  kubernetes: {
    'authorization-mode': ['Node', 'RBAC'],
    'enable-admission-plugins': COMMON_PLUGINS,
  },
};

const POD_SECURITY: ConfigValue = {
  configuration: {
    kind: 'PodSecurityConfiguration',
    apiVersion: 'pod-security.admission.config.k8s.io/v1',
    defaults: {
      enforce: 'privileged',
      'enforce-version': 'latest',
      audit: 'restricted',
      'audit-version': 'latest',
      warn: 'restricted',
      'warn-version': 'latest',
    },
    exemptions: { usernames: ['system:serviceaccount:openshift-infra:build-controller'] },
  },
};

const EXTERNAL_IPS: ConfigValue = {
  configuration: {
    apiVersion: 'network.openshift.io/v1',
    kind: 'ExternalIPRangerAdmissionConfig',
    allowIngressIP: true,
    externalIPNetworkCIDRs: null,
  },
  location: '',
};

/** The configuration before anything has been observed. */
export function defaultConfig(flavor: Flavor): Config {
  return {
    apiVersion: 'kubecontrolplane.config.openshift.io/v1',
    kind: 'KubeAPIServerConfig',
    admission: {
      pluginConfig: {
        PodSecurity: POD_SECURITY,
        ...(flavor === 'openshift' ? { 'network.openshift.io/ExternalIPRanger': EXTERNAL_IPS } : {}),
      },
    },
    apiServerArguments: arguments_({ ...COMMON_ARGUMENTS, ...CERTIFICATE_ARGUMENTS, ...FLAVOR_ARGUMENTS[flavor] }),
    authConfig: { oauthMetadataFile: '' },
    consolePublicURL: '',
    projectConfig: { defaultNodeSelector: '' },
    serviceAccountPublicKeyFiles: [
      `${RESOURCES_MOUNT}/configmaps/sa-token-signing-certs`,
      `${RESOURCES_MOUNT}/configmaps/bound-sa-token-signing-certs`,
    ],
    servicesSubnet: '10.3.0.0/16',
    servingInfo: { bindAddress: '0.0.0.0:6443', bindNetwork: 'tcp4', namedCertificates: null },
  };
}
