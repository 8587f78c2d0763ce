import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { NOT_AFTER } from '../../certrotation/annotations.ts';
import { CLUSTER_OPERATORS } from '../../controller/cluster-operator-status.ts';
import { CONFIG_MAPS, type KubeObject, type Resource, resource, SECRETS } from '../../kube/resource.ts';
import { bundleOf, secretOf, testClient, testSigner } from '../testing.ts';
import { happeningsOf } from './changes.ts';

function told(kind: Resource, before: KubeObject | undefined, after: KubeObject | undefined): [string, string][] {
  const type = before === undefined ? 'added' : after === undefined ? 'deleted' : 'updated';
  return happeningsOf({ type, resource: kind, before, after }).map(({ what, text }) => [what, text]);
}

describe('what a change means to a person', async () => {
  const [old, current] = [await testSigner('signer', 20), await testSigner('signer', 2)];
  const [first, second] = [await testClient(old, 'user', 5), await testClient(current, 'user', 1)];
  const leaf = secretOf('leaf', first, 'target');
  const forced: Secret = {
    ...leaf,
    metadata: { ...leaf.metadata, annotations: { ...leaf.metadata?.annotations, [NOT_AFTER]: 'force-regeneration' } },
  };
  const renewed = secretOf('leaf', second, 'target');

  test('a regeneration from the wish to the new certificate', () => {
    assert.deepEqual(told(SECRETS, leaf, forced), [
      ['RegenerationStarted', 'regeneration asked for: the date became "force-regeneration"'],
    ]);
    assert.deepEqual(
      told(SECRETS, forced, renewed).map(([what]) => what),
      ['CertificateChanged', 'RegenerationFinished'],
    );
    assert.match(
      told(SECRETS, leaf, renewed)[0]?.[1] ?? '',
      /^certificate changed: "user" by "ns_signer@\d+", good until /,
    );
    assert.deepEqual(told(SECRETS, leaf, { ...leaf, metadata: { ...leaf.metadata, resourceVersion: '2' } }), []);
  });

  test('a bundle: which CA came and which went (spec 70, 9.7)', () => {
    const [before, after] = [bundleOf('ca', old), bundleOf('ca', current)];
    assert.match(
      told(CONFIG_MAPS, before, bundleOf('ca', old, current))[0]?.[1] ?? '',
      /^CA bundle has 2 CAs now: \+ ns_signer@\d+$/,
    );
    assert.match(told(CONFIG_MAPS, before, after)[0]?.[1] ?? '', /CAs now: \+ ns_signer@\d+; - ns_signer@\d+$/);
    assert.deepEqual(told(CONFIG_MAPS, { metadata: { name: 'x' } }, { metadata: { name: 'x' } }), []);
  });

  test('copies of revisions are no news, revisions are', () => {
    const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'revision-status-1', uid: 'u' }];
    assert.deepEqual(told(SECRETS, undefined, { ...leaf, metadata: { ...leaf.metadata, ownerReferences } }), []);
    const status: ConfigMap = {
      metadata: { namespace: 'openshift-etcd', name: 'revision-status-4' },
      data: { revision: '4', reason: 'why' },
    };
    assert.deepEqual(told(CONFIG_MAPS, undefined, status), [['RevisionCreated', 'revision 4 of etcd: why']]);
    assert.deepEqual(told(CONFIG_MAPS, status, undefined), [['RevisionPruned', 'revision 4 of etcd pruned']]);
  });

  test('nodes that reach a revision, operators whose condition changes', () => {
    const operator = (currentRevision: number, targetRevision: number) =>
      ({
        metadata: { name: 'cluster' },
        status: { nodeStatuses: [{ nodeName: 'n', currentRevision, targetRevision }] },
      }) as KubeObject;
    const kinds = resource('operator.openshift.io/v1', 'Etcd', 'etcds', false);
    assert.deepEqual(told(kinds, operator(1, 0), operator(1, 2)), [
      ['NodeTargetRevisionChanged', 'n goes from revision 1 to 2'],
    ]);
    assert.deepEqual(told(kinds, operator(1, 2), operator(2, 0)), [
      ['NodeCurrentRevisionChanged', 'n runs revision 2'],
    ]);
    const conditions = (status: string) =>
      ({
        metadata: { name: 'etcd' },
        status: { conditions: [{ type: 'Degraded', status, reason: 'R', message: 'm' }] },
      }) as KubeObject;
    assert.deepEqual(told(CLUSTER_OPERATORS, conditions('False'), conditions('True')), [
      ['ConditionChanged', 'Degraded=True (R: m)'],
    ]);
    assert.deepEqual(told(CLUSTER_OPERATORS, conditions('True'), conditions('True')), []);
  });
});
