import { knownWord } from '../run-case.ts';
import assert from 'node:assert/strict';
import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { endpointsOf, endpointsOfNodes } from '../../../src/etcd/client/endpoints.ts';
import { cachedMembers } from '../../../src/etcd/client/members.ts';
import { ClientPool } from '../../../src/etcd/client/pool.ts';
import { Liveness } from '../../../src/etcd/liveness.ts';
import { type Candidate, nextLearner } from '../../../src/etcd/membership.ts';
import { BOOTSTRAP_IP } from '../../../src/etcd/names.ts';
import { preferredAddress, preferredFamily } from '../../../src/etcd/node-address.ts';
import { healthyMembers, type Member, type MemberHealth, unhealthyMembers, votingMembers } from '../../../src/etcd/quorum/member.ts';
import { silentLog } from '../../../src/controller/log.ts';
import { VirtualClock } from '../../../src/kube/clock.ts';
import { minutes, seconds } from '../../../src/kube/duration.ts';
import { recordingEvents } from '../../../src/kube/events.ts';
import { type Adapter, attempt, checkError, type Json } from './case.ts';

const NOW = '2026-01-01T00:00:00Z';

export const clientAdapters: Record<string, Adapter> = {
  'etcd-client': {
    given: ['etcdEndpointsConfigMap', 'serviceNetwork', 'masterNodeInternalIPs', 'isLearner'],
    expected: ['endpoints', 'error', 'votingCount'],
    async run({ given, expected }) {
      if (given.isLearner !== undefined) {
        const members = given.isLearner.map((isLearner: boolean) => ({ isLearner }));
        assert.equal(votingMembers(members).length, expected.votingCount);
        return;
      }
      let endpoints: string[] | undefined;
      const error = await attempt(() => {
        if (given.etcdEndpointsConfigMap === null) {
          const network = { status: { serviceNetwork: [given.serviceNetwork].flat() } };
          endpoints = endpointsOfNodes(given.masterNodeInternalIPs.map(nodeWith), network);
        } else {
          const { data, bootstrapIP } = given.etcdEndpointsConfigMap;
          const annotations = bootstrapIP ? { [BOOTSTRAP_IP]: bootstrapIP } : {};
          endpoints = endpointsOf({ metadata: { annotations }, data: { ...data } });
        }
      });
      checkError(error, { error: expected.error ?? null });
      if (expected.endpoints !== undefined) assert.deepEqual(endpoints?.toSorted(), expected.endpoints.toSorted());
    },
  },

  'member-cache': {
    given: [
      'refreshIntervalSeconds',
      'initialMemberIds',
      'then',
      'memberIds',
      'learnerIds',
      'healthy',
      'unhealthy',
      'unhealthyIds',
      't0',
      't30s',
      'queryAtSeconds',
    ],
    expected: ['memberIdsFirst', 'memberIdsAfterWait', 'memberIds', 'healthyCount'],
    async run({ given, expected }) {
      const clock = new VirtualClock(NOW);
      let members: MemberHealth[] = memberHealth(given.memberIds ?? given.initialMemberIds ?? [1, 2, 3], given);
      const cached = cachedMembers({ health: async () => members }, clock, seconds(given.refreshIntervalSeconds ?? 60));
      const ids = (list: readonly Member[]) => list.map(member => Number(member.id));
      const all = async () => (await cached.health()).map(({ member }) => member);
      if (expected.memberIdsFirst !== undefined) {
        assert.deepEqual(ids(await all()), expected.memberIdsFirst);
        const [, removed, waitSeconds] = /^remove member (\d+), wait (\d+) s$/.exec(given.then) ?? [];
        assert.ok(removed && waitSeconds, `unknown words: ${given.then}`);
        members = members.filter(({ member }) => member.id !== removed);
        await clock.advance(seconds(Number(waitSeconds)));
        assert.deepEqual(ids(await all()), expected.memberIdsAfterWait);
        return;
      }
      if (expected.healthyCount !== undefined) {
        knownWord(given.t0, 'three healthy observed');
        assert.equal(healthyMembers(await cached.health()).length, 3);
        await clock.advance(seconds(30));
        const [, dead] = /^member (\d+) dies$/.exec(given.t30s) ?? [];
        assert.ok(dead, `unknown words: ${given.t30s}`);
        members = members.map(entry => (entry.member.id === dead ? { ...entry, healthy: false } : entry));
        await clock.advance(seconds(given.queryAtSeconds - 30));
        assert.equal(healthyMembers(await cached.health()).length, expected.healthyCount);
        return;
      }
      const health = await cached.health();
      // Which of the questions a case asks is not among its words: all are asked, each has its answer, and one is what is expected.
      const learners: number[] = given.learnerIds ?? [];
      const down = health.flatMap(({ member, healthy }) => (healthy ? [] : [Number(member.id)]));
      const up = given.memberIds.filter((id: number) => !down.includes(id));
      const answers = [
        [await all(), given.memberIds],
        [healthyMembers(health), up],
        [unhealthyMembers(health), down],
      ].flatMap(([found, wanted]) => [
        [ids(found), wanted],
        [ids(votingMembers(found)), wanted.filter((id: number) => !learners.includes(id))],
      ]);
      for (const [found, wanted] of answers) assert.deepEqual(found, wanted);
      assert.ok(answers.map(([found]) => String(found)).includes(String(expected.memberIds)), `${expected.memberIds}`);
    },
  },

  'client-pool': {
    given: ['gets', 'returns', 'sequence', 'outstanding', 'thenGet', 'endpointError', 'newErrors', 'healthErrors', 'closeError'],
    expected: ['newCalls', 'endpointCalls', 'healthCalls', 'closeCalls', 'isError', 'error', 'waitSeconds'],
    async run({ given, expected }) {
      const clock = new VirtualClock(NOW);
      const calls = { new: 0, endpoint: 0, health: 0, close: 0 };
      const failing = { new: given.newErrors ?? 0, health: given.healthErrors ?? 0 };
      const pool = new ClientPool<object>(
        {
          async endpoints() {
            calls.endpoint++;
            if (given.endpointError) throw new Error(given.endpointError);
            return ['https://10.0.0.1:2379'];
          },
          async create() {
            calls.new++;
            if (failing.new-- > 0) throw new Error('cannot connect');
            return {};
          },
          redirect: () => {},
          async check() {
            calls.health++;
            if (failing.health-- > 0) throw new Error('not healthy');
          },
          async close() {
            calls.close++;
            if (given.closeError) throw new Error(given.closeError);
          },
        },
        clock,
      );
      const out: object[] = [];
      const get = async () => out.push(await settled(clock, pool.get()));
      const start = clock.now().getTime();
      const error = await attempt(async () => {
        for (let n = 0; n < (given.gets ?? given.outstanding ?? 0); n++) await get();
        for (let n = 0; n < (given.returns ?? 0); n++) pool.return(out.shift() as object);
        for (const word of given.sequence ?? []) {
          if (word === 'get') await get();
          else if (word === 'return') pool.return(out.shift() as object);
          else throw new Error(`unknown word ${word}`);
        }
        for (let n = 0; n < (given.thenGet ?? 0); n++) await get();
      });
      checkError(error, { ...expected, isError: expected.isError ?? expected.error !== undefined });
      if (expected.waitSeconds !== undefined) assert.equal(clock.now().getTime() - start, seconds(expected.waitSeconds));
      for (const [name, count] of Object.entries(calls)) {
        const wanted = expected[`${name}Calls`];
        if (wanted !== undefined) assert.equal(count, wanted, `${name}Calls`);
      }
    },
  },

  'cluster-member': {
    given: [
      'nodeIP',
      'votingMemberIPs',
      'serviceNetwork',
      'machineAPIFunctional',
      'machineHasDeletionHook',
      'machineDeleting',
      'machineMissing',
      'nodeDeleting',
      'etcdContainerRunning',
      'etcdContainerReady',
    ],
    expected: ['peerURLToAdd'],
    run({ given, expected }) {
      const { machineAPIFunctional = false, etcdContainerRunning = true, etcdContainerReady = false } = given;
      const family = given.serviceNetwork ? preferredFamily({ status: { serviceNetwork: [given.serviceNetwork] } }) : undefined;
      const machine = { isDeleting: given.machineDeleting ?? false, hasDeletionHook: given.machineHasDeletionHook ?? false };
      const candidate: Candidate = {
        name: 'master-0',
        address: preferredAddress(nodeWith(given.nodeIP), family),
        isDeleting: given.nodeDeleting ?? false,
        machine: machineAPIFunctional ? (given.machineMissing ? 'missing' : machine) : undefined,
        container: { running: etcdContainerRunning, ready: etcdContainerReady },
      };
      const members: Member[] = (given.votingMemberIPs ?? []).map((address: string, index: number) => ({
        id: String(index),
        name: `etcd-${index}`,
        peerURLs: [`https://${address.includes(':') ? `[${address}]` : address}:2380`],
        clientURLs: [],
        isLearner: false,
      }));
      assert.equal(nextLearner([candidate], members) ?? '', expected.peerURLToAdd);
    },
  },

  liveness: {
    given: ['lastRunAgeMinutes', 'thresholdMinutes', 'syncReturns', 'checkers'],
    expected: ['alive', 'timestampUpdated'],
    async run({ given, expected }) {
      const clock = new VirtualClock(NOW);
      const liveness = new Liveness(clock);
      const context = {
        signal: new AbortController().signal,
        clock,
        events: recordingEvents(),
        log: silentLog,
        enqueue: () => {},
      };
      if (given.checkers !== undefined) {
        const entries = Object.entries<Json>(given.checkers);
        for (const [name] of entries) liveness.watch(name, async () => {}, minutes(5));
        const stuck = entries.filter(([, alive]) => alive === false || alive?.alive === false).length;
        if (stuck > 0) await clock.advance(minutes(6));
        assert.equal(liveness.stuck().length === 0, expected.alive);
        return;
      }
      const limit = minutes(given.thresholdMinutes ?? 5);
      const pass = liveness.watch('Test', async () => {
        if (given.syncReturns === 'error') throw new Error('failed');
      }, limit);
      if (given.syncReturns !== undefined) {
        await clock.advance(limit);
        assert.deepEqual(liveness.stuck(), ['Test']);
        await attempt(() => pass('key', context));
        assert.equal(liveness.stuck().length === 0, expected.timestampUpdated ?? expected.alive);
      }
      await clock.advance(minutes(given.lastRunAgeMinutes ?? 0));
      assert.equal(liveness.stuck().length === 0, expected.alive);
      assert.equal((await attempt(() => liveness.check(context.signal))) === undefined, expected.alive);
    },
  },
};

function memberHealth(ids: number[], { learnerIds = [], unhealthyIds, healthy, unhealthy }: Json): MemberHealth[] {
  const down = unhealthyIds ?? (unhealthy === undefined ? [] : ids.slice(healthy));
  return ids.map(id => ({
    member: {
      id: String(id),
      name: `etcd-${id}`,
      peerURLs: [`https://10.0.0.${id}:2380`],
      clientURLs: [`https://10.0.0.${id}:2379`],
      isLearner: learnerIds.includes(id),
    },
    healthy: !down.includes(id),
  }));
}

/** A node with one address, or several. */
function nodeWith(addresses: string | string[]): Node {
  return { metadata: { name: 'master' }, status: { addresses: [addresses].flat().map(address => ({ type: 'InternalIP', address })) } };
}

/** The pauses inside end at once. */
async function settled<T>(clock: VirtualClock, work: Promise<T>): Promise<T> {
  let isOver = false;
  const over = () => (isOver = true);
  work.then(over, over);
  while (!isOver) {
    const next = clock.nextWait();
    if (next === undefined) await new Promise(resolve => setImmediate(resolve));
    else await clock.advanceTo(next);
  }
  return work;
}
