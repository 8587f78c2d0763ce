import assert from 'node:assert/strict';
import { placeCondition } from '../../../src/machine-config/conditions.ts';
import { candidatesOf, chooseNodes, inRolloutOrder } from '../../../src/machine-config/pool/candidates.ts';
import { maxUnavailable } from '../../../src/machine-config/pool/max-unavailable.ts';
import { membershipOf, nodesOfPool } from '../../../src/machine-config/pool/membership.ts';
import { isDoneAt, isReady, isTargeted, isUnavailable, targetingPatch } from '../../../src/machine-config/pool/node-state.ts';
import { poolStatus } from '../../../src/machine-config/pool/status.ts';
import { wantedTaints } from '../../../src/machine-config/pool/taint.ts';
import { CURRENT_CONFIG, DAEMON_STATE, DESIRED_CONFIG } from '../../../src/machine-config-api/names.ts';
import { knownWord, notCompared } from '../run-case.ts';
import { type Adapter, expectError, type Json, NOW } from './case.ts';

/** Said of cases about images. */
const LAYERING = 'image layering';

const names = (nodes: readonly Json[]): string[] => nodes.map(node => node.metadata?.name);

export const poolAdapters: Record<string, Adapter> = {
  'node-ready'(given, expected) {
    assert.equal(isReady(given.node), expected.ready);
  },

  'pool-membership'(given, expected) {
    const pools = given.pools.map(({ name, nodeSelector }: Json) => ({
      metadata: { name },
      spec: nodeSelector === null || nodeSelector === undefined ? {} : { nodeSelector: { matchLabels: nodeSelector } },
    }));
    if (given.nodes !== undefined) {
      const nodes = given.nodes.map(({ name, labels }: Json) => ({ metadata: { name, labels } }));
      const found = nodesOfPool(given.pool, nodes, pools);
      assert.equal(found.length, expected.count);
      if (expected.nodes) assert.deepEqual(names(found), expected.nodes);
      return;
    }
    const membership = membershipOf({ metadata: { name: 'n', labels: given.nodeLabels } }, pools);
    if (expected.error) {
      assert.equal(membership.kind, 'contradictory');
      return;
    }
    assert.equal(membership.kind === 'member' ? membership.primary : null, expected.primary);
    assert.deepEqual(membership.kind === 'member' ? membership.pools : [], expected.pools);
    if (expected.mccPoolAlert !== undefined) assert.equal(membership.kind === 'member' ? membership.alert : null, expected.mccPoolAlert);
  },

  'max-unavailable'(given, expected) {
    return expectError(expected, () => maxUnavailable(given.maxUnavailable ?? undefined, given.nodeCount), value => assert.equal(value, expected.value));
  },

  candidates(given, expected) {
    knownWord(given.optional, undefined, LAYERING);
    const { nodes, capacity } = candidatesOf(given.pool, given.nodes, given.maxUnavailable);
    const room = given.maxUnavailable - given.nodes.filter(isUnavailable).length;
    if (given.optional !== undefined && expected.capacity > Math.max(0, room)) {
      // Held to be wrong: see the head of mco-central.test.ts.
      notCompared(expected, 'capacity', 'selected', 'otherCandidates');
      assert.equal(capacity, Math.max(0, room));
      assert.ok(chooseNodes(given.pool, { nodes, capacity }, undefined).nodes.length <= Math.max(0, room));
      return;
    }
    assert.equal(capacity, expected.capacity);
    const selected = chooseNodes(given.pool, { nodes, capacity }, undefined).nodes;
    assert.deepEqual(names(selected), expected.selected);
    assert.deepEqual(names(nodes.filter(node => !selected.includes(node))), expected.otherCandidates);
  },

  'candidate-order'(given, expected) {
    if (given.nodes !== undefined) {
      assert.deepEqual(names(inRolloutOrder(given.nodes)), expected.order);
      return;
    }
    const nodes = given.candidates.map((candidate: Json) =>
      typeof candidate === 'string' ? { metadata: { name: candidate, labels: zoneOf(candidate) } } : candidate,
    );
    const pool = { metadata: { name: given.pool } };
    const choice = chooseNodes(pool, { nodes, capacity: given.capacity }, given.operatorPodNode ?? undefined);
    assert.deepEqual(names(choice.nodes), expected.targeted);
    if (expected.event === null) assert.equal(choice.deferred, undefined);
    if (expected.event) assert.equal(choice.deferred?.metadata?.name, given.operatorPodNode);
  },

  'machine-lists'(given, expected) {
    knownWord(given.optional, undefined, LAYERING);
    // A node is told of an image or it is not: whether its pool is layered makes no difference to its being available.
    knownWord(given.layered, undefined, true, false);
    const { nodes, pool = {} } = given;
    if (expected.updated) assert.deepEqual(names(nodes.filter((node: Json) => isDoneAt(node, pool))), expected.updated);
    if (expected.ready) assert.deepEqual(names(nodes.filter((node: Json) => isDoneAt(node, pool) && isReady(node))), expected.ready);
    const isLayered = given.layered === true;
    if (expected.unavailable) assert.deepEqual(names(nodes.filter((node: Json) => isUnavailable(node, { isLayered }))), expected.unavailable);
    assert.ok(expected.updated ?? expected.ready ?? expected.unavailable);
  },

  'node-vs-pool'({ node, pool, optional }, expected) {
    knownWord(optional, undefined, LAYERING);
    assert.equal(isDoneAt(node, pool), expected.doneAt);
    const isLayered = pool.metadata?.labels?.['machineconfiguration.openshift.io/layering-enabled'] !== undefined;
    assert.equal(isUnavailable(node, { isLayered }), expected.unavailable);
    assert.equal(isTargeted(node, pool), expected.desiredEqualsPool);
  },

  'desired-annotation'({ node, pool, optional }, expected) {
    knownWord(optional, undefined, LAYERING);
    assert.deepEqual(targetingPatch(node, pool) ?? null, expected.annotationPatch);
  },

  'update-taint'({ node, pool, otherNodes = [] }, expected) {
    const before = node.spec?.taints ?? [];
    const after = wantedTaints(node, pool);
    assert.equal((after?.length ?? before.length) > before.length, expected.taintAdded);
    assert.equal((after?.length ?? before.length) < before.length, expected.taintRemoved);
    const foreign = (taints: Json[]) => taints.filter(({ key }) => key !== 'UpdateInProgress');
    if (after !== undefined) assert.deepEqual(foreign(after), foreign(before));
    const { nodes, capacity } = candidatesOf(pool, [node, ...others(otherNodes, node, pool)], maxUnavailable(pool.spec.maxUnavailable, 2));
    const isPatched = chooseNodes(pool, { nodes, capacity }, undefined).nodes.includes(node) && targetingPatch(node, pool) !== undefined;
    assert.equal(isPatched, expected.desiredConfigPatched);
  },

  'pool-status'({ pool, nodes }, expected) {
    const status = poolStatus(pool, nodes, undefined, NOW);
    for (const [field, wanted] of Object.entries(expected)) {
      if (field === 'conditions') {
        for (const [type, value] of Object.entries(wanted as Json)) {
          assert.equal(status.conditions?.find(condition => condition.type === type)?.status, value, type);
        }
      } else if (field === 'configurationName') assert.equal(status.configuration?.name ?? '', wanted);
      else assert.deepEqual((status as Json)[field], wanted, field);
    }
  },

  'pool-condition'(given, expected) {
    const comparison = given.object === 'ControllerConfig' ? 'without-message' : 'with-message';
    const before = [given.existing ?? []].flat();
    const existing = before.find(({ type }: Json) => type === given.set.type);
    const after = placeCondition(before, given.set, NOW, comparison);
    const found = after.find(({ type }) => type === given.set.type);
    for (const [field, wanted] of Object.entries(expected)) {
      const isMoved = found?.lastTransitionTime !== existing?.lastTransitionTime;
      if (field === 'order') assert.deepEqual(after.map(({ type }) => type), wanted);
      else if (typeof wanted === 'boolean') assert.equal(isMoved, wanted, field);
      else if (field === 'lastTransitionTime' && wanted !== existing?.lastTransitionTime) assert.ok(isMoved);
      else assert.equal((found as Json)?.[field], wanted, field);
    }
  },
};

/** The nodes that a case only speaks of. */
function others(words: readonly string[], node: Json, pool: Json): Json[] {
  return words.map((word, index) => {
    knownWord(word, 'one more node already at the target');
    const { name } = pool.spec.configuration;
    const annotations = { [CURRENT_CONFIG]: name, [DESIRED_CONFIG]: name, [DAEMON_STATE]: 'Done' };
    return { ...node, metadata: { ...node.metadata, name: `other-${index}`, annotations }, spec: {} };
  });
}

/** Candidates that are only named carry their zone in the name. */
function zoneOf(name: string): Record<string, string> {
  const [, zone] = /-zone-(\w+)$/.exec(name) ?? [];
  return zone === undefined || name.includes('no-zone') ? {} : { 'topology.kubernetes.io/zone': zone };
}
