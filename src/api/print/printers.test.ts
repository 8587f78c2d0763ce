import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { printerFor } from './printers.ts';
import { type Cell, printTable } from './table.ts';

const now = new Date('2026-06-01T12:00:00Z');
const metadata = { name: 'x', namespace: 'n', creationTimestamp: '2026-06-01T11:00:00Z' };

describe('columns and cells of built-in kinds', () => {
  const containers = [
    { name: 'a', image: 'img/a' },
    { name: 'b', image: 'img/b' },
  ];
  const template = { spec: { containers } };
  const selector = { matchLabels: { app: 'x' } };
  const cases: [kind: string, group: string, plural: string, object: object, expected: Record<string, Cell>][] = [
    [
      'Secret',
      '',
      'secrets',
      { type: 'kubernetes.io/tls', data: { a: '', b: '' } },
      { Name: 'x', Type: 'kubernetes.io/tls', Data: 2, Age: '60m' },
    ],
    ['ConfigMap', '', 'configmaps', { data: { a: '' }, binaryData: { b: '' } }, { Name: 'x', Data: 2, Age: '60m' }],
    ['Namespace', '', 'namespaces', { status: { phase: 'Active' } }, { Name: 'x', Status: 'Active', Age: '60m' }],
    ['ServiceAccount', '', 'serviceaccounts', {}, { Name: 'x', Secrets: 0, Age: '60m' }],
    [
      'Lease',
      'coordination.k8s.io',
      'leases',
      { spec: { holderIdentity: 'me' } },
      { Name: 'x', Holder: 'me', Age: '60m' },
    ],
    [
      'Service',
      '',
      'services',
      {
        spec: {
          type: 'NodePort',
          clusterIPs: ['10.0.0.1'],
          ports: [
            { port: 80, nodePort: 30080, protocol: 'TCP' },
            { port: 53, protocol: 'UDP' },
          ],
        },
      },
      {
        Name: 'x',
        Type: 'NodePort',
        'Cluster-IP': '10.0.0.1',
        'External-IP': '<none>',
        'Port(s)': '80:30080/TCP,53/UDP',
        Age: '60m',
        Selector: '<none>',
      },
    ],
    [
      'Service with load balancer',
      '',
      'services',
      {
        spec: { type: 'LoadBalancer', clusterIP: '10.0.0.1', selector: { b: '2', a: '1' } },
        status: { loadBalancer: {} },
      },
      {
        Name: 'x',
        Type: 'LoadBalancer',
        'Cluster-IP': '10.0.0.1',
        'External-IP': '<pending>',
        'Port(s)': '<none>',
        Age: '60m',
        Selector: 'a=1,b=2',
      },
    ],
    [
      'Endpoints',
      '',
      'endpoints',
      { subsets: [{ addresses: [{ ip: '10.0.0.1' }, { ip: 'fd00::1' }], ports: [{ port: 2379 }, { port: 2380 }] }] },
      { Name: 'x', Endpoints: '10.0.0.1:2379,[fd00::1]:2379,10.0.0.1:2380 + 1 more...', Age: '60m' },
    ],
    [
      'EndpointSlice',
      'discovery.k8s.io',
      'endpointslices',
      { addressType: 'IPv4', endpoints: [{ addresses: ['10.0.0.1'] }], ports: null },
      { Name: 'x', AddressType: 'IPv4', Ports: '<unset>', Endpoints: '10.0.0.1', Age: '60m' },
    ],
    [
      'Deployment',
      'apps',
      'deployments',
      {
        spec: { replicas: 3, selector, template },
        status: { readyReplicas: 2, updatedReplicas: 1, availableReplicas: 2 },
      },
      {
        Name: 'x',
        Ready: '2/3',
        'Up-to-date': 1,
        Available: 2,
        Age: '60m',
        Containers: 'a,b',
        Images: 'img/a,img/b',
        Selector: 'app=x',
      },
    ],
    [
      'DaemonSet',
      'apps',
      'daemonsets',
      {
        spec: { selector, template },
        status: { desiredNumberScheduled: 3, currentNumberScheduled: 3, numberReady: 2 },
      },
      {
        Name: 'x',
        Desired: 3,
        Current: 3,
        Ready: 2,
        'Up-to-date': 0,
        Available: 0,
        'Node Selector': '<none>',
        Age: '60m',
        Containers: 'a,b',
        Images: 'img/a,img/b',
        Selector: 'app=x',
      },
    ],
    [
      'ReplicaSet',
      'apps',
      'replicasets',
      { spec: { replicas: 2, selector, template }, status: { replicas: 2 } },
      {
        Name: 'x',
        Desired: 2,
        Current: 2,
        Ready: 0,
        Age: '60m',
        Containers: 'a,b',
        Images: 'img/a,img/b',
        Selector: 'app=x',
      },
    ],
    [
      'StatefulSet',
      'apps',
      'statefulsets',
      { spec: { replicas: 1, template } },
      { Name: 'x', Ready: '0/1', Age: '60m', Containers: 'a,b', Images: 'img/a,img/b' },
    ],
    [
      'Job',
      'batch',
      'jobs',
      {
        spec: { completions: 1, template },
        status: {
          succeeded: 1,
          startTime: '2026-06-01T11:00:00Z',
          completionTime: '2026-06-01T11:00:42Z',
          conditions: [{ type: 'Complete', status: 'True' }],
        },
      },
      {
        Name: 'x',
        Status: 'Complete',
        Completions: '1/1',
        Duration: '42s',
        Age: '60m',
        Containers: 'a,b',
        Images: 'img/a,img/b',
        Selector: '<none>',
      },
    ],
    [
      'ControllerRevision',
      'apps',
      'controllerrevisions',
      {
        metadata: {
          ...metadata,
          ownerReferences: [{ apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'd', controller: true }],
        },
        revision: 4,
      },
      { Name: 'x', Controller: 'daemonset.apps/d', Revision: 4, Age: '60m' },
    ],
    [
      'PodDisruptionBudget',
      'policy',
      'poddisruptionbudgets',
      { spec: { maxUnavailable: '50%' }, status: { disruptionsAllowed: 1 } },
      { Name: 'x', 'Min Available': 'N/A', 'Max Unavailable': '50%', 'Allowed Disruptions': 1, Age: '60m' },
    ],
    [
      'RoleBinding',
      'rbac.authorization.k8s.io',
      'rolebindings',
      {
        roleRef: { kind: 'Role', name: 'r' },
        subjects: [
          { kind: 'User', name: 'u' },
          { kind: 'Group', name: 'g' },
          { kind: 'ServiceAccount', namespace: 'n', name: 's' },
        ],
      },
      { Name: 'x', Role: 'Role/r', Age: '60m', Users: 'u', Groups: 'g', ServiceAccounts: 'n/s' },
    ],
    [
      'ClusterRole',
      'rbac.authorization.k8s.io',
      'clusterroles',
      {},
      { Name: 'x', 'Created At': '2026-06-01T11:00:00Z' },
    ],
    [
      'CustomResourceDefinition',
      'apiextensions.k8s.io',
      'customresourcedefinitions',
      {},
      { Name: 'x', 'Created At': '2026-06-01T11:00:00Z' },
    ],
    [
      'CertificateSigningRequest',
      'certificates.k8s.io',
      'certificatesigningrequests',
      {
        spec: { signerName: 'a/b', username: 'u', expirationSeconds: 86400 },
        status: { conditions: [{ type: 'Approved' }], certificate: 'x' },
      },
      {
        Name: 'x',
        Age: '60m',
        SignerName: 'a/b',
        Requestor: 'u',
        RequestedDuration: '24h',
        Condition: 'Approved,Issued',
      },
    ],
    [
      'Node',
      '',
      'nodes',
      {
        metadata: {
          ...metadata,
          labels: { 'node-role.kubernetes.io/master': '', 'node-role.kubernetes.io/control-plane': '' },
        },
        spec: { unschedulable: true },
        status: {
          conditions: [{ type: 'Ready', status: 'False' }],
          addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
          nodeInfo: { kubeletVersion: 'v1.29.0', kernelVersion: '6.1', architecture: 'arm64' },
        },
      },
      {
        Name: 'x',
        Status: 'NotReady,SchedulingDisabled',
        Roles: 'control-plane,master',
        Age: '60m',
        Version: 'v1.29.0',
        'Internal-IP': '10.0.0.1',
        'External-IP': '<none>',
        'OS-Image': '<unknown>',
        'Kernel-Version': '6.1 (arm64)',
        'Container-Runtime': '<unknown>',
      },
    ],
    [
      'Node nobody has heard of',
      '',
      'nodes',
      {},
      {
        Name: 'x',
        Status: 'Unknown',
        Roles: '<none>',
        Age: '60m',
        Version: '',
        'Internal-IP': '<none>',
        'External-IP': '<none>',
        'OS-Image': '<unknown>',
        'Kernel-Version': '<unknown>',
        'Container-Runtime': '<unknown>',
      },
    ],
    [
      'Event',
      '',
      'events',
      {
        involvedObject: { kind: 'Pod', name: 'p', fieldPath: 'spec' },
        type: 'Warning',
        reason: 'BackOff',
        message: ' again ',
        source: { component: 'kubelet', host: 'h' },
        count: 3,
        firstTimestamp: '2026-06-01T11:58:00Z',
        lastTimestamp: '2026-06-01T11:59:30Z',
      },
      {
        'Last Seen': '30s',
        Type: 'Warning',
        Reason: 'BackOff',
        Object: 'pod/p',
        Subobject: 'spec',
        Source: 'kubelet, h',
        Message: 'again',
        'First Seen': '2m',
        Count: 3,
        Name: 'x',
      },
    ],
    [
      'Event of the newer group',
      'events.k8s.io',
      'events',
      {
        regarding: { kind: 'Node', name: 'n' },
        type: 'Normal',
        reason: 'R',
        note: 'm',
        eventTime: '2026-06-01T11:59:50.000000Z',
        reportingController: 'c',
      },
      {
        'Last Seen': '10s',
        Type: 'Normal',
        Reason: 'R',
        Object: 'node/n',
        Subobject: '',
        Source: 'c',
        Message: 'm',
        'First Seen': '10s',
        Count: 1,
        Name: 'x',
      },
    ],
    [
      'PriorityClass',
      'scheduling.k8s.io',
      'priorityclasses',
      { value: 10 },
      { Name: 'x', Value: 10, 'Global-Default': false, Age: '60m', PreemptionPolicy: '' },
    ],
  ];
  for (const [kind, group, plural, object, expected] of cases) {
    it(kind, () => {
      const printer = printerFor(group, plural);
      const cells = printer.cells({ metadata, ...object }, now);
      const row = Object.fromEntries(printer.columns.map((column, index) => [column.name, cells[index]]));
      assert.deepEqual(row, expected);
      assert.deepEqual(
        printer.columns.map(column => column.name),
        Object.keys(expected),
      );
    });
  }

  it('survives an object with nothing in it', () => {
    for (const [, group, plural] of cases) {
      if (plural.endsWith('bindings') || plural === 'certificatesigningrequests') continue;
      const printer = printerFor(group, plural);
      assert.equal(printer.cells({}, now).length, printer.columns.length, plural);
    }
  });
});

