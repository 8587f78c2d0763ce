import { dump } from 'js-yaml';
import type { CustomResourceDefinition } from 'kubernetes-types/apiextensions/v1.d.ts';
import type {
  ClusterRole,
  ClusterRoleBinding,
  PolicyRule,
  Role,
  RoleBinding,
  Subject,
} from 'kubernetes-types/rbac/v1.d.ts';
import { rootedFiles } from '../../host/directory-disk.ts';
import { createIfMissing } from '../../kube/create-if-missing.ts';
import { days, formatGoDuration } from '../../kube/duration.ts';
import type { Kube } from '../../kube/port.ts';
import {
  CONFIG_MAPS,
  CUSTOM_RESOURCE_DEFINITIONS,
  type KubeObject,
  NAMESPACES,
  type Resource,
  resource,
} from '../../kube/resource.ts';
import { POLICIES, POLICY_BINDINGS } from '../../kubeadm/adopt/policies.ts';
import { CERTIFICATES_DIRECTORY, CLUSTER_INFO, KUBEADM_CONFIG, ROTATION_DAY } from '../../kubeadm/names.ts';
import { placesOf, signerPlace } from '../../kubeadm/node/places.ts';
import type { KeyAlgorithm } from '../../pki/keys.ts';
import type { Founding } from '../layout.ts';
import { CLUSTER_NAME, SERVICE_NETWORK, VERSION_OF_KUBERNETES } from './names.ts';

const RBAC = 'rbac.authorization.k8s.io';
const CLUSTER_ROLES = resource<ClusterRole>(`${RBAC}/v1`, 'ClusterRole', 'clusterroles', false);
const CLUSTER_ROLE_BINDINGS = resource<ClusterRoleBinding>(
  `${RBAC}/v1`,
  'ClusterRoleBinding',
  'clusterrolebindings',
  false,
);
const ROLES = resource<Role>(`${RBAC}/v1`, 'Role', 'roles');
const ROLE_BINDINGS = resource<RoleBinding>(`${RBAC}/v1`, 'RoleBinding', 'rolebindings');

const YEAR_DAYS = 365;
const DECADE_DAYS = 3650;

/** What `kubeadm init` writes into a cluster, once: what is there belongs to whoever wrote it. */
export async function provideObjects(kube: Kube, founding: Founding): Promise<void> {
  const make = <T extends KubeObject>(of: Resource<T>, object: T) => createIfMissing(kube, of, object);
  for (const kind of [POLICIES, POLICY_BINDINGS]) await make(CUSTOM_RESOURCE_DEFINITIONS, definitionOf(kind));
  for (const name of [KUBEADM_CONFIG.namespace, CLUSTER_INFO.namespace, 'kube-node-lease', 'default'])
    await make(NAMESPACES, { metadata: { name } });
  const ClusterConfiguration = dump(clusterConfiguration(founding), { lineWidth: -1 });
  const { dayMs = days(1) } = founding;
  const annotations = dayMs === days(1) ? {} : { [ROTATION_DAY]: formatGoDuration(dayMs) };
  await make(CONFIG_MAPS, { metadata: { ...KUBEADM_CONFIG, annotations }, data: { ClusterConfiguration } });
  await make(CONFIG_MAPS, { metadata: { ...CLUSTER_INFO }, data: { kubeconfig: await joiningKubeconfig(founding) } });
  await provideRights(kube);
}

/** With what is different here said in the words that kubeadm has for it. */
function clusterConfiguration({ dayMs = days(1), keyAlgorithm = 'RSA-2048', url }: Founding): object {
  const isScaled = dayMs !== days(1);
  return {
    apiServer: {},
    apiVersion: 'kubeadm.k8s.io/v1beta4',
    caCertificateValidityPeriod: periodOf(DECADE_DAYS, dayMs),
    certificateValidityPeriod: periodOf(YEAR_DAYS, dayMs),
    certificatesDir: CERTIFICATES_DIRECTORY,
    clusterName: CLUSTER_NAME,
    controlPlaneEndpoint: new URL(url).host,
    controllerManager: isScaled
      ? { extraArgs: [{ name: 'cluster-signing-duration', value: periodOf(YEAR_DAYS, dayMs) }] }
      : {},
    dns: {},
    encryptionAlgorithm: ALGORITHMS[keyAlgorithm] ?? keyAlgorithm,
    etcd: { local: { dataDir: '/var/lib/etcd' } },
    imageRepository: 'registry.k8s.io',
    kind: 'ClusterConfiguration',
    kubernetesVersion: VERSION_OF_KUBERNETES,
    networking: { dnsDomain: 'cluster.local', serviceSubnet: SERVICE_NETWORK },
    scheduler: {},
  };
}

