import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Pod, Service, Toleration } from 'kubernetes-types/core/v1.d.ts';
import type { PolicyRule } from 'kubernetes-types/rbac/v1.d.ts';
import type { PriorityClass } from 'kubernetes-types/scheduling/v1.d.ts';
import {
  CERTIFICATE_SIGNING_REQUESTS,
  CONFIG_MAPS,
  CUSTOM_RESOURCE_DEFINITIONS,
  type KubeObject,
  NAMESPACES,
  NODES,
  PODS,
  resource,
  SERVICE_ACCOUNTS,
  SERVICES,
} from '../../kube/resource.ts';
import { createCertificateRequest, encodeCertificateRequest } from '../../pki/csr.ts';
import { systemKeys } from '../../pki/keys.ts';
import { authenticated } from '../auth/user.ts';
import type { EmbeddedKube } from '../embedded.ts';
import { type Engine, startEngine } from '../engine.ts';

interface WithRules extends KubeObject {
  readonly rules: PolicyRule[];
}
interface Binding extends KubeObject {
  readonly roleRef: { apiGroup: string; kind: string; name: string };
  readonly subjects: { kind: string; name: string; apiGroup?: string }[];
}
const RBAC = 'rbac.authorization.k8s.io';
const ROLES = resource<WithRules>(`${RBAC}/v1`, 'Role', 'roles');
const CLUSTER_ROLES = resource<WithRules>(`${RBAC}/v1`, 'ClusterRole', 'clusterroles', false);
const ROLE_BINDINGS = resource<Binding>(`${RBAC}/v1`, 'RoleBinding', 'rolebindings');
const CLUSTER_ROLE_BINDINGS = resource<Binding>(`${RBAC}/v1`, 'ClusterRoleBinding', 'clusterrolebindings', false);
const PRIORITY_CLASSES = resource<PriorityClass>('scheduling.k8s.io/v1', 'PriorityClass', 'priorityclasses', false);
const GOODS = resource<KubeObject>('x.io/v1', 'Good', 'goods');

const CLIENT = 'kubernetes.io/kube-apiserver-client';

