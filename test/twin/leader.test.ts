import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Lease } from 'kubernetes-types/coordination/v1.d.ts';
import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { NOT_AFTER } from '../../src/certrotation/annotations.ts';
import { days, hours, minutes } from '../../src/kube/duration.ts';
import { LEASES, SECRETS } from '../../src/kube/resource.ts';
import { KUBE_APISERVER_CHAINS } from '../../src/kube-apiserver/chains.ts';
import { OPERATOR_LEASE } from '../../src/kube-apiserver/namespaces.ts';
import { Cluster, type ClusterOptions, START } from '../../src/twin/cluster.ts';

const OPERATOR = 'kube-apiserver-operator';

async function up(options: Partial<ClusterOptions>) {
  const told: string[] = [];
  const cluster = new Cluster({ seed: 'leaders', ...options, tell: (_at, what) => void told.push(what) });
  await cluster.begin();
  await cluster.goOn(new Date(START.getTime() + minutes(10)));
  const goOn = (milliseconds: number) => cluster.goOn(new Date(cluster.time.nowMs + milliseconds));
  const lease = () => cluster.api.stored<Lease>(LEASES, OPERATOR_LEASE)?.spec ?? {};
  return { cluster, told, goOn, lease, holder: () => (lease().holderIdentity ?? '').replace(/ \d+$/, '') };
}

test('of two operators one works; when it is gone the other takes over, and the first one waits from then on', async t => {
  const { cluster, told, goOn, holder } = await up({ operatorInstances: 2 });
  t.after(() => cluster.end());
  const first = holder();
  const other = first === OPERATOR ? `${OPERATOR} (2)` : OPERATOR;
  cluster.component(first).stop();
  await goOn(minutes(5));
  assert.equal(holder(), other);
  cluster.component(first).start();
  await goOn(days(20));
  assert.equal(holder(), other);
  assert.ok(
    told.some(what => what.startsWith(`${other}: SignerInUseChanged`)),
    'it does the work',
  );
  assert.deepEqual(cluster.look.refusals, []);
});

test('a lease is kept through weeks in which nothing happens, and renewed no oftener than somebody looks', async t => {
  const { cluster, goOn, lease } = await up({ operatorInstances: 2 });
  t.after(() => cluster.end());
  const before = lease();
  const writes = cluster.api.revision;
  await goOn(days(10));
  assert.deepEqual(
    [lease().holderIdentity, lease().leaseTransitions],
    [before.holderIdentity, before.leaseTransitions],
  );
  assert.ok(cluster.api.revision - writes < 500, `${cluster.api.revision - writes} writes`);
});

test('while the API is away the leader gives up, and somebody leads again when it is back', async t => {
  const { cluster, told, goOn, lease } = await up({});
  t.after(() => cluster.end());
  const masters = cluster.nodes.filter(({ isControlPlane }) => isControlPlane);
  for (const node of masters.slice(0, 2)) cluster.powerOff(node);
  await goOn(hours(1));
  assert.ok(
    told.some(what => what.startsWith(`${OPERATOR} ends: no longer the leader`)),
    told.slice(-20).join('\n'),
  );
  for (const node of masters.slice(0, 2)) cluster.powerOn(node);
  await goOn(minutes(30));
  assert.ok((lease().leaseTransitions ?? 0) >= 1);
});

test('where the operator is gone, the regeneration controller renews what has ended', async t => {
  const { cluster, told, goOn } = await up({});
  t.after(() => cluster.end());
  cluster.component(OPERATOR).stop();
  await goOn(days(40));
  assert.ok(told.some(what => /^cert-regeneration-controller on \S+: TargetUpdateRequired/.test(what)));
  const { target } =
    KUBE_APISERVER_CHAINS.find(({ target: { name } }) => name === 'aggregator-client') ?? assert.fail();
  const stored = cluster.api.stored<Secret>(SECRETS, target);
  assert.ok(Date.parse(stored?.metadata?.annotations?.[NOT_AFTER] ?? '') > cluster.time.nowMs);
});
