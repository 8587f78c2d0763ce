/** Two replicas of every component that leads, on a real API: who leads, who waits, and what becomes of it when the leader ends. */

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { LeaseSpec } from 'kubernetes-types/coordination/v1.d.ts';
import { Informer } from '../../src/kube/informer.ts';
import { LEASES } from '../../src/kube/resource.ts';
import { eventuallyDespiteErrors as eventually } from '../tools/eventually.ts';
import { type Component, type ComponentProcess, findNeeds, Installed, LEADING } from './installed.ts';

const found = await findNeeds();
/** So that a killed leader is not waited for long, and none that a busy machine holds up loses its lease; the order is that of the defaults. */
const ELECTION =
  '--leader-elect-lease-duration 30s --leader-elect-renew-deadline 25s --leader-elect-retry-period 1s'.split(' ');
const LEASE_DURATION_MS = 30_000;

const LEASE_NAMES: Readonly<Record<string, string>> = {
  'kube-apiserver-operator': 'kube-apiserver-operator-lock',
  'etcd-operator': 'openshift-cluster-etcd-operator-lock',
  'machine-config-operator': 'machine-config',
  'machine-config-controller': 'machine-config-controller',
};

// Mostly waiting: two at a time.
describe('leadership', { skip: 'missing' in found && found.missing, concurrency: 2 }, () => {
  let installed: Installed;

  before(async () => {
    if (!('missing' in found)) installed = await Installed.start(found);
  });
  after(() => installed?.stop());

  const leaseOf = async ({ command, namespace }: Component) => {
    const { spec = {} } = await installed.cluster.kube.get(LEASES, { namespace, name: LEASE_NAMES[command] ?? '' });
    return spec;
  };

  for (const component of LEADING) {
    test(`${component.command}: one of two leads; a killed leader is replaced, a stopped one hands over`, async t => {
      const start = (replica: number) => installed.startComponent(component, ELECTION, replica % 2);
      const first = await start(0);
      await first.says('"leading"');
      const identity = (await leaseOf(component)).holderIdentity;
      assert.ok(identity, 'nobody holds the lease');

      const second = await start(1);
      await second.says('waiting for the leadership');
      const handedOver: LeaseSpec[][] = [];
      const leases = new Informer(installed.cluster.kube, LEASES, { selection: { namespace: component.namespace } });
      leases.subscribe({
        update: ({ spec: before = {} }, { metadata, spec: now = {} }) => {
          if (metadata?.name === LEASE_NAMES[component.command] && before.holderIdentity !== now.holderIdentity)
            handedOver.push([before, now]);
        },
      });
      leases.start();
      t.after(() => leases.stop());
      await leases.synced;
      const killedAt = Date.now();
      await first.kill('SIGKILL');
      await second.says('"leading"');
      const takenOverMs = Date.now() - killedAt;
      const taken = await leaseOf(component);
      assert.notEqual(taken.holderIdentity, identity);
      // Not before the lease of the killed one is over: it might only have been slow.
      const [last = 0, next = 0] = await eventually('the change of hands', () =>
        handedOver[0]?.map(({ renewTime }) => Date.parse(renewTime ?? '')),
      );
      assert.ok(next - last >= LEASE_DURATION_MS, `taken over ${next - last} ms after it was renewed`);

      const third = await start(2);
      await third.says('waiting for the leadership');
      const stoppedAt = Date.now();
      assert.equal(await second.kill('SIGTERM'), 0, second.log);
      const endedMs = Date.now() - stoppedAt;
      await third.says('"leading"');
      const handedOverMs = Date.now() - stoppedAt;
      const handed = await leaseOf(component);
      assert.notEqual(handed.holderIdentity, taken.holderIdentity);
      assert.ok((handed.leaseTransitions ?? 0) >= 2, `transitions: ${handed.leaseTransitions}`);
      await released(component, third);
      t.diagnostic(
        `${component.command}: kill -9 to next leader ${takenOverMs} ms; SIGTERM to end ${endedMs} ms, to next leader ${handedOverMs} ms`,
      );
    });
  }

  /** With nobody waiting, the lease of a stopped leader is nobody's. */
  async function released(component: Component, last: ComponentProcess): Promise<void> {
    assert.equal(await last.kill('SIGTERM'), 0, last.log);
    await eventually('the lease to be free', async () => (await leaseOf(component)).holderIdentity === '' || undefined);
  }
});