describe('admission', () => {
  let engine: Engine;
  let admin: EmbeddedKube;
  /** May write roles, bindings and signing requests, and grant nothing of it. */
  let dev: EmbeddedKube;
  let kubelet: EmbeddedKube;

  before(async () => {
    engine = await startEngine();
    admin = engine.kube;
    const as = (name: string, groups: string[]) => admin.as(authenticated({ name, uid: '', groups, extra: {} }));
    dev = as('dev', []);
    kubelet = as('system:node:a', ['system:nodes']);
    const rules = [{ apiGroups: [RBAC, 'certificates.k8s.io'], resources: ['*'], verbs: ['get', 'create', 'update'] }];
    await admin.create(CLUSTER_ROLES, { metadata: { name: 'dev' }, rules });
    await admin.create(CLUSTER_ROLE_BINDINGS, { metadata: { name: 'dev' }, ...bindingTo('ClusterRole', 'dev') });
    await admin.create(ROLES, { metadata: { name: 'reader', namespace: 'default' }, rules: READ_SECRETS });
  });
  after(() => engine.close());

  const READ_SECRETS = [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }];
  const bindingTo = (kind: string, name: string) => ({
    roleRef: { apiGroup: RBAC, kind, name },
    subjects: [{ kind: 'User', name: 'dev', apiGroup: RBAC }],
  });
  const excess = { code: 403, message: /is attempting to grant RBAC permissions not currently held/ };

  it('lets nobody grant what they do not have', async () => {
    const here = (name: string) => ({ metadata: { name, namespace: 'default' } });
    await assert.rejects(dev.create(ROLES, { ...here('more'), rules: READ_SECRETS }), excess);
    await assert.rejects(dev.create(CLUSTER_ROLES, { metadata: { name: 'more' }, rules: READ_SECRETS }), excess);
    await assert.rejects(dev.create(ROLE_BINDINGS, { ...here('more'), ...bindingTo('Role', 'reader') }), excess);
    const all = { metadata: { name: 'more' }, ...bindingTo('ClusterRole', 'cluster-admin') };
    await assert.rejects(dev.create(CLUSTER_ROLE_BINDINGS, all), excess);
    const none = await dev.create(ROLES, { ...here('none'), rules: [] });
    await assert.rejects(dev.update(ROLES, { ...none, rules: READ_SECRETS }), excess);
    const unbound = await dev.create(CLUSTER_ROLES, { metadata: { name: 'none' }, rules: [] });
    await assert.rejects(dev.update(CLUSTER_ROLES, { ...unbound, rules: READ_SECRETS }), excess);
    const bound = await admin.create(ROLE_BINDINGS, { ...here('some'), ...bindingTo('Role', 'reader'), subjects: [] });
    const subjects = [{ kind: 'User', name: 'eve', apiGroup: RBAC }];
    await assert.rejects(dev.update(ROLE_BINDINGS, { ...bound, subjects }), excess);
  });

  it('keeps kubelets to their own', async () => {
    const named = (name: string) => ({ metadata: { name } });
    await assert.rejects(kubelet.create(NODES, named('b')), { code: 403, message: /not allowed to modify node "b"/ });
    await kubelet.create(NODES, named('a'));
    const b = await admin.create(NODES, named('b'));
    const labels = { mine: 'yes' };
    await assert.rejects(kubelet.update(NODES, { ...b, metadata: { ...b.metadata, labels } }), {
      code: 403,
      message: /not allowed to modify node "b"/,
    });
    const spec = { nodeName: 'b', containers: [{ name: 'c', image: 'i' }] };
    await admin.create(PODS, { metadata: { name: 'elsewhere', namespace: 'default' }, spec });
    await assert.rejects(kubelet.delete(PODS, { name: 'elsewhere', namespace: 'default' }), {
      code: 403,
      message: /can only delete pods with spec.nodeName set to itself/,
    });
  });

  it('looks at who may have which certificate', async () => {
    const request = async (organizations: string[]) => {
      const key = await systemKeys.generate('P-256');
      const subject = { commonName: 'm', organizations };
      const made = await createCertificateRequest({ keys: systemKeys, key, subject, dnsNames: [] });
      return Buffer.from(encodeCertificateRequest(made)).toString('base64');
    };
    const spec = async (organizations: string[]) => ({
      request: await request(organizations),
      signerName: CLIENT,
      usages: ['digital signature', 'client auth'],
    });
    const master = { metadata: { name: 'master' }, spec: await spec(['system:masters']) };
    await assert.rejects(admin.create(CERTIFICATE_SIGNING_REQUESTS, master), {
      code: 403,
      message: /with system:masters group is not allowed/,
    });
    const mine = await dev.create(CERTIFICATE_SIGNING_REQUESTS, {
      metadata: { name: 'mine' },
      spec: await spec(['x']),
    });
    const condition = (type: string) => ({
      status: { conditions: [{ type, status: 'True', reason: 'r', message: 'm' }] },
    });
    const key = { name: 'mine' };
    const approval = { subresource: 'approval' } as const;
    const rights = [{ apiGroups: ['certificates.k8s.io'], resources: ['*'], verbs: ['patch'] }];
    await admin.create(CLUSTER_ROLES, { metadata: { name: 'patch' }, rules: rights });
    await admin.create(CLUSTER_ROLE_BINDINGS, { metadata: { name: 'patch' }, ...bindingTo('ClusterRole', 'patch') });
    const approve = { type: 'merge', body: condition('Approved') } as const;
    const refused = { code: 403, message: /user not permitted to approve requests with signerName/ };
    await assert.rejects(dev.patch(CERTIFICATE_SIGNING_REQUESTS, key, approve, approval), refused);
    const failed = { ...mine, ...condition('Failed'), status: { ...condition('Failed').status, certificate: 'eA==' } };
    await assert.rejects(dev.updateStatus(CERTIFICATE_SIGNING_REQUESTS, failed), {
      code: 403,
      message: /user not permitted to sign requests with signerName/,
    });
  });

  it('creates nothing of a kind or in a namespace that is on its way out', async () => {
    const versions = [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }];
    const spec = { group: 'x.io', scope: 'Namespaced', names: { plural: 'goods', kind: 'Good' }, versions };
    await admin.create(CUSTOM_RESOURCE_DEFINITIONS, { metadata: { name: 'goods.x.io' }, spec });
    await engine.idle();
    const held = { name: 'held', namespace: 'default', finalizers: ['x.io/held'] };
    await admin.create(GOODS, { metadata: held });
    await admin.delete(CUSTOM_RESOURCE_DEFINITIONS, { name: 'goods.x.io' });
    await assert.rejects(admin.create(GOODS, { metadata: { name: 'late', namespace: 'default' } }), {
      code: 405,
      message: 'create not allowed while custom resource definition is terminating',
    });
    await admin.create(NAMESPACES, { metadata: { name: 'leaving' } });
    await admin.create(CONFIG_MAPS, { metadata: { ...held, namespace: 'leaving' } });
    await admin.delete(NAMESPACES, { name: 'leaving' });
    await assert.rejects(admin.create(CONFIG_MAPS, { metadata: { name: 'late', namespace: 'leaving' } }), {
      code: 403,
      message: /because it is being terminated/,
    });
    await assert.rejects(admin.create(CONFIG_MAPS, { metadata: { name: 'x', namespace: 'nowhere' } }), {
      code: 404,
      message: 'namespaces "nowhere" not found',
    });
    await admin.create(CONFIG_MAPS, { metadata: { name: 'default', namespace: 'default' } });
    await admin.delete(CONFIG_MAPS, { name: 'default', namespace: 'default' });
    for (const name of ['default', 'kube-public', 'kube-system']) {
      await assert.rejects(admin.delete(NAMESPACES, { name }), { code: 403, message: /may not be deleted/ });
    }
  });

  function pod(name: string, spec: Partial<Pod['spec']> = {}): Promise<Pod> {
    const metadata = { name, namespace: 'default' };
    return admin.create(PODS, { metadata, spec: { containers: [{ name: 'c', image: 'i' }], ...spec } });
  }

  it('gives pods an account that exists, and none that does not', async () => {
    assert.equal((await pod('plain')).spec?.serviceAccountName, 'default');
    await admin.create(SERVICE_ACCOUNTS, { metadata: { name: 'worker', namespace: 'default' } });
    assert.equal((await pod('named', { serviceAccountName: 'worker' })).spec?.serviceAccountName, 'worker');
    assert.equal((await pod('older', { serviceAccount: 'worker' })).spec?.serviceAccountName, 'worker');
    const early = {
      metadata: { name: 'early', namespace: 'empty' },
      spec: { containers: [{ name: 'c', image: 'i' }] },
    };
    await admin.create(NAMESPACES, { metadata: { name: 'empty' } });
    assert.equal((await admin.create(PODS, early)).spec?.serviceAccountName, 'default', 'before there is one');
    const message = /error looking up service account default\/robot: serviceaccount "robot" not found/;
    await assert.rejects(pod('robot', { serviceAccountName: 'robot' }), { code: 403, message });
  });

  it('gives pods a priority by its name only', async () => {
    const { priority, priorityClassName } =
      (await pod('critical', { priorityClassName: 'system-node-critical' })).spec ?? {};
    assert.deepEqual([priority, priorityClassName], [2_000_001_000, 'system-node-critical']);
    await pod('right', { priorityClassName: 'system-node-critical', priority: 2_000_001_000 });
    await assert.rejects(pod('wrong', { priority: 5 }), {
      code: 403,
      message: /\(5\) must not be provided in pod spec/,
    });
    await assert.rejects(pod('unknown', { priorityClassName: 'x' }), {
      code: 403,
      message: /no PriorityClass with name x/,
    });
    await admin.create(PRIORITY_CLASSES, { metadata: { name: 'usual' }, value: 7, globalDefault: true });
    for (const name of ['a-higher', 'z-higher']) {
      await admin.create(PRIORITY_CLASSES, { metadata: { name }, value: 9, globalDefault: true });
    }
    const usual = (await pod('usual')).spec;
    assert.deepEqual([usual?.priority, usual?.priorityClassName], [7, 'usual']);
    for (const name of ['usual', 'a-higher', 'z-higher']) await admin.delete(PRIORITY_CLASSES, { name });
    assert.equal((await pod('none')).spec?.priority, 0);
  });

  it('lets pods stay for a while on a node in trouble unless they say otherwise', async () => {
    const [notReady, unreachable] = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'];
    const added = async (name: string, tolerations: Toleration[]) =>
      (await pod(name, { tolerations })).spec?.tolerations?.slice(tolerations.length).map(({ key }) => key) ?? [];
    assert.deepEqual(await added('t-none', []), [notReady, unreachable]);
    assert.deepEqual(await added('t-one', [{ key: notReady, operator: 'Exists', effect: 'NoExecute' }]), [unreachable]);
    assert.deepEqual(await added('t-any', [{ key: notReady, operator: 'Exists' }]), [unreachable]);
    assert.deepEqual(await added('t-all', [{ operator: 'Exists' }]), []);
    const other = { key: notReady, operator: 'Exists', effect: 'NoSchedule' };
    assert.deepEqual(await added('t-other', [other]), [notReady, unreachable]);
    const elsewhere = { key: 'x', operator: 'Exists', effect: 'NoExecute' };
    assert.deepEqual(await added('t-elsewhere', [elsewhere]), [notReady, unreachable]);
  });

  it('gives every Service an address of its own', async () => {
    const service = (name: string, spec: Service['spec'] = {}) => {
      const ports = [{ port: 80, protocol: 'TCP' }];
      return admin.create(SERVICES, { metadata: { name, namespace: 'default' }, spec: { ports, ...spec } });
    };
    const first = (await service('first')).spec?.clusterIP ?? '';
    assert.match(first, /^172\.30\.\d+\.\d+$/);
    await admin.delete(SERVICES, { name: 'first', namespace: 'default' });
    await service('thief', { clusterIP: first });
    const again = (await service('first')).spec?.clusterIP ?? '';
    assert.match(again, /^172\.30\.\d+\.\d+$/);
    assert.notEqual(again, first);
    // Where the search begins depends on the name: for these two at an address that is kept free, and at the last of all.
    for (const name of ['s14160', 's6494']) {
      const chosen = (await service(name)).spec?.clusterIP ?? '';
      assert.doesNotMatch(chosen, /^172\.30\.(?:0\.(?:\d|10)|255\.255)$/, name);
    }
    assert.equal((await service('fixed', { clusterIP: '172.30.0.10' })).spec?.clusterIP, '172.30.0.10');
    const named = await service('named', { type: 'ExternalName', externalName: 'x.example' });
    assert.equal(named.spec?.clusterIP, undefined);
  });
});
