import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { silentLog } from '../../controller/log.ts';
import { memoryHost } from '../../host/memory.ts';
import { VirtualClock } from '../../kube/clock.ts';
import { KubeError } from '../../kube/error.ts';
import type { ListOptions } from '../../kube/port.ts';
import { podsBeingReplaced, RestartTurn } from './restart-turn.ts';
import { NOW } from './testing.ts';

const SERVER = 'openshift-kube-apiserver';
const ETCD = 'openshift-etcd';
const MANIFEST = '/etc/kubernetes/manifests/kube-apiserver-pod.yaml';

function mirror(namespace: string, name: string, isReady: boolean, revision?: number): Pod {
  return {
    metadata: {
      namespace,
      name,
      annotations: { 'kubernetes.io/config.mirror': 'hash' },
      labels: revision === undefined ? {} : { revision: String(revision) },
    },
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False' }] },
  };
}

function installer(namespace: string, revision: number, phase: string): Pod {
  return { metadata: { namespace, name: `installer-${revision}-m0` }, status: { phase } };
}

describe('which pods of a node are being replaced (spec 90, HO-5)', () => {
  const table: readonly (readonly [what: string, pods: readonly Pod[], busy: readonly string[]])[] = [
    ['nothing is there', [], []],
    ['all is at rest', [mirror(SERVER, 'kas', true, 7), installer(SERVER, 7, 'Succeeded')], []],
    ['one is not ready', [mirror(SERVER, 'kas', false, 7), mirror(ETCD, 'etcd', true, 3)], ['kas']],
    ['an installer waits for its turn', [mirror(SERVER, 'kas', true, 7), installer(SERVER, 8, 'Pending')], BOTH()],
    ['an installer is at work', [mirror(SERVER, 'kas', true, 7), installer(SERVER, 8, 'Running')], BOTH()],
    [
      'the manifest is there, the pod is not',
      [mirror(SERVER, 'kas', true, 7), installer(SERVER, 8, 'Succeeded')],
      ['kas'],
    ],
    ['an installer failed', [mirror(SERVER, 'kas', true, 7), installer(SERVER, 8, 'Failed')], []],
    ['installers of long ago', [mirror(SERVER, 'kas', true, 12), installer(SERVER, 9, 'Succeeded')], []],
    ['an installer of somebody else', [mirror(SERVER, 'kas', true, 7), installer(ETCD, 8, 'Succeeded')], []],
    ['pods without revisions', [mirror('kube-system', 'etcd-m0', true), mirror('kube-system', 'x', false)], ['x']],
    ['a pod that is no static pod', [{ metadata: { name: 'web' }, status: { phase: 'Pending' } }], []],
  ];
  for (const [what, pods, busy] of table) test(what, () => assert.deepEqual(podsBeingReplaced(pods), busy));

  function BOTH() {
    return ['installer-8-m0', 'kas'];
  }
});

describe('whether the kubelet may be restarted', () => {
  async function setUp(pods: readonly Pod[], manifests: readonly string[] = [MANIFEST]) {
    const { files } = memoryHost();
    for (const path of manifests) await files.write(path, Buffer.from('kind: Pod\n'));
    const clock = new VirtualClock(NOW);
    const state = { pods, asked: [] as (ListOptions | undefined)[] };
    const list = async (_resource: unknown, options?: ListOptions) => {
      state.asked.push(options);
      return { metadata: {}, items: state.pods as never[] };
    };
    const turn = new RestartTurn({ kube: { list }, files, nodeName: 'm0', clock, log: silentLog });
    const later = (seconds: number) => clock.advanceTo(new Date(clock.now().getTime() + seconds * 1000));
    return { state, turn, later };
  }

  test('it waits until the pod is ready, and asks for the pods of its own node alone', async () => {
    const { state, turn } = await setUp([mirror(SERVER, 'kas', false, 7)]);
    assert.equal(await turn.mayRestart(), false);
    state.pods = [mirror(SERVER, 'kas', true, 7)];
    assert.equal(await turn.mayRestart(), true);
    assert.deepEqual(state.asked, [{ fieldSelector: 'spec.nodeName=m0' }, { fieldSelector: 'spec.nodeName=m0' }]);
  });

  test('two minutes, each time: a pod that stays broken must not keep a CA from its kubelet', async () => {
    const { turn, later } = await setUp([mirror(SERVER, 'kas', false, 7)]);
    for (let time = 0; time < 2; time++) {
      assert.equal(await turn.mayRestart(), false);
      await later(119);
      assert.equal(await turn.mayRestart(), false);
      await later(1);
      assert.equal(await turn.mayRestart(), true);
    }
  });

  test('a node without static pods asks nobody', async () => {
    const { state, turn } = await setUp([mirror(SERVER, 'kas', false, 7)], []);
    assert.equal(await turn.mayRestart(), true);
    assert.deepEqual(state.asked, []);
  });

  test('an API that does not answer holds nothing up', async () => {
    const { files } = memoryHost();
    await files.write(MANIFEST, Buffer.from('kind: Pod\n'));
    const list = () => Promise.reject(new KubeError(403, 'Forbidden', 'not for you'));
    const clock = new VirtualClock(NOW);
    const turn = new RestartTurn({ kube: { list }, files, nodeName: 'm0', clock, log: silentLog });
    assert.equal(await turn.mayRestart(), true);
  });
});
