/**
 * Ninety days in half a minute: a cluster with real controllers, whose day lasts less than half a second, does what the plan said
 * beforehand, hand-overs by receipts included: every change that was planned comes, and none comes before the plan has it. How late a
 * change is decides nothing, since whatever comes late moves its successors; to the millisecond the plan is compared on a clock of its own, in its unit tests.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { type PlanObjects, readPlanObjects } from '../../src/forecast/objects.ts';
import { simulate } from '../../src/forecast/simulate.ts';
import { rotationDayFrom } from '../../src/forecast/units.ts';
import { LiveSource } from '../../src/inventory/live-source.ts';
import type { KubeObject } from '../../src/kube/resource.ts';
import { KUBE_APISERVER_CHAINS } from '../../src/kube-apiserver/chains.ts';
import { type ObjectRef, objectText } from '../../src/trust/object.ts';
import { eventually, startTestCluster } from '../kube-apiserver/cluster.ts';

const DAY_MS = 400;
const DAYS = 90;

let cluster: Awaited<ReturnType<typeof startTestCluster>>;
before(async () => {
  cluster = await startTestCluster({ controlPlane: 1, dayMs: DAY_MS });
  await cluster.ready();
});
after(() => cluster.stop());

test('what the plan says is what then happens', async t => {
  const source = new LiveSource(cluster.kube);
  t.after(() => source.stop());
  const heard: Change[] = [];
  source.subscribe(({ resource, before: old, after: current }) => {
    if (current !== undefined) heard.push({ seenAt: new Date(), id: idOf(resource.kind, current), old, current });
  });
  // The watches that the plan reads from are those that then tell what happens: nothing falls in between.
  const objects = await readPlanObjects(source);
  const now = new Date();
  assert.equal(rotationDayFrom(objects), DAY_MS, 'the length of the day is read from the objects');
  const plan = await simulate(objects, { now, until: new Date(now.getTime() + DAYS * DAY_MS) });
  assert.deepEqual(
    plan.events.filter(({ change }) => change === 'fail' || change === 'rollout'),
    [],
  );
  assert.ok(plan.events.length > 60, `${plan.events.length} events`);
  assert.ok(plan.events.some(({ change, phase }) => change === 'hand-over' && phase === 'Signing'));
  const planned = Map.groupBy(
    plan.events.filter(({ change }) => change === 'signer' || change === 'certificate'),
    ({ object }) => objectText(object as ObjectRef),
  );
  const ids = new Set(
    KUBE_APISERVER_CHAINS.flatMap(({ signer, target }) => [signer, target]).map(({ namespace, name }) =>
      objectText({ kind: 'Secret', namespace, name }),
    ),
  );

  await eventually('everything that was planned', async () => {
    const changes = changesSince(objects, heard);
    return [...planned].every(([id, events]) => newCertificates(changes, id).length >= events.length);
  });
  await source.stop();
  const changes = changesSince(objects, heard);
  let seen = 0;
  for (const id of ids) {
    // Of one that is not planned the first would already be wrong; on a slow machine many more have come meanwhile than were planned.
    for (const index of newCertificates(changes, id).slice(0, Math.max(1, planned.get(id)?.length ?? 0))) {
      await assertDue(objects, changes, index);
      seen++;
    }
  }
  t.diagnostic(`${[...planned.values()].flat().length} changes planned, ${seen} seen, each of them due`);
});

/**
 * A plan made of the objects as they were before a change has that change, at the latest at the time it was seen. Its controller may have
 * decided a moment earlier, before others wrote what they had to: any state since the last change of this object will do.
 */
async function assertDue(objects: PlanObjects, changes: readonly Change[], index: number): Promise<void> {
  const { id, seenAt } = changes[index] as Change;
  const last = newCertificates(changes, id).findLast(earlier => earlier < index) ?? -1;
  for (let before = index; before > last; before--) {
    const state = objectsAfter(objects, changes.slice(0, before));
    const { events } = await simulate(state, { now: seenAt, until: seenAt });
    if (events.some(({ object }) => object !== undefined && objectText(object) === id)) return;
  }
  const story = changes.slice(Math.max(0, last), index + 1).map(tell);
  assert.fail([`${id} changed at ${seenAt.toISOString()}, and no plan has it:`, ...story].join('\n'));
}

/** What a change was, for whoever has to find out why it came. */
function tell({ seenAt, id, old, current }: Change): string {
  const { resourceVersion, annotations } = current.metadata ?? {};
  const isNew = certificateOf(old) !== certificateOf(current);
  return `${seenAt.toISOString()} ${resourceVersion} ${id}${isNew ? ' (another certificate)' : ''} ${JSON.stringify(annotations)}`;
}

interface Change {
  readonly seenAt: Date;
  readonly id: string;
  readonly old: KubeObject | undefined;
  readonly current: KubeObject;
}

/** What is new to the plan, in the order in which the store took it: each kind has a watch of its own. */
function changesSince({ secrets, configMaps }: PlanObjects, heard: readonly Change[]): Change[] {
  const known = new Map([...entries('Secret', secrets), ...entries('ConfigMap', configMaps)]);
  return heard
    .filter(({ id, current }) => versionOf(current) > versionOf(known.get(id)))
    .sort((one, other) => versionOf(one.current) - versionOf(other.current));
}

/** Where among the changes a Secret got another certificate. */
function newCertificates(changes: readonly Change[], id: string): number[] {
  return changes.flatMap((change, index) =>
    change.id === id && certificateOf(change.old) !== certificateOf(change.current) ? [index] : [],
  );
}

/**
 * The objects as changes have left them. Only copies of revisions are ever deleted, and no plan reads those; and next signers, which are left
 * out: a plan without one begins with it.
 */
function objectsAfter(objects: PlanObjects, changes: readonly Change[]): PlanObjects {
  const latest = new Map(changes.map(({ id, current }) => [id, current]));
  const now = <T extends KubeObject>(kind: 'Secret' | 'ConfigMap', all: readonly T[]) =>
    all
      .filter(({ metadata }) => !metadata?.name?.endsWith('-signer-next'))
      .map(object => (latest.get(idOf(kind, object)) as T | undefined) ?? object);
  return {
    ...objects,
    secrets: now('Secret', objects.secrets),
    configMaps: now('ConfigMap', objects.configMaps),
  };
}

function entries(kind: string, objects: readonly KubeObject[]): (readonly [string, KubeObject])[] {
  return objects.map(object => [idOf(kind, object), object]);
}

function idOf(kind: string, { metadata: { namespace = '', name = '' } = {} }: KubeObject): string {
  return objectText({ kind, namespace, name } as ObjectRef);
}

/** Of what is not there yet, less than any. */
function versionOf(object: KubeObject | undefined): number {
  return Number(object?.metadata?.resourceVersion ?? 0);
}

function certificateOf(object: KubeObject | undefined): string | undefined {
  return (object as Secret | undefined)?.data?.['tls.crt'];
}
