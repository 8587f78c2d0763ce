import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { DaemonSet } from 'kubernetes-types/apps/v1.d.ts';
import { VirtualClock } from '../../kube/clock.ts';
import { getIfPresent } from '../../kube/get.ts';
import {
  CONFIG_MAPS,
  DEPLOYMENTS,
  type KubeObject,
  NAMESPACES,
  NODES,
  PODS,
  SECRETS,
  SERVICES,
} from '../../kube/resource.ts';
import { DAEMON_SETS } from '../../kubeadm/adopt/objects.ts';
import { POLICIES } from '../../kubeadm/adopt/policies.ts';
import { CLUSTER_RECORD, readSettings, statusOf } from '../../kubeadm/cluster-record.ts';
import { NODE_REPORT, type NodeReport } from '../../kubeadm/report.ts';
import { encodeWanted, wantedKey } from '../../kubeadm/wanted.ts';
import { UsageError } from '../usage-error.ts';
import { wishesFrom } from './adopt.ts';
import type { AdoptFlags } from './command.ts';
import { install } from './install.ts';
import { type AdoptionPlan, type AdoptionWishes, planAdoption } from './plan.ts';
import { readRelease } from './release-sight.ts';
import { readAdoption } from './sight.ts';
import { GOOD_REPORT, GOOD_STATUS, KubeadmWorld } from './testing.ts';
import { undo } from './undo.ts';
import { untilAdopted } from './until-adopted.ts';

const IMAGE = 'registry.example.com/rotunda:1.2.3';
const AGENTS = { namespace: 'rotunda', name: 'kubeadm-agent' };
const OPERATOR = { namespace: 'rotunda', name: 'kubeadm-operator' };
const PATIENCE = { timeoutMs: 60_000, onProgress: () => undefined };

async function planned(world: KubeadmWorld, wishes: AdoptionWishes = { image: IMAGE }): Promise<AdoptionPlan> {
  const found = planAdoption(await readAdoption(world.kube), wishes);
  assert.ok('plan' in found, JSON.stringify(found));
  return found.plan;
}

async function refusal(world: KubeadmWorld, wishes: AdoptionWishes = { image: IMAGE }): Promise<string> {
  const found = planAdoption(await readAdoption(world.kube), wishes);
  assert.ok('refusal' in found, JSON.stringify(found));
  return found.refusal;
}

/** Applies, and says what was written: `<verb> <kind> <name>`. */
async function applied(world: KubeadmWorld, wishes?: AdoptionWishes): Promise<string[]> {
  const changes: string[] = [];
  const onChange = ({ kind, metadata }: KubeObject, what: string) => {
    changes.push(`${what} ${kind} ${metadata?.name}`);
  };
  await install(world.kube, await planned(world, wishes), { onChange });
  return changes;
}

async function adopted(t: TestContext, wishes?: AdoptionWishes): Promise<KubeadmWorld> {
  const world = await KubeadmWorld.create(t);
  await applied(world, wishes);
  for (const name of ['a', 'b']) await world.reports(name, GOOD_REPORT);
  await world.says(GOOD_STATUS);
  return world;
}

const settingsIn = async ({ kube }: KubeadmWorld) => {
  const read = readSettings(await kube.get(CONFIG_MAPS, CLUSTER_RECORD));
  assert.ok(read.ok, JSON.stringify(read));
  return read.settings;
};

