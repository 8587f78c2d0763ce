import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { readPlanObjects } from '../forecast/objects.ts';
import { simulate } from '../forecast/simulate.ts';
import { inventoryOf } from './read.ts';
import { objectFrom } from './shape.ts';
import { fileSource } from './source.ts';
import { bundleOf, daysFromNow, NOW, secretOf, testClient, testSigner } from './testing.ts';

const POOL = {
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfigPool',
  metadata: { name: 'worker' },
  spec: {
    paused: false,
    nodeSelector: { matchLabels: { 'node-role.kubernetes.io/worker': '' } },
    configuration: { name: 'rendered-worker-2', source: [{ name: '00-worker' }] },
  },
  status: {
    configuration: { name: 'rendered-worker-1' },
    machineCount: 1,
    conditions: [{ type: 'Updating', status: 'True', message: 'm' }],
  },
};

const NODE = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: {
    name: 'worker-0',
    labels: { 'node-role.kubernetes.io/worker': '' },
    annotations: { 'machineconfiguration.openshift.io/currentConfig': 'rendered-worker-1' },
    creationTimestamp: '2026-01-01T00:00:00Z',
  },
  spec: { unschedulable: false },
  status: {
    conditions: [{ type: 'Ready', status: 'True' }],
    addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
    nodeInfo: { kubeletVersion: 'v1' },
  },
};

const OPERATOR = {
  apiVersion: 'operator.openshift.io/v1',
  kind: 'KubeAPIServer',
  metadata: { name: 'cluster' },
  status: { latestAvailableRevision: 1, nodeStatuses: [{ nodeName: 'master-0', currentRevision: 1 }] },
};

const RENDERED = ['rendered-worker-1', 'rendered-worker-2'].map(name => ({
  apiVersion: 'machineconfiguration.openshift.io/v1',
  kind: 'MachineConfig',
  metadata: { name },
  spec: { config: { ignition: { version: '3.4.0' } }, kernelArguments: [name] },
}));

const INFRASTRUCTURE = {
  apiVersion: 'config.openshift.io/v1',
  kind: 'Infrastructure',
  metadata: { name: 'cluster' },
  status: { apiServerURL: 'https://api.example.org:6443', platformStatus: { type: 'None' } },
};

const NETWORK = {
  apiVersion: 'config.openshift.io/v1',
  kind: 'Network',
  metadata: { name: 'cluster' },
  status: { serviceNetwork: ['172.30.0.0/16'] },
};

function folder(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'rotunda-shape-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

describe('one malformed object never stops the work on the others (spec 70, 9.8)', async () => {
  const signer = await testSigner('signer');
  const leaf = secretOf('leaf', await testClient(signer, 'somebody'), 'target');
  const ownerReferences = [{ kind: 'ConfigMap', name: 'x', apiVersion: 'v1', uid: 'u' }];
  const owned = { ...leaf, metadata: { ...leaf.metadata, ownerReferences } };
  const other = secretOf('other', await testClient(signer, 'other'), 'target');
  const objects = [
    owned,
    secretOf('signer', signer, 'signer'),
    bundleOf('bundle', signer),
    POOL,
    NODE,
    OPERATOR,
    ...RENDERED,
    INFRASTRUCTURE,
    NETWORK,
  ];

  for (const object of objects) {
    test(`${object.kind} ${object.metadata?.name}: whatever stands in whichever field`, async t => {
      const others = objects.filter(candidate => candidate !== object);
      const dir = folder(t);
      for (const [path, changed] of mutations(object)) {
        writeFileSync(join(dir, 'list.json'), JSON.stringify({ kind: 'List', items: [...others, changed, other] }));
        const source = fileSource([dir]);
        try {
          const found = await readPlanObjects(source);
          const { certificates } = inventoryOf(found, NOW);
          assert.ok(certificates.some(({ metadata }) => metadata.name === 'other'));
          // The plan looks at certificates with keys of its own, which takes time; all the rest is cheap.
          await simulate({ ...found, secrets: [], configMaps: [] }, { now: NOW, until: daysFromNow(1) });
        } catch (error) {
          assert.fail(`${path}: ${(error as Error).stack} ${source.warnings.join()}`);
        }
      }
    });
  }

  test('what is wrong, and where, is told without the value', () => {
    const secret = { kind: 'Secret', metadata: { name: 's' } };
    assert.equal(
      objectFrom({ ...secret, data: { password: 5 } }),
      'Secret "s" is passed over: expected a map of texts at data, found a map',
    );
    assert.equal(
      objectFrom({ kind: 'Node', metadata: { name: 'n', creationTimestamp: 'yesterday' } }),
      'Node "n" is passed over: expected a time at metadata.creationTimestamp, found a string',
    );
    assert.equal(
      objectFrom({ kind: 'Node', metadata: { name: 'n', ownerReferences: [{ kind: 'ConfigMap' }] } }),
      'Node "n" is passed over: expected a text at metadata.ownerReferences[0].name, found nothing',
    );
    assert.equal(objectFrom(['no object']), undefined);
  });

  test('null is the same as absent', () => {
    assert.deepEqual(
      objectFrom({ kind: 'Secret', metadata: { name: 's', creationTimestamp: null, labels: null }, data: null }),
      { kind: 'Secret', metadata: { name: 's' } },
    );
  });
});

const WRONG = [null, 5, 'x', [], [null], {}, { a: null }];

/** The object with every field, at every depth, replaced by every wrong value in turn. */
function* mutations(value: unknown, path = ''): Generator<[string, unknown]> {
  if (typeof value !== 'object' || value === null) return;
  for (const key of Object.keys(value)) {
    const inner = (value as Record<string, unknown>)[key];
    const put = (replacement: unknown): unknown =>
      Array.isArray(value) ? value.with(Number(key), replacement) : { ...value, [key]: replacement };
    for (const wrong of WRONG) yield [`${path}.${key}=${JSON.stringify(wrong)}`, put(wrong)];
    for (const [place, changed] of mutations(inner, `${path}.${key}`)) yield [place, put(changed)];
  }
}
