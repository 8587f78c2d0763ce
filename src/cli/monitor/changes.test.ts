import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { NOT_AFTER } from '../../certrotation/annotations.ts';
import { CLUSTER_OPERATORS } from '../../controller/cluster-operator-status.ts';
import { BECAUSE, RECEIPTS, SINCE, TAKEN_BACK, TOOK, WAIVED } from '../../hand-over/names.ts';
import { bundleOf, secretOf, testClient, testSigner } from '../../inventory/testing.ts';
import { CONFIG_MAPS, EVENTS, type KubeObject, NODES, type Resource, resource, SECRETS } from '../../kube/resource.ts';
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

  test('a regeneration of a certificate whose date was missing or garbage', () => {
    const noted = (secret: Secret, date: string | undefined): Secret => {
      const { [NOT_AFTER]: _date, ...others } = secret.metadata?.annotations ?? {};
      const annotations = date === undefined ? others : { ...others, [NOT_AFTER]: date };
      return { ...secret, metadata: { ...secret.metadata, annotations } };
    };
    const date = '2026-02-01T00:00:00Z';
    const kinds = (before: Secret, after: Secret) => told(SECRETS, before, after).map(([what]) => what);
    for (const earlier of [undefined, 'garbage']) {
      assert.deepEqual(kinds(noted(leaf, earlier), forced), ['RegenerationStarted']);
      assert.deepEqual(kinds(noted(leaf, earlier), noted(renewed, date)), [
        'CertificateChanged',
        'RegenerationFinished',
      ]);
    }
    assert.deepEqual(kinds(noted(leaf, date), noted(leaf, undefined)), ['RegenerationStarted']);
    assert.deepEqual(kinds(forced, forced), []);
    // Taken into care as it is: nothing was regenerated.
    assert.deepEqual(kinds(noted(leaf, undefined), noted(leaf, date)), []);
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

  test('nodes that reach a revision', () => {
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
  });

  test('an operator: what changed, messages too, under a heading that says where it is going (spec 70, 2.6)', () => {
    const operator = (wanted: Record<string, string>, message = 'm') =>
      ({
        metadata: { name: 'etcd' },
        status: {
          conditions: Object.entries(wanted).map(([type, status]) => ({ type, status, reason: 'R', message })),
        },
      }) as KubeObject;
    const healthy = { Available: 'True', Progressing: 'False', Degraded: 'False' };
    const degraded = { ...healthy, Degraded: 'True' };
    const { Degraded: _gone, ...withoutDegraded } = healthy;
    for (const [before, after, wanted] of [
      [operator({ Degraded: 'False' }), operator({ Degraded: 'True' }), [['OperatorUnstable', 'Degraded=True (R: m)']]],
      [operator({ Degraded: 'True' }), operator({ Degraded: 'True' }), []],
      [operator(healthy), operator(degraded), [['OperatorDestabilized', 'Degraded=True (R: m)']]],
      [operator(degraded), operator(healthy), [['OperatorStabilized', 'Degraded=False (R: m)']]],
      [operator(healthy), operator(withoutDegraded), [['OperatorDestabilized', 'Degraded=Unknown (Missing)']]],
      [
        operator({ Degraded: 'True' }),
        operator({ Degraded: 'True' }, 'other\nlines'),
        [['OperatorUnstable', 'Degraded=True (R: other)']],
      ],
      [operator(healthy), operator(healthy, 'm\nOperation cannot be fulfilled: the object has been modified'), []],
      [
        operator(healthy),
        operator(healthy, 'n'),
        [
          ['OperatorStable', 'Available=True (R: n)'],
          ['OperatorStable', 'Progressing=False (R: n)'],
          ['OperatorStable', 'Degraded=False (R: n)'],
        ],
      ],
    ] as const) {
      assert.deepEqual(told(CLUSTER_OPERATORS, before, after), wanted);
    }
  });

  test('a node: what its agent has put on the disk (spec 70, 9.7)', () => {
    const node = (annotations: Record<string, string>): KubeObject => ({ metadata: { name: 'n', annotations } });
    const before = node({ 'machineconfiguration.openshift.io/lastSyncedControllerConfigResourceVersion': '1' });
    const after = node({
      'machineconfiguration.openshift.io/lastSyncedControllerConfigResourceVersion': '2',
      'rotunda.dev/server-ca-digest': 'a'.repeat(64),
    });
    assert.deepEqual(told(NODES, before, after), [
      ['NodeReceipt', 'has the certificates of controllerconfig version 2 on its disk'],
      ['NodeReceipt', `its kubelet verifies the API with the bundle of sha256 ${'a'.repeat(16)}`],
    ]);
    assert.deepEqual(told(NODES, after, after), []);
  });

  test('a hand-over from its beginning to its end (spec 90)', () => {
    const noted = (pair: typeof current, annotations: Record<string, string>): Secret => {
      const secret = secretOf('signer-next', pair, 'signer');
      return { ...secret, metadata: { ...secret.metadata, annotations } };
    };
    const receipts = (...loaded: string[]) =>
      JSON.stringify(
        ['a', 'b'].map(node => ({
          verifier: `kubelet on ${node}`,
          node,
          kind: 'asked',
          isLoaded: loaded.includes(node),
          evidence: 'named it',
        })),
      );
    const news = (before: Secret | undefined, after: Secret | undefined) =>
      told(SECRETS, before, after).filter(([what]) => /HandOver|SignerInUse/.test(what));
    const begun = noted(current, { [SINCE]: '2026-01-01T00:00:00Z', [BECAUSE]: 'somebody asked' });
    const [[began, text] = []] = news(undefined, begun);
    assert.equal(began, 'HandOverBegan');
    assert.match(text ?? '', /^"ns_signer@\d+" is made known, and signs nothing yet: somebody asked$/);
    const waits = noted(current, { ...begun.metadata?.annotations, [RECEIPTS]: receipts() });
    assert.deepEqual(news(begun, waits), [['HandOverReceipt', 'waiting for kubelet on a, kubelet on b']]);
    const half = noted(current, { ...begun.metadata?.annotations, [RECEIPTS]: receipts('a') });
    assert.match(
      news(waits, half)[0]?.[1] ?? '',
      /^kubelet on a has loaded "ns_signer@\d+" \(named it\); waiting for kubelet on b$/,
    );
    assert.deepEqual(news(half, half), []);
    const back = noted(current, { ...half.metadata?.annotations, [TAKEN_BACK]: '2026-01-01T00:00:00Z' });
    assert.equal(news(half, back)[0]?.[0], 'HandOverTakenBack');
    assert.match(news(back, undefined)[0]?.[1] ?? '', /waits no longer: it was taken back$/);
    const promoted = noted(current, { [TOOK]: '20s' });
    assert.match(news(noted(old, {}), promoted)[0]?.[1] ?? '', /signs from now on; its hand-over took 20s$/);
    assert.deepEqual(news(promoted, promoted), []);
    const node = (annotations: Record<string, string>): KubeObject => ({ metadata: { name: 'n', annotations } });
    assert.deepEqual(told(NODES, node({}), node({ [WAIVED]: '2026-01-01T00:00:00Z' })), [
      ['HandOverWaived', 'hand-overs do not wait for it'],
    ]);
    const event = (reason: string) => ({ metadata: {}, reason, message: 'm', involvedObject: {} }) as KubeObject;
    assert.deepEqual(told(EVENTS, undefined, event('HandOverLeavesBehind')), [['HandOverLeavesBehind', 'm']]);
    assert.deepEqual(told(EVENTS, undefined, event('SignerUpdateRequired')), []);
  });

  test('tokens and pull secrets, whatever their type', () => {
    const secret = (rest: Partial<Secret>, annotations = {}): Secret => ({
      metadata: { namespace: 'ns', name: 's', annotations },
      ...rest,
    });
    for (const [found, kind] of [
      [secret({ type: 'kubernetes.io/dockerconfigjson' }), 'image pull secret'],
      [secret({ type: 'Opaque', data: { '.dockercfg': '' } }), 'image pull secret'],
      [secret({}, { 'openshift.io/token-secret.name': 'x' }), 'image pull secret'],
      [secret({ type: 'kubernetes.io/service-account-token' }), 'service account token'],
      [secret({}, { 'kubernetes.io/service-account.name': 'x' }), 'service account token'],
    ] as const) {
      assert.deepEqual(told(SECRETS, undefined, found), [['TokenChanged', `${kind} created`]]);
      assert.deepEqual(told(SECRETS, found, undefined), [['TokenChanged', `${kind} deleted`]]);
      assert.deepEqual(told(SECRETS, found, found), []);
    }
  });
});