describe('what adoption would do', () => {
  test('it says the size, what is installed, and that nothing is changed', async t => {
    const plan = await planned(await KubeadmWorld.create(t));
    assert.equal(plan.answer, 'This cluster can be adopted: 2 control-plane nodes and 1 other, Kubernetes v1.36.3.');
    assert.match(plan.would.join('\n'), /on each of 3 nodes.*image registry\.example\.com/);
    assert.match(plan.would.join('\n'), /with their keys from a into Secrets/);
    assert.match(plan.would.join('\n'), /after 67 % of its life/);
    assert.equal(plan.installation.controlPlaneNodes, 2);
  });

  test('Secrets that are not encrypted at rest are named, unless keys stay on the nodes', async t => {
    const world = await KubeadmWorld.create(t);
    const notes = async (wishes?: AdoptionWishes) => (await planned(world, wishes)).notes.join('\n');
    assert.match(await notes(), /cannot be seen: no mirror pod/);
    await world.apiServer('a', '--encryption-provider-config=/etc/kubernetes/encryption.yaml');
    assert.equal(await notes(), '');
    await world.apiServer('b');
    assert.match(await notes(), /^Secrets are not encrypted at rest/);
    assert.equal(await notes({ image: IMAGE, keysOnNodes: true }), '');
  });

  test('an external CA is named as what is only watched', async t => {
    const world = await KubeadmWorld.create(t);
    const report: NodeReport = { ...GOOD_REPORT, signers: { ca: { cas: ['a'.repeat(64)], key: 'none' } } };
    await world.apiServer('a', '--encryption-provider-config=x');
    await world.reports('a', report);
    assert.match((await planned(world)).notes.join('\n'), /^ca is an external CA/);
  });

  test('what cannot be adopted is refused with what to do', async t => {
    const world = await KubeadmWorld.create(t);
    assert.match(await refusal(world, {}), /^say --image/);
    await applied(world);
    await world.kube.patch(CONFIG_MAPS, CLUSTER_RECORD, { type: 'merge', body: { data: { pods: 'maybe' } } });
    assert.match(await refusal(world), /^pods in ConfigMap rotunda-pki\/kubeadm must be/);
    const sight = await readAdoption(world.kube);
    const without = planAdoption({ ...sight, knowsPolicies: false, record: undefined }, { image: IMAGE });
    assert.match('refusal' in without ? without.refusal : '', /^Kubernetes v1\.30 or newer/);
    const headless = planAdoption({ ...sight, nodes: [], record: undefined }, { image: IMAGE });
    assert.match('refusal' in headless ? headless.refusal : '', /^no node has the label/);
  });

  test('flags are judged before anything is asked', () => {
    const flags = (more: Partial<AdoptFlags>): AdoptFlags => ({ timeout: '1m', output: 'text', ...more });
    assert.deepEqual(wishesFrom('kubeadm', flags({ refresh: '0.5', pods: 'restart', image: IMAGE })), {
      image: IMAGE,
      pods: 'restart',
      refresh: 0.5,
      keysOnNodes: undefined,
    });
    for (const more of [{ refresh: '1.5' }, { refresh: '-0.5' }, { pods: 'kill' }, { image: ' x' }, { image: '' }])
      assert.throws(() => wishesFrom('kubeadm', flags(more)), UsageError, JSON.stringify(more));
    assert.throws(() => wishesFrom('openshift', flags({})), UsageError);
  });
});

