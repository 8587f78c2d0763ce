import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { builtinSchema } from './builtin.ts';
import { applyDefaults } from './defaults.ts';
import type { JsonObject, Schema } from './schema.ts';

const fill = (apiVersion: string, kind: string, object: JsonObject): JsonObject =>
  applyDefaults(builtinSchema(apiVersion, kind) as Schema, object);
const specOf = (object: JsonObject): JsonObject => object['spec'] as JsonObject;

describe('defaults of built-in kinds', () => {
  test('a pod', () => {
    const pod = fill('v1', 'Pod', {
      spec: {
        serviceAccountName: 'me',
        containers: [
          {
            name: 'c',
            image: 'registry:5000/app',
            ports: [{ containerPort: 80 }],
            livenessProbe: { httpGet: { port: 80 }, timeoutSeconds: 0 },
            resources: { limits: { cpu: '1' } },
            env: [{ name: 'IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } }],
          },
        ],
        volumes: [{ name: 'e' }, { name: 's', secret: { secretName: 's' } }, { name: 'h', hostPath: { path: '/' } }],
      },
    });
    assert.deepEqual(specOf(pod), {
      serviceAccountName: 'me',
      serviceAccount: 'me',
      containers: [
        {
          name: 'c',
          image: 'registry:5000/app',
          ports: [{ containerPort: 80, protocol: 'TCP' }],
          livenessProbe: {
            httpGet: { port: 80, path: '/', scheme: 'HTTP' },
            timeoutSeconds: 1,
            periodSeconds: 10,
            successThreshold: 1,
            failureThreshold: 3,
          },
          resources: { limits: { cpu: '1' }, requests: { cpu: '1' } },
          env: [{ name: 'IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP', apiVersion: 'v1' } } }],
          terminationMessagePath: '/dev/termination-log',
          terminationMessagePolicy: 'File',
          imagePullPolicy: 'Always',
        },
      ],
      volumes: [
        { name: 'e', emptyDir: {} },
        { name: 's', secret: { secretName: 's', defaultMode: 420 } },
        { name: 'h', hostPath: { path: '/', type: '' } },
      ],
      dnsPolicy: 'ClusterFirst',
      restartPolicy: 'Always',
      schedulerName: 'default-scheduler',
      securityContext: {},
      terminationGracePeriodSeconds: 30,
      enableServiceLinks: true,
    });
  });

  test('pull policy follows the tag', () => {
    const cases: [image: string, policy: string][] = [
      ['nginx', 'Always'],
      ['nginx:latest', 'Always'],
      ['nginx:1', 'IfNotPresent'],
      ['localhost:5000/nginx', 'Always'],
      ['localhost:5000/nginx:1', 'IfNotPresent'],
      ['nginx@sha256:abc', 'IfNotPresent'],
      ['nginx:latest@sha256:abc', 'Always'],
    ];
    for (const [image, policy] of cases) {
      const pod = fill('v1', 'Pod', { spec: { containers: [{ name: 'c', image }] } });
      assert.equal((specOf(pod)['containers'] as JsonObject[])[0]?.['imagePullPolicy'], policy, image);
    }
  });

  test('the host network makes host ports, in pods but not in templates', () => {
    const spec = { hostNetwork: true, containers: [{ name: 'c', ports: [{ containerPort: 80 }] }] };
    const inPod = fill('v1', 'Pod', { spec });
    const inTemplate = fill('apps/v1', 'DaemonSet', { spec: { template: { spec } } });
    assert.match(JSON.stringify(inPod), /"hostPort":80/);
    assert.doesNotMatch(JSON.stringify(inTemplate), /hostPort/);
  });

  test('workloads', () => {
    assert.deepEqual(specOf(fill('apps/v1', 'Deployment', { spec: {} })), {
      progressDeadlineSeconds: 600,
      replicas: 1,
      revisionHistoryLimit: 10,
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '25%', maxSurge: '25%' } },
    });
    assert.deepEqual(specOf(fill('apps/v1', 'Deployment', { spec: { strategy: { type: 'Recreate' } } }))['strategy'], {
      type: 'Recreate',
    });
    assert.deepEqual(specOf(fill('apps/v1', 'DaemonSet', { spec: {} })), {
      revisionHistoryLimit: 10,
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } },
    });
    assert.deepEqual(specOf(fill('apps/v1', 'StatefulSet', { spec: {} })), {
      persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Retain', whenScaled: 'Retain' },
      podManagementPolicy: 'OrderedReady',
      replicas: 1,
      revisionHistoryLimit: 10,
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 0 } },
    });
    assert.deepEqual(
      specOf(fill('apps/v1', 'StatefulSet', { spec: { updateStrategy: { type: 'RollingUpdate' } } }))['updateStrategy'],
      {
        type: 'RollingUpdate',
      },
    );
    assert.deepEqual(specOf(fill('batch/v1', 'Job', { spec: {} })), {
      completions: 1,
      parallelism: 1,
      backoffLimit: 6,
      completionMode: 'NonIndexed',
      suspend: false,
      podReplacementPolicy: 'TerminatingOrFailed',
      manualSelector: false,
    });
    const cron = specOf(fill('batch/v1', 'CronJob', { spec: { jobTemplate: { spec: {} } } }));
    assert.deepEqual(cron['jobTemplate'], { spec: {} }, 'jobs in cron jobs get theirs when they are made');
  });

  test('services', () => {
    assert.deepEqual(specOf(fill('v1', 'Service', { spec: { ports: [{ port: 80 }] } })), {
      ports: [{ port: 80, protocol: 'TCP', targetPort: 80 }],
      sessionAffinity: 'None',
      type: 'ClusterIP',
      internalTrafficPolicy: 'Cluster',
    });
    const balanced = specOf(fill('v1', 'Service', { spec: { type: 'LoadBalancer', sessionAffinity: 'ClientIP' } }));
    assert.equal(balanced['externalTrafficPolicy'], 'Cluster');
    assert.equal(balanced['allocateLoadBalancerNodePorts'], true);
    assert.deepEqual(balanced['sessionAffinityConfig'], { clientIP: { timeoutSeconds: 10800 } });
    const external = specOf(fill('v1', 'Service', { spec: { type: 'ExternalName', externalName: 'x' } }));
    assert.equal(external['internalTrafficPolicy'], undefined);
  });

  test('secrets take stringData into data', () => {
    const secret = fill('v1', 'Secret', { data: { a: 'YQ==', b: 'b2xk' }, stringData: { b: 'new', c: 'ü' } });
    assert.deepEqual(secret, { data: { a: 'YQ==', b: 'bmV3', c: 'w7w=' }, type: 'Opaque' });
  });

  test('namespaces carry their name as a label, role references their group', () => {
    assert.deepEqual(fill('v1', 'Namespace', { metadata: { name: 'n', labels: { a: 'b' } } })['metadata'], {
      name: 'n',
      labels: { a: 'b', 'kubernetes.io/metadata.name': 'n' },
    });
    const binding = fill('rbac.authorization.k8s.io/v1', 'RoleBinding', {
      roleRef: { kind: 'Role', name: 'r' },
      subjects: [
        { kind: 'User', name: 'u' },
        { kind: 'ServiceAccount', name: 's', namespace: 'n' },
      ],
    });
    assert.deepEqual(binding, {
      roleRef: { kind: 'Role', name: 'r', apiGroup: 'rbac.authorization.k8s.io' },
      subjects: [
        { kind: 'User', name: 'u', apiGroup: 'rbac.authorization.k8s.io' },
        { kind: 'ServiceAccount', name: 's', namespace: 'n' },
      ],
    });
  });

  test('done twice is done once, and what needs nothing comes back as it is', () => {
    const objects: [string, string, JsonObject][] = [
      [
        'v1',
        'Pod',
        { spec: { hostNetwork: true, containers: [{ name: 'c', image: 'i', ports: [{ containerPort: 1 }] }] } },
      ],
      [
        'apps/v1',
        'StatefulSet',
        { spec: { template: { spec: { containers: [{ name: 'c' }] } }, volumeClaimTemplates: [{ spec: {} }] } },
      ],
      ['v1', 'Service', { spec: { type: 'NodePort', ports: [{ port: 1 }] } }],
      ['batch/v1', 'Job', { spec: { parallelism: 2 } }],
      ['v1', 'Namespace', { metadata: { name: 'n' } }],
    ];
    for (const [apiVersion, kind, object] of objects) {
      const once = fill(apiVersion, kind, object);
      assert.equal(fill(apiVersion, kind, once), once, kind);
    }
  });
});

