import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { LAST_OBSERVED_SERVER_CA, SERVER_CA_DIGEST } from '../../machine-config-api/names.ts';
import { encodePem } from '../../pki/pem-block.ts';
import { certificate, NOW } from '../testing.ts';
import { mergeControllerConfig } from './apply.ts';
import { certificateInventory } from './certificates.ts';
import { decideServerCa, digestOf, GATHER_MS, isNodeBehind, SETTLE_MS, type ServerCaState } from './server-ca.ts';
import { completedStatus, failedStatus, startedStatus, whyIncomplete } from './status.ts';

const base64 = (text: string) => Buffer.from(text).toString('base64');
const [A, B] = [Buffer.from('a'), Buffer.from('b')];

describe('merging into what is there', () => {
  const merge = (existing: object, required: object) => mergeControllerConfig({ spec: existing }, { spec: required });
  test('a field whose source could not be read stays', () =>
    assert.equal(merge({ rootCAData: 'R' }, {}).changed, false));
  test('images are merged by name, texts are not cleared', () => {
    assert.deepEqual(
      merge({ images: { a: '1', b: '2' }, clusterDNSIP: 'x' }, { images: { b: '3' }, clusterDNSIP: '' }).object.spec,
      { images: { a: '1', b: '3' }, clusterDNSIP: 'x' },
    );
  });
  test('a name that ends in - takes an image away, as it does in metadata', () =>
    assert.deepEqual(merge({ images: { a: '1', b: '2' } }, { images: { 'a-': '' } }).object.spec?.images, { b: '2' }));
  test('registry lists are replaced by a list only, also by an empty one (CC-4)', () => {
    const existing = { imageRegistryBundleData: [{ file: 'a', data: 'YQ==' }] };
    assert.equal(merge(existing, { imageRegistryBundleData: null }).changed, false);
    assert.deepEqual(merge(existing, { imageRegistryBundleData: [] }).object.spec?.imageRegistryBundleData, []);
  });
  test('a cloud config that is gone is gone', () =>
    assert.equal(
      merge({ cloudProviderConfig: 'x' }, { cloudProviderConfig: '' }).object.spec?.cloudProviderConfig,
      '',
    ));
  test('absent, null and empty are the same', () =>
    assert.equal(
      merge({}, { additionalTrustBundle: null, imageRegistryBundleData: [], proxy: null, cloudProviderConfig: '' })
        .changed,
      false,
    ));
});

describe('the certificate list', () => {
  test('stops at a block that is no certificate, and never hangs (CT-2)', async () => {
    const bundle = `${await certificate('one')}${encodePem('CERTIFICATE', Buffer.from('x'))}${await certificate('two')}`;
    assert.deepEqual(
      certificateInventory({ rootCAData: base64(bundle) }).map(({ subject }) => subject),
      ['CN=one'],
    );
  });
  test('has an entry for each certificate, also twice (CT-1)', async () => {
    const one = await certificate('one');
    const spec = {
      kubeAPIServerServingCAData: base64(one + one),
      imageRegistryBundleUserData: [{ file: 'r..5000', data: base64(one) }],
    };
    assert.deepEqual(
      certificateInventory(spec).map(({ bundleFile }) => bundleFile),
      ['KubeAPIServerServingCAData', 'KubeAPIServerServingCAData', 'r..5000'],
    );
  });
});