describe('what adoption installs', () => {
  test('everything once; again nothing; another image only where it is', async t => {
    const clock = new VirtualClock(new Date('2026-01-01T00:00:00Z'));
    const world = await KubeadmWorld.create(t, clock);
    const first = await applied(world);
    await clock.advanceTo(new Date('2026-01-01T01:00:00Z'));
    assert.ok(first.includes('created DaemonSet kubeadm-control-plane-agent'), first.join('\n'));
    assert.ok(first.every(change => change.startsWith('created ')));
    assert.deepEqual(await applied(world, {}), [], 'the image is that of what is installed');
    assert.deepEqual(await applied(world, { image: 'other:1' }), [
      'changed DaemonSet kubeadm-control-plane-agent',
      'changed DaemonSet kubeadm-agent',
      'changed Deployment kubeadm-operator',
    ]);
  });

  test("what others set stays: the operator's status, a label, a limit", async t => {
    const world = await adopted(t);
    const spec = {
      template: { spec: { containers: [{ name: 'kubeadm-agent', resources: { limits: { memory: '1Gi' } } }] } },
    };
    await world.kube.patch(DAEMON_SETS, AGENTS, {
      type: 'strategic',
      body: { metadata: { labels: { team: 'x' } }, spec },
    });
    assert.deepEqual(await applied(world, { refresh: 0.5 }), ['changed ConfigMap kubeadm']);
    assert.equal(statusOf(await world.kube.get(CONFIG_MAPS, CLUSTER_RECORD))?.adopted, true);
    const set: DaemonSet = await world.kube.get(DAEMON_SETS, AGENTS);
    assert.equal(set.metadata?.labels?.team, 'x');
    assert.equal(set.spec?.template.spec?.containers[0]?.resources?.limits?.memory, '1Gi');
  });

  test('settings stay as they were agreed on unless somebody says otherwise', async t => {
    const world = await adopted(t, { image: IMAGE, refresh: 0.4, pods: 'ignore' });
    await applied(world, { pods: 'wait' });
    const { refresh, pods, publishFrom, keysOnNodes, certificatesDirectory } = await settingsIn(world);
    assert.deepEqual([refresh, pods, publishFrom, keysOnNodes], [0.4, 'wait', 'a', false]);
    assert.equal(certificatesDirectory, '/etc/kubernetes/pki');
    assert.match(await refusal(world, { keysOnNodes: true }), /decided at adoption/);
  });

  test('the right to restart comes with --pods restart, and goes with another choice', async t => {
    const world = await adopted(t);
    const name = 'rotunda:kubeadm-operator-restarts';
    const restarts = [`ClusterRole ${name}`, `ClusterRoleBinding ${name}`];
    assert.deepEqual(await applied(world, { pods: 'restart' }), [
      'changed ConfigMap kubeadm',
      ...restarts.map(id => `created ${id}`),
    ]);
    assert.deepEqual(await applied(world, { pods: 'wait' }), [
      'changed ConfigMap kubeadm',
      ...restarts.map(id => `removed ${id}`),
    ]);
  });

  test('cut off at any object, the next run goes on where it ended', async t => {
    const world = await KubeadmWorld.create(t);
    const plan = await planned(world);
    const seen: string[] = [];
    for (let limit = 0; ; limit++) {
      const controller = new AbortController();
      let left = limit % 7;
      const onChange = ({ kind, metadata }: KubeObject) => {
        seen.push(`${kind} ${metadata?.namespace}/${metadata?.name}`);
        if (left-- === 0) controller.abort();
      };
      try {
        await install(world.kube, plan, { signal: controller.signal, onChange });
        break;
      } catch (error) {
        assert.ok(controller.signal.aborted, String(error));
      }
    }
    assert.equal(new Set(seen).size, seen.length, 'nothing was made twice');
    const policy = seen.findIndex(id => id.startsWith('ValidatingAdmissionPolicyBinding'));
    assert.ok(policy < seen.findIndex(id => id.startsWith('DaemonSet')), seen.join('\n'));
    assert.deepEqual(await applied(world), []);
  });
});