describe('defaults of custom resources', () => {
  const schema: Schema = {
    type: 'object',
    properties: {
      spec: {
        type: 'object',
        default: {},
        properties: {
          replicas: { type: 'integer', default: 1 },
          note: { type: 'string', nullable: true, default: 'n' },
          plain: { type: 'string' },
          nested: {
            type: 'object',
            properties: { deep: { type: 'array', default: [{ a: 1 }], items: { type: 'object' } } },
          },
        },
      },
      byName: {
        type: 'object',
        additionalProperties: { type: 'object', properties: { on: { type: 'boolean', default: true } } },
      },
    },
  };

  test('fill what is absent, at any depth and in maps', () => {
    assert.deepEqual(applyDefaults(schema, { byName: { x: {}, y: { on: false } } }), {
      byName: { x: { on: true }, y: { on: false } },
      spec: { replicas: 1, note: 'n' },
    });
    assert.deepEqual(applyDefaults(schema, { spec: { nested: {} } }).spec, {
      nested: { deep: [{ a: 1 }] },
      replicas: 1,
      note: 'n',
    });
  });

  test('a null that is not allowed counts as absent, one that is allowed stays', () => {
    assert.deepEqual(applyDefaults(schema, { spec: { replicas: null, note: null, plain: null } }), {
      spec: { replicas: 1, note: null },
    });
  });

  test('an empty string is a value', () => {
    assert.deepEqual(applyDefaults(schema, { spec: { note: '', replicas: 2 } }).spec, { note: '', replicas: 2 });
  });

  test('a default is never shared between objects', () => {
    const first = applyDefaults(schema, { spec: { nested: {} } }) as unknown as {
      spec: { nested: { deep: { a: number }[] } };
    };
    (first.spec.nested.deep[0] as { a: number }).a = 2;
    assert.deepEqual(applyDefaults(schema, { spec: { nested: {} } }).spec.nested, { deep: [{ a: 1 }] });
  });
});