describe('the server CA', () => {
  const state = (more: Partial<ServerCaState>): ServerCaState => ({
    serverCa: A,
    kubeconfigData: { bundle: A },
    handOver: 'receipts',
    stableSince: NOW,
    differsSince: NOW,
    announced: { rotate: 'false', digest: digestOf(A) },
    isAnyNodeBehind: () => false,
    ...more,
  });
  const soon = new Date(NOW.getTime() + GATHER_MS);
  const later = new Date(NOW.getTime() + SETTLE_MS);
  const table: [what: string, state: Partial<ServerCaState>, now: Date, expected: object][] = [
    ['all is as it was', {}, NOW, { write: 'none', rotate: 'false' }],
    ['changed at this moment', { serverCa: B }, NOW, { write: 'none', rotate: 'false', settlesAt: soon }],
    ['changed a moment ago', { serverCa: B }, soon, { write: 'patch', rotate: 'true' }],
    [
      'changes all the time',
      { serverCa: B, stableSince: soon, differsSince: NOW },
      soon,
      { write: 'patch', rotate: 'true' },
    ],
    [
      'changed less than a minute ago, and time decides',
      { serverCa: B, handOver: 'clock', stableSince: NOW, differsSince: new Date(0) },
      new Date(later.getTime() - 1),
      { write: 'none', rotate: 'false', settlesAt: later },
    ],
    [
      'changed a minute ago, and time decides',
      { serverCa: B, handOver: 'clock' },
      later,
      { write: 'patch', rotate: 'true' },
    ],
    [
      'written, and a node is behind',
      { announced: { rotate: 'true', digest: digestOf(A) }, isAnyNodeBehind: () => true },
      NOW,
      { write: 'none', rotate: 'true' },
    ],
    [
      'written, and all have it',
      { announced: { rotate: 'true', digest: digestOf(A) } },
      NOW,
      { write: 'none', rotate: 'false' },
    ],
    [
      'written, but never announced: the operator died in between',
      { announced: { rotate: 'false', digest: digestOf(B) } },
      NOW,
      { write: 'none', rotate: 'true' },
    ],
    [
      'a cluster of 4.16 that knows no digest',
      { announced: { rotate: 'false', digest: undefined }, isAnyNodeBehind: () => true },
      NOW,
      { write: 'none', rotate: 'false' },
    ],
    [
      'the source is gone while a node is behind',
      { serverCa: undefined, announced: { rotate: 'true', digest: digestOf(A) }, isAnyNodeBehind: () => true },
      NOW,
      { write: 'none', rotate: 'true' },
    ],
    ['without its key', { kubeconfigData: { bundle: undefined } }, NOW, { write: 'patch', rotate: 'true' }],
    ['not there', { kubeconfigData: undefined }, NOW, { write: 'create', rotate: 'true' }],
  ];
  for (const [what, given, now, expected] of table) {
    test(what, () => {
      const { bundle: _bundle, digest: _digest, ...decision } = decideServerCa(state(given), now);
      assert.deepEqual(decision, expected);
    });
  }

  test('who is behind', () => {
    const node = (annotations: Record<string, string>) => ({
      metadata: { annotations: { 'machineconfiguration.openshift.io/currentConfig': 'c', ...annotations } },
    });
    assert.equal(isNodeBehind(node({}), 'd'), true);
    assert.equal(isNodeBehind(node({ [LAST_OBSERVED_SERVER_CA]: 'true' }), 'd'), false);
    assert.equal(isNodeBehind(node({ [LAST_OBSERVED_SERVER_CA]: 'true', [SERVER_CA_DIGEST]: 'old' }), 'd'), true);
    assert.equal(isNodeBehind({ metadata: {} }, 'd'), false, 'no agent there');
  });
});

test('the status of a sync (4.2)', () => {
  const started = startedStatus(
    {
      metadata: { generation: 2 },
      status: { observedGeneration: 1, conditions: [{ type: 'TemplateControllerCompleted', status: 'True' }] },
    },
    'v',
    NOW,
  );
  assert.match(
    whyIncomplete({ metadata: { generation: 2 }, status: started }) ?? '',
    /completed\(false\) running\(true\)/,
  );
  const completed = completedStatus({ metadata: { generation: 2 }, status: started }, 'v', NOW);
  assert.equal(whyIncomplete({ metadata: { generation: 2 }, status: completed }), undefined);
  assert.equal(
    completedStatus({ metadata: { generation: 2 }, status: completed }, 'w', NOW).conditions,
    completed.conditions,
    'a message alone is no change',
  );
  const failed = failedStatus({ metadata: { generation: 2 }, status: completed }, 'v', 'no platform', NOW);
  assert.match(failed.conditions?.find(({ status }) => status === 'True')?.message ?? '', /no platform/);
});