describe('until it is adopted', () => {
  const state = (world: KubeadmWorld, onProgress: (text: string) => void = () => undefined) =>
    untilAdopted(world.kube, { ...PATIENCE, onProgress });

  test('it waits for reports, says why pods do not run, then for the operator', async t => {
    const world = await KubeadmWorld.create(t);
    await applied(world);
    const steps: (() => Promise<void>)[] = [
      async () => {
        await world.kube.create(PODS, {
          metadata: { namespace: 'rotunda', name: 'x', labels: { app: 'kubeadm-agent' } },
          spec: { nodeName: 'w', containers: [{ name: 'kubeadm-agent', image: 'x' }] },
        });
        const containerStatuses = [
          {
            name: 'kubeadm-agent',
            ready: false,
            restartCount: 0,
            image: 'x',
            imageID: '',
            state: { waiting: { reason: 'ErrImagePull' } },
          },
        ];
        const body = { status: { phase: 'Pending', containerStatuses } };
        await world.kube.patch(
          PODS,
          { namespace: 'rotunda', name: 'x' },
          { type: 'merge', body },
          { subresource: 'status' },
        );
        // The operator's word about nodes that have not spoken yet is not the last one.
        await world.says({ ...GOOD_STATUS, adopted: false, differences: ['a does not report'] });
      },
      () => world.reports('a', GOOD_REPORT),
      async () => {
        await world.kube.delete(PODS, { namespace: 'rotunda', name: 'x' }, { gracePeriodSeconds: 0 });
        await world.reports('b', GOOD_REPORT);
      },
      () => world.says({ ...GOOD_STATUS, adopted: false, message: 'a copies ca' }),
      () => world.says(GOOD_STATUS),
    ];
    const told: string[] = [];
    const message = await state(world, text => {
      told.push(text);
      void steps.shift()?.();
    });
    assert.equal(message, 'all is well');
    assert.equal(told[0], 'reports from a, b');
    assert.ok(told.includes('reports from a, b; kubeadm-agent on w: ErrImagePull'), told.join('\n'));
    assert.ok(told.includes('a copies ca'), told.join('\n'));
  });

  test('differences end it, by name, with what to do (KA-1)', async t => {
    const world = await adopted(t);
    const other: NodeReport = {
      ...GOOD_REPORT,
      signers: { ...GOOD_REPORT.signers, ca: { cas: ['f'.repeat(64)], key: 'fits' } },
    };
    await world.reports('b', other);
    await world.says({ ...GOOD_STATUS, adopted: false, differences: ['ca.crt is not the same on a and b: mend it.'] });
    await assert.rejects(
      state(world),
      /nothing was copied or changed.*\n- ca\.crt is not the same on a and b: mend it\.\n.*release/s,
    );
  });

  test('it gives up when the time is over, and says what it waited for', async t => {
    const world = await KubeadmWorld.create(t);
    await applied(world);
    await assert.rejects(
      untilAdopted(world.kube, { ...PATIENCE, timeoutMs: 1 }),
      /gave up after 1ms, still waiting: reports from a, b/,
    );
  });
});

