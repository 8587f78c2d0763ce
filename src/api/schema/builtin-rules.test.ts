import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { builtinSchema } from './builtin.ts';
import { decodeError } from './decode.ts';
import { applyDefaults } from './defaults.ts';
import { formatFieldError } from './field-error.ts';
import type { JsonObject, Schema } from './schema.ts';
import { validate } from './validate.ts';

/** What the real server says of an object that is created. */
function faults(apiVersion: string, kind: string, object: JsonObject): string[] {
  const schema = builtinSchema(apiVersion, kind) as Schema;
  return validate(schema, applyDefaults(schema, object)).map(formatFieldError);
}

const RBAC = 'rbac.authorization.k8s.io';
const metadata = { name: 'x', namespace: 'ns' };
const pod = (...containers: JsonObject[]) => ({ metadata, spec: { containers } });
const configMap = (more: JsonObject) => faults('v1', 'ConfigMap', { metadata: { ...metadata, ...more } });

describe('rules of built-in kinds', () => {
  test('every container has an image', () => {
    assert.deepEqual(faults('v1', 'Pod', pod({ name: 'a', image: 'i' })), []);
    assert.deepEqual(faults('v1', 'Pod', pod({ name: 'a', image: 'i' }, { name: 'b' })), [
      'spec.containers[1].image: Required value',
    ]);
  });

  test('finalizers of built-in objects are standard or qualified, those of others need not be', () => {
    assert.deepEqual(configMap({ finalizers: ['kubernetes', 'orphan', 'a.b/c'] }), []);
    assert.deepEqual(configMap({ finalizers: ['a.b/c', 'nope'] }), [
      'metadata.finalizers[1]: Invalid value: "nope": name is neither a standard finalizer name nor is it fully qualified',
    ]);
    const event = { metadata: { ...metadata, finalizers: ['nope'] }, involvedObject: { namespace: 'ns' } };
    assert.deepEqual(faults('v1', 'Event', event), []);
  });

  test('events own nothing', () => {
    const owner = { apiVersion: 'v1', kind: 'Event', name: 'e', uid: 'u' };
    assert.deepEqual(configMap({ ownerReferences: [{ ...owner, kind: 'Pod' }] }), []);
    assert.match(
      configMap({ ownerReferences: [owner] }).join(),
      /^metadata.ownerReferences: Invalid value: .*: \/v1, Kind=Event is disallowed from being an owner$/,
    );
  });

  test('a disruption budget is a number or a share of at most all', () => {
    const budget = (spec: JsonObject) => faults('policy/v1', 'PodDisruptionBudget', { metadata, spec });
    for (const good of [0, 3, '0%', '100%']) assert.deepEqual(budget({ minAvailable: good }), []);
    assert.deepEqual(budget({ minAvailable: '150%' }), [
      'spec.minAvailable: Invalid value: "150%": must not be greater than 100%',
    ]);
    assert.deepEqual(budget({ maxUnavailable: -1 }), [
      'spec.maxUnavailable: Invalid value: -1: must be greater than or equal to 0',
    ]);
    assert.deepEqual(budget({ maxUnavailable: '5' }), [
      `spec.maxUnavailable: Invalid value: "5": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')`,
    ]);
  });

  test('a service has ports unless it is headless or an alias', () => {
    const service = (spec: JsonObject) => faults('v1', 'Service', { metadata, spec });
    assert.deepEqual(service({}), ['spec.ports: Required value']);
    assert.deepEqual(faults('v1', 'Service', { metadata }), ['spec.ports: Required value']);
    for (const good of [
      { clusterIP: 'None' },
      { type: 'ExternalName', externalName: 'a.b' },
      { ports: [{ port: 1 }] },
    ]) {
      assert.deepEqual(service(good), []);
    }
  });

  test('taints have the syntax of labels and occur once for each effect', () => {
    const node = (...taints: JsonObject[]) => faults('v1', 'Node', { metadata: { name: 'n' }, spec: { taints } });
    const [a, b] = [
      { key: 'a', effect: 'NoSchedule' },
      { key: 'a', effect: 'NoExecute' },
    ];
    assert.deepEqual(node(a, b), []);
    assert.match(
      node(a, b, a).join(),
      /^spec.taints\[2\]: Duplicate value: .*: taints must be unique by key and effect$/,
    );
    assert.match(node({ ...a, key: 'a b' }).join(), /^spec.taints\[0\].key: Invalid value: "a b": name part must /);
    assert.match(node({ ...a, value: 'a b' }).join(), /^spec.taints\[0\].value: Invalid value: "a b": a valid label /);
  });

  test('an event lies in the namespace of what it is about', () => {
    const event = (namespace: string, about: JsonObject) =>
      faults('v1', 'Event', { metadata: { name: 'e', namespace }, involvedObject: { kind: 'Pod', ...about } });
    assert.deepEqual(event('ns', { namespace: 'ns' }), []);
    assert.deepEqual(event('default', {}), []);
    assert.deepEqual(event('ns', {}), ['involvedObject.namespace: Invalid value: "": does not match event.namespace']);
    assert.deepEqual(event('default', { namespace: 'ns' }), [
      'involvedObject.namespace: Invalid value: "ns": does not match event.namespace',
    ]);
    const regarding = { metadata, regarding: { namespace: 'other' }, eventTime: '2026-01-01T00:00:00.000000Z' };
    assert.deepEqual(faults('events.k8s.io/v1', 'Event', regarding), [
      'regarding.namespace: Invalid value: "other": does not match event.namespace',
    ]);
  });

  test('pods of workloads are always started again', () => {
    const labels = { a: 'b' };
    for (const kind of ['DaemonSet', 'Deployment', 'ReplicaSet', 'StatefulSet']) {
      const workload = (restartPolicy: string) => {
        const template = { metadata: { labels }, spec: { restartPolicy, containers: [{ name: 'a', image: 'i' }] } };
        return faults('apps/v1', kind, { metadata, spec: { selector: { matchLabels: labels }, template } });
      };
      assert.deepEqual(workload('Always'), []);
      assert.deepEqual(workload('Never'), [
        'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
      ]);
    }
  });

  test('a rule is about resources or about paths, and in a namespace about resources only', () => {
    const rules = (kind: string, rule: JsonObject) =>
      faults(`${RBAC}/v1`, kind, { metadata, rules: [{ verbs: ['get'], ...rule }] });
    const resources = { apiGroups: [''], resources: ['pods'] };
    const paths = { nonResourceURLs: ['/x'] };
    assert.deepEqual(rules('ClusterRole', resources), []);
    assert.deepEqual(rules('ClusterRole', paths), []);
    assert.deepEqual(rules('Role', resources), []);
    assert.deepEqual(rules('ClusterRole', { ...resources, ...paths }), [
      'rules[0].nonResourceURLs: Invalid value: ["/x"]: rules cannot apply to both regular resources and non-resource URLs',
    ]);
    assert.deepEqual(rules('Role', paths), [
      'rules[0].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs',
    ]);
    assert.deepEqual(rules('Role', {}), [
      'rules[0].apiGroups: Required value: resource rules must supply at least one api group',
      'rules[0].resources: Required value: resource rules must supply at least one resource',
    ]);
  });

  test('a cluster role binding grants cluster roles, to service accounts with a namespace', () => {
    const account = { kind: 'ServiceAccount', name: 'a' };
    const binding = (kind: string, role: string, subject: JsonObject, apiGroup = RBAC) =>
      faults(`${RBAC}/v1`, kind, { metadata, roleRef: { apiGroup, kind: role, name: 'r' }, subjects: [subject] });
    assert.deepEqual(binding('ClusterRoleBinding', 'ClusterRole', { ...account, namespace: 'ns' }), []);
    assert.deepEqual(binding('RoleBinding', 'Role', account), []);
    assert.deepEqual(binding('RoleBinding', 'Role', account, ''), []);
    assert.deepEqual(binding('ClusterRoleBinding', 'Role', account), [
      'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
      'subjects[0].namespace: Required value',
    ]);
    assert.deepEqual(binding('RoleBinding', 'User', account), [
      'roleRef.kind: Unsupported value: "User": supported values: "Role", "ClusterRole"',
    ]);
    assert.deepEqual(binding('RoleBinding', 'Role', account, 'other'), [
      `roleRef.apiGroup: Unsupported value: "other": supported values: "${RBAC}"`,
    ]);
  });

  test('times of leases have six digits after the second', () => {
    const lease = (renewTime: string) =>
      decodeError(builtinSchema('coordination.k8s.io/v1', 'Lease') as Schema, { spec: { renewTime } });
    assert.equal(lease('2020-01-01T00:00:00.123456Z'), undefined);
    assert.equal(lease('2020-01-01T00:00:00.123456+02:00'), undefined);
    const layout = '2006-01-02T15:04:05.000000Z07:00';
    for (const [text, rest, expected] of [
      ['2020-01-01T00:00:00.1Z', '.1Z', '.000000'],
      ['2020-01-01T00:00:00Z', 'Z', '.000000'],
      ['2020-01-01T00:00:00.1234567Z', '7Z', 'Z07:00'],
    ]) {
      assert.equal(
        lease(text as string),
        `parsing time "${text}" as "${layout}": cannot parse "${rest}" as "${expected}"`,
      );
    }
  });
});
