import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { RoleBinding } from 'kubernetes-types/rbac/v1.d.ts';
import { type Access, changedAccess, RereadAccess } from '../../src/kube/access.ts';
import { createIfMissing } from '../../src/kube/create-if-missing.ts';
import { loadAccess } from '../../src/kube/kubeconfig.ts';
import { objectPath } from '../../src/kube/path.ts';
import { CONFIG_MAPS, NAMESPACES, resource, SERVICE_ACCOUNTS } from '../../src/kube/resource.ts';
import { EXTERNAL_NAME, INTERNAL_NAME } from '../../src/local/cluster-inputs.ts';
import { CONTROL_PLANE, type RealCluster } from './real-cluster.ts';
import type { LoadUser } from './real-load.ts';

export const LOAD_NAMESPACE = 'rotunda-load';
/** Every name kube-apiserver serves, in the order of its certificates. */
export const SERVING_NAMES = {
  localhost: 'localhost',
  service: 'kubernetes.default.svc',
  external: EXTERNAL_NAME,
  internal: INTERNAL_NAME,
  recovery: 'localhost-recovery',
} as const;

const CERTS = 'etc/kubernetes/static-pod-resources/kube-apiserver-certs/secrets';
const ROLE_BINDINGS = resource<RoleBinding>('rbac.authorization.k8s.io/v1', 'RoleBinding', 'rolebindings');
const ACCOUNT = { namespace: LOAD_NAMESPACE, name: 'load' };
const TOKEN_SECONDS = 3600;

/** Users of every kind of credential and every name: certificates as their owners find them on the nodes, and tokens. */
export async function loadUsers(cluster: RealCluster): Promise<LoadUser[]> {
  const token = await provideAccount(cluster);
  const admin = await loadAccess({ path: cluster.kubeconfig });
  const kubeconfig = (name: string, node: (typeof CONTROL_PLANE)[number]) =>
    loadAccess({ path: cluster.pathOn(node, `${CERTS}/node-kubeconfigs/${name}.kubeconfig`) });
  const [first, second, third] = CONTROL_PLANE;
  const { localhost, service, external, internal, recovery } = SERVING_NAMES;
  const users: [string, Access, string][] = [
    ['admin-external', admin, external],
    ['node-admin-localhost', await kubeconfig('localhost', first), localhost],
    ['node-admin-recovery', await kubeconfig('localhost-recovery', second), recovery],
    ['node-admin-external', await kubeconfig('lb-ext', third), external],
    ['node-admin-internal', await kubeconfig('lb-int', first), internal],
    ['pod-admin-localhost', pairAccess(cluster, 'control-plane-node-admin-client-cert-key', admin), localhost],
    ['token-service', tokenAccess(cluster, token), service],
    ['token-internal', withToken(admin, token), internal],
  ];
  return users.map(([name, access, serverName]) => ({ name, access: cluster.balanced(access, serverName) }));
}

/** An account that may do what the load does, and a token of it. */
async function provideAccount({ kube }: RealCluster): Promise<string> {
  await createIfMissing(kube, NAMESPACES, { metadata: { name: LOAD_NAMESPACE } });
  await createIfMissing(kube, SERVICE_ACCOUNTS, { metadata: ACCOUNT });
  await createIfMissing(kube, ROLE_BINDINGS, {
    metadata: ACCOUNT,
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'edit' },
    subjects: [{ kind: 'ServiceAccount', ...ACCOUNT }],
  });
  const body = {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { expirationSeconds: TOKEN_SECONDS },
  };
  const { status } = (await kube.request('POST', objectPath(SERVICE_ACCOUNTS, ACCOUNT, 'token'), { body })) as {
    status: { token: string };
  };
  return status.token;
}

function withToken(access: Access, token: string): Access {
  return changedAccess(access, ({ server, tls: { ca } }) => ({
    server,
    tls: { ca },
    headers: { authorization: `Bearer ${token}` },
  }));
}

/** As a pod: with the bundle that kube-controller-manager publishes in its namespace. */
function tokenAccess(cluster: RealCluster, token: string): Access {
  const load = async () => {
    const { data } = await cluster.kube.get(CONFIG_MAPS, { namespace: LOAD_NAMESPACE, name: 'kube-root-ca.crt' });
    const server = new URL('https://kubernetes.default.svc');
    return { server, tls: { ca: data?.['ca.crt'] ?? '' }, headers: { authorization: `Bearer ${token}` } };
  };
  return new RereadAccess(load, { namespace: LOAD_NAMESPACE });
}

/** With a pair of files of the first node, as a program in the pod of kube-apiserver has it. */
function pairAccess(cluster: RealCluster, secret: string, admin: Access): Access {
  const read = (file: string) => readFile(join(cluster.pathOn(CONTROL_PLANE[0], `${CERTS}/${secret}`), file), 'utf8');
  const load = async () => {
    const { server, tls, headers } = await admin.connection();
    const [certificate, key] = await Promise.all([read('tls.crt'), read('tls.key')]);
    return { server, tls: { ...tls, certificate, key }, headers };
  };
  return new RereadAccess(load, { namespace: LOAD_NAMESPACE });
}