describe('release (KA-4)', () => {
  const wanted = { publishes: [], signers: {}, isSeparate: false, leaves: {} };

  test('everything of ours goes, and what kubeadm made stays', async t => {
    const world = await adopted(t, { image: IMAGE, pods: 'restart' });
    const { kube } = world;
    await kube.create(SECRETS, { metadata: { namespace: 'rotunda-pki', name: 'ca' }, data: { 'tls.key': 'eA==' } });
    await undo(kube, PATIENCE);
    const { present, noted } = await readRelease(kube);
    assert.deepEqual([present, noted], [[], []]);
    assert.equal(await getIfPresent(kube, NAMESPACES, { name: 'rotunda-pki' }), undefined);
    assert.equal((await kube.get(NODES, { name: 'a' })).metadata?.annotations?.[NODE_REPORT], undefined);
    await kube.get(CONFIG_MAPS, { namespace: 'kube-system', name: 'kubeadm-config' });
    // And it can be adopted again.
    assert.ok((await applied(world)).includes('created Namespace rotunda'));
  });

  test('in the middle of a hand-over or a round nothing is touched', async t => {
    const world = await adopted(t);
    const { kube } = world;
    const before = (await readRelease(kube)).present.length;
    await kube.create(SECRETS, { metadata: { namespace: 'rotunda-pki', name: 'ca-next' } });
    await assert.rejects(undo(kube, PATIENCE), /ca is being handed over \(there is Secret ca-next\)/);
    await kube.delete(SECRETS, { namespace: 'rotunda-pki', name: 'ca-next' });
    await kube.create(CONFIG_MAPS, { metadata: wantedKey('b'), data: encodeWanted({ ...wanted, round: 'r1' }) });
    await assert.rejects(undo(kube, PATIENCE), /b is being changed: wait/);
    assert.equal((await readRelease(kube)).present.length, before);
    assert.equal((await kube.get(DEPLOYMENTS, OPERATOR)).spec?.replicas, 2);
  });

  test('agents bring files back first; then the operator stops before agents, and those before the policy', async t => {
    const world = await adopted(t);
    const { kube } = world;
    await world.reports('b', { ...GOOD_REPORT, signing: { ca: 'a'.repeat(64), isSeparate: true } });
    const told: string[] = [];
    await undo(kube, {
      timeoutMs: PATIENCE.timeoutMs,
      onProgress: text => {
        told.push(text);
        if (text.includes('still signs with files of its own')) void world.reports('b', GOOD_REPORT);
      },
    });
    const at = (part: string) => told.findIndex(text => text.includes(part));
    assert.equal(at('still signs'), 0);
    assert.ok(at('DaemonSet') < at('ValidatingAdmissionPolicy'), told.join('\n'));
    assert.ok(at('ClusterRole ') < at('Namespace '), told.join('\n'));
  });

  test('what the operator began in the moment it was stopped is left to it', async t => {
    const world = await adopted(t);
    const { kube } = world;
    const pod = { namespace: 'rotunda', name: 'operator' };
    await kube.create(PODS, {
      metadata: { ...pod, labels: { app: 'kubeadm-operator' } },
      spec: { nodeName: 'a', containers: [{ name: 'x', image: 'x' }] },
    });
    const ends = async () => {
      await kube.create(SECRETS, { metadata: { namespace: 'rotunda-pki', name: 'ca-next' } });
      await kube.delete(PODS, pod, { gracePeriodSeconds: 0 });
    };
    const onProgress = (text: string) => {
      if (text.includes('1 pod of kubeadm-operator to end')) void ends();
    };
    await assert.rejects(undo(kube, { timeoutMs: PATIENCE.timeoutMs, onProgress }), /began something in this moment/);
    assert.equal((await kube.get(DEPLOYMENTS, OPERATOR)).spec?.replicas, 2);
    await kube.get(DAEMON_SETS, AGENTS);
  });

  test('a pod on a node that is away is not waited for', async t => {
    const world = await adopted(t);
    const { kube } = world;
    const conditions = [{ type: 'Ready', status: 'Unknown' }];
    await kube.patch(
      NODES,
      { name: 'w' },
      { type: 'merge', body: { status: { conditions } } },
      { subresource: 'status' },
    );
    await kube.create(PODS, {
      metadata: { namespace: 'rotunda', name: 'x', labels: { app: 'kubeadm-agent' }, finalizers: ['example.com/stay'] },
      spec: { nodeName: 'w', containers: [{ name: 'x', image: 'x' }] },
    });
    const told: string[] = [];
    const controller = new AbortController();
    const onProgress = (text: string) => {
      told.push(text);
      // The namespace stays as long as the pod does.
      if (text.includes('namespace rotunda to go')) controller.abort();
    };
    await assert.rejects(undo(kube, { ...PATIENCE, onProgress, signal: controller.signal }), { name: 'AbortError' });
    assert.equal(await getIfPresent(kube, POLICIES, { name: 'rotunda-kubeadm-agents' }), undefined);
  });

  test('a namespace in which others live stays, without the labels that let agents in', async t => {
    const world = await adopted(t);
    const { kube } = world;
    await kube.create(SERVICES, {
      metadata: { namespace: 'rotunda', name: 'console' },
      spec: { ports: [{ port: 443 }] },
    });
    await undo(kube, PATIENCE);
    const { labels = {} } = (await kube.get(NAMESPACES, { name: 'rotunda' })).metadata ?? {};
    assert.deepEqual(
      Object.keys(labels).filter(label => label.startsWith('pod-security')),
      [],
    );
    await kube.get(SERVICES, { namespace: 'rotunda', name: 'console' });
  });

  test('cut off anywhere, the next run ends it', async t => {
    const world = await adopted(t);
    for (let left = 0; ; left++) {
      const controller = new AbortController();
      let count = 0;
      const onProgress = () => {
        if (count++ === left % 5) controller.abort();
      };
      try {
        await undo(world.kube, { ...PATIENCE, onProgress, signal: controller.signal });
        break;
      } catch (error) {
        assert.ok(controller.signal.aborted, String(error));
      }
    }
    const { present, noted } = await readRelease(world.kube);
    assert.deepEqual([present, noted], [[], []]);
  });
});