const ALGORITHMS: Readonly<Partial<Record<KeyAlgorithm, string>>> = {
  'P-256': 'ECDSA-P256',
  'P-384': 'ECDSA-P384',
};

function periodOf(daysOfLife: number, dayMs: number): string {
  return formatGoDuration(daysOfLife * dayMs);
}

/** For whoever joins: the API and its CA, nobody's credentials. */
async function joiningKubeconfig({ nodes, url }: Founding): Promise<string> {
  const [first] = nodes;
  if (first === undefined) throw new RangeError('expected a control-plane node, found none');
  const { certificate } = signerPlace(placesOf(CERTIFICATES_DIRECTORY), 'ca');
  const ca = await rootedFiles(first.root).read(certificate);
  if (ca === undefined) throw new Error(`expected ${certificate} on ${first.name}`);
  const cluster = { 'certificate-authority-data': ca.toString('base64'), server: url };
  return dump(
    {
      apiVersion: 'v1',
      clusters: [{ cluster, name: '' }],
      contexts: null,
      'current-context': '',
      kind: 'Config',
      users: null,
    },
    { lineWidth: -1 },
  );
}

async function provideRights(kube: Kube): Promise<void> {
  const user = (name: string): Subject => ({ apiGroup: RBAC, kind: 'User', name });
  const group = (name: string): Subject => ({ apiGroup: RBAC, kind: 'Group', name });
  const bind = (name: string, role: string, subject: Subject) =>
    createIfMissing(kube, CLUSTER_ROLE_BINDINGS, {
      metadata: { name },
      roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: role },
      subjects: [subject],
    });
  await bind('kubeadm:cluster-admins', 'cluster-admin', group('kubeadm:cluster-admins'));
  await bind(
    'kubeadm:node-autoapprove-certificate-rotation',
    'system:certificates.k8s.io:certificatesigningrequests:selfnodeclient',
    group('system:nodes'),
  );
  const name = 'kubeadm:bootstrap-signer-clusterinfo';
  const metadata = { namespace: CLUSTER_INFO.namespace, name };
  const rules = [allow(['get'], '', ['configmaps'], [CLUSTER_INFO.name])];
  await createIfMissing(kube, ROLES, { metadata, rules });
  await createIfMissing(kube, ROLE_BINDINGS, {
    metadata,
    roleRef: { apiGroup: RBAC, kind: 'Role', name },
    subjects: [user('system:anonymous')],
  });
  for (const [component, rulesOf] of Object.entries(RIGHTS)) {
    await createIfMissing(kube, CLUSTER_ROLES, { metadata: { name: component }, rules: rulesOf });
    await bind(component, component, user(component));
  }
}

function allow(verbs: string[], apiGroup: string, resources: string[], resourceNames?: string[]): PolicyRule {
  return { verbs, apiGroups: [apiGroup], resources, ...(resourceNames && { resourceNames }) };
}

const WATCH = ['get', 'list', 'watch'];
const LEAD: readonly PolicyRule[] = [
  allow(['get', 'create', 'update'], 'coordination.k8s.io', ['leases']),
  allow(['create', 'patch', 'update'], '', ['events']),
];

/** What the programs of the control plane may do that Kubernetes gives by itself, as far as it is used here. */
const RIGHTS: Readonly<Record<string, PolicyRule[]>> = {
  'system:kube-controller-manager': [
    ...LEAD,
    allow(WATCH, '', ['namespaces']),
    allow([...WATCH, 'create', 'update'], '', ['configmaps']),
    allow([...WATCH, 'update', 'delete'], '', ['secrets']),
    allow(WATCH, 'certificates.k8s.io', ['certificatesigningrequests']),
    allow(['update', 'patch'], 'certificates.k8s.io', [
      'certificatesigningrequests/approval',
      'certificatesigningrequests/status',
    ]),
    allow(['approve', 'sign'], 'certificates.k8s.io', ['signers']),
  ],
  'system:kube-scheduler': [...LEAD],
};

/** The embedded API does not know this kind by itself: it keeps such objects, and heeds none of them. */
export function definitionOf({ group, version, kind, plural }: Resource): CustomResourceDefinition {
  return {
    metadata: {
      name: `${plural}.${group}`,
      annotations: { 'api-approved.kubernetes.io': 'https://kubernetes.io/docs/reference/access-authn-authz/' },
    },
    spec: {
      group,
      scope: 'Cluster',
      names: { kind, plural, singular: kind.toLowerCase() },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as object },
        },
      ],
    },
  };
}