describe('printTable', () => {
  const pod: Pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...metadata, resourceVersion: '7' },
    status: { phase: 'Succeeded' },
  };
  const printer = printerFor('', 'pods');

  it('one object gives its resource version, a list its own metadata', () => {
    assert.deepEqual(printTable(printer, [pod], { now, includeObject: 'None' }).metadata, { resourceVersion: '7' });
    const list = { resourceVersion: '9', continue: 'c', remainingItemCount: 2 };
    assert.deepEqual(printTable(printer, [pod], { now, includeObject: 'None', metadata: list }).metadata, list);
  });

  it('includeObject', () => {
    const rowOf = (includeObject: 'None' | 'Metadata' | 'Object') =>
      printTable(printer, [pod], { now, includeObject }).rows[0];
    assert.equal(rowOf('None')?.object, undefined);
    assert.deepEqual(rowOf('Metadata')?.object, {
      kind: 'PartialObjectMetadata',
      apiVersion: 'meta.k8s.io/v1',
      metadata: pod.metadata,
    });
    assert.equal(rowOf('Object')?.object, pod);
  });

  it('a pod that is over is marked', () => {
    const [row] = printTable(printer, [pod], { now, includeObject: 'None' }).rows;
    assert.equal(row?.conditions?.[0]?.type, 'Completed');
  });

  it('later watch events leave the columns out', () => {
    assert.deepEqual(
      printTable(printer, [pod], { now, includeObject: 'None', withColumns: false }).columnDefinitions,
      [],
    );
    assert.equal(printTable(printer, [], { now, includeObject: 'None' }).columnDefinitions.length, 9);
  });
});
