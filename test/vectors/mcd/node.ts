import assert from 'node:assert/strict';
import { silentLog } from '../../../src/controller/log.ts';
import { VirtualClock } from '../../../src/kube/clock.ts';
import {
  CONTROL_PLANE_TOPOLOGY,
  CURRENT_CONFIG,
  CURRENT_IMAGE,
  DAEMON_STATE,
  DESIRED_CONFIG,
  DESIRED_DRAIN,
  DESIRED_IMAGE,
  LAST_APPLIED_DRAIN,
  POST_CONFIG_ACTION,
} from '../../../src/machine-config-api/names.ts';
import { drainRequest } from '../../../src/machine-config/drain/decide.ts';
import { watchKubeletHealth } from '../../../src/daemon/agent/kubelet-health.ts';
import { decideDrain, drainTimeout, uncordonRequest, UNCORDON_WITHIN_MS } from '../../../src/daemon/decide/drain-handshake.ts';
import { stateOfError, UnreconcilableError } from '../../../src/daemon/decide/reconcile.ts';
import { decideAfterValidation, decidePreparations, decideStartUp, INITIAL_ANNOTATIONS_BACKUP } from '../../../src/daemon/decide/start-up.ts';
import { decideSync } from '../../../src/daemon/decide/sync-gate.ts';
import { decideUpdate, decideUpdatePath, isSameTarget } from '../../../src/daemon/decide/update-needed.ts';
import { changeOf, mayStartWorking, type NodeOperation } from '../../../src/daemon/node-writer.ts';
import { type Adapter, type Json, onlyMembers } from './case.ts';

/** The node: what it says of itself, whether it must be updated, and how it starts. */
export const nodeAdapters: Record<string, Adapter> = {
  'prep-update'(given, expected) {
    onlyMembers(given, ['onDiskConfig', 'onDiskImage', 'nodeAnnotations', 'clusterConfigs']);
    const { onDiskConfig, onDiskImage, nodeAnnotations, clusterConfigs } = given;
    const disk = onDiskConfig ? { config: onDiskConfig, image: onDiskImage ?? '' } : undefined;
    const found = decideUpdate(nodeAnnotations, disk, name => clusterConfigs.includes(name));
    onlyMembers(expected, ['update', 'noUpdate', 'error', 'errorContains']);
    if (expected.error) {
      assert.ok(found.kind === 'error');
      assert.ok(found.message.includes(expected.errorContains ?? ''), found.message);
    } else if (expected.update) {
      assert.ok(found.kind === 'update', JSON.stringify(found));
      const { from, to } = found;
      const update = { currentConfig: from.config, desiredConfig: to.config, currentImage: from.image, desiredImage: to.image };
      assert.deepEqual(update, expected.update);
    } else {
      assert.deepEqual(found, { kind: 'none' });
    }
  },

  'in-desired-config'({ currentConfig, desiredConfig, currentImage, desiredImage, ...others }, expected) {
    onlyMembers(others, []);
    const [current, desired] = [{ config: currentConfig, image: currentImage }, { config: desiredConfig, image: desiredImage }];
    assert.equal(isSameTarget(current, desired), expected.inDesired);
  },

  'trigger-update'(given, expected) {
    onlyMembers(given, ['currentImage', 'desiredImage']);
    const found = decideUpdatePath(given.currentImage, given.desiredImage);
    if (found.kind === 'error') {
      assert.ok(expected.error, found.message);
      assert.ok(found.message.includes(expected.errorContains ?? ''), found.message);
    } else {
      assert.equal(`${found.kind} update`, expected.path);
    }
  },

  'node-annotations'(given, expected) {
    const { set, remove } = changeOf(operationOf(given));
    onlyMembers(expected, ['set', 'delete', 'reasonLength']);
    if (expected.reasonLength !== undefined) {
      assert.equal(set['machineconfiguration.openshift.io/reason']?.length, expected.reasonLength);
    }
    if (expected.set !== undefined) assert.deepEqual(set, expected.set);
    if (expected.delete !== undefined) assert.deepEqual(new Set(remove), new Set(expected.delete));
  },

  'error-state'(given, expected) {
    onlyMembers(given, ['error']);
    assert.equal(stateOfError(errorOf(given.error)), expected.state);
  },

  'set-working'(given, expected) {
    onlyMembers(given, ['stateAnnotation']);
    assert.equal(mayStartWorking(given.stateAnnotation ?? undefined), expected.setWorking);
  },

  'node-sync-gate'(given, expected) {
    onlyMembers(given, ['key', 'self', 'rebootQueued', 'booting', 'desiredDrain', 'lastAppliedDrain', ...DELETED, ...POST_ACTION, 'nodeInCache']);
    const { key = 'node-a', self = 'node-a', nodeInCache = true } = given;
    const annotations = defined({
      [DESIRED_DRAIN]: given.desiredDrain,
      [LAST_APPLIED_DRAIN]: given.lastAppliedDrain,
      [POST_CONFIG_ACTION]: POST_ACTION.map(name => given[name]).find(Boolean),
    });
    const isDeleted = DELETED.some(name => Boolean(given[name]));
    const metadata = { name: key, annotations, ...(isDeleted && { deletionTimestamp: '2026-01-01T00:00:00Z' }) };
    const found = decideSync({
      key,
      self,
      node: nodeInCache ? { metadata } : undefined,
      isRebootQueued: given.rebootQueued ?? false,
      isBooting: given.booting ?? false,
    });
    onlyMembers(expected, ['result', 'annotations']);
    if (expected.result !== undefined) {
      assert.equal(found.verdict, /^(wait|stop|end)/.test(expected.result) ? 'wait-for-drain' : expected.result);
    }
    if (expected.annotations !== undefined) assert.deepEqual(found.annotations, expected.annotations);
  },

  'drain-handshake'(given, expected) {
    onlyMembers(given, ['topology', 'desiredConfig', 'lastAppliedDrain', 'node', 'elapsedSeconds', 'applied', 'complete', 'uncordon']);
    onlyMembers(expected, ['annotations', 'events', 'eventMessage', 'result', 'pollSeconds', 'timeoutSeconds', 'error', 'errorContains']);
    if (given.applied === false) {
      const isUncordon = given.complete !== undefined || given.elapsedSeconds * 1000 === UNCORDON_WITHIN_MS;
      const { event, message } = drainTimeout(isUncordon ? 'uncordon' : 'drain', given.node);
      assert.equal(expected.error, true);
      assert.ok(message.includes(expected.errorContains ?? ''), message);
      assert.deepEqual([event], expected.events);
      return;
    }
    const { annotations, events, pollMs, withinMs, message, kind } = handshakeOf(given);
    if (expected.annotations !== undefined) assert.deepEqual(annotations, expected.annotations);
    if (expected.events !== undefined) assert.deepEqual(events, expected.events);
    if (expected.pollSeconds !== undefined) assert.equal(pollMs, expected.pollSeconds * 1000);
    if (expected.timeoutSeconds !== undefined) assert.equal(withinMs, expected.timeoutSeconds * 1000);
    if (expected.eventMessage !== undefined) assert.equal(message, expected.eventMessage);
    if (expected.result !== undefined) {
      assert.equal(kind, /already|done|complete|drained/.test(expected.result) ? 'already-drained' : expected.result);
    }
  },

  'drain-verb'(given, expected) {
    onlyMembers(given, ['desiredDrain', 'lastAppliedDrain']);
    const annotations = { [DESIRED_DRAIN]: given.desiredDrain, [LAST_APPLIED_DRAIN]: given.lastAppliedDrain };
    const { verb } = drainRequest({ metadata: { annotations } });
    const said = { drain: 'cordon+drain', uncordon: 'uncordon', unknown: 'error', nothing: 'nothing' }[verb];
    assert.equal(said, /^(none|nothing|no-?op|ignore|skip)$/.test(expected.action) ? 'nothing' : expected.action);
  },

  async 'kubelet-health'(given, expected) {
    onlyMembers(given, ['responses']);
    const stop = new AbortController();
    const clock = new VirtualClock('2026-01-01T00:00:00Z');
    const counted: number[] = [];
    const answers = [...given.responses] as string[];
    const metrics = {
      kubeletFailures(count: number) {
        counted.push(count);
        if (counted.length === given.responses.length) stop.abort();
      },
    };
    const ask = async () => {
      const answer = answers.shift() ?? '';
      if (/^(conn|timeout|refused)/.test(answer)) throw new Error('connect ECONNREFUSED');
      return answer;
    };
    const watching = watchKubeletHealth({ endpoint: 'http://kubelet/healthz', clock, log: silentLog, metrics, ask }, stop.signal);
    while (!stop.signal.aborted) await clock.advance(30_000);
    await watching;
    assert.deepEqual(counted, expected.mcd_kubelet_state);
  },

  startup,
};

/** How a case may say that a node goes, and that a reboot was announced. */
const DELETED = ['deletionTimestamp', 'deleted', 'deleting', 'nodeDeleting', 'beingDeleted'];
const POST_ACTION = ['postConfigAction', 'post-config-action', POST_CONFIG_ACTION];

function defined(annotations: Record<string, string | null | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(annotations).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}

function operationOf(given: Json): NodeOperation {
  onlyMembers(given, ['operation', 'currentConfig', 'currentImage', 'desiredImage', 'errorLength', 'error', 'reason', 'value']);
  const reason = given.error ?? given.reason ?? 'e'.repeat(given.errorLength ?? 1);
  switch (given.operation) {
    case 'SetDone':
      return { kind: 'done', currentConfig: given.currentConfig, currentImage: given.currentImage, desiredImage: given.desiredImage };
    case 'SetWorking':
      return { kind: 'working' };
    case 'SetDegraded':
      return { kind: 'degraded', reason };
    case 'SetUnreconcilable':
      return { kind: 'unreconcilable', reason };
    case 'SetDesiredDrainer':
      return { kind: 'desired-drain', value: given.value };
    default:
      assert.fail(`unknown operation ${given.operation}`);
  }
}

function errorOf(text: string): Error {
  const unreconcilable = new UnreconcilableError("can't reconcile config a with b");
  if (text === 'unreconcilable') return unreconcilable;
  if (/wrap|: unreconcilable/.test(text)) return new Error('update failed', { cause: unreconcilable });
  if (/joined|aggregate|combined/.test(text)) return new AggregateError([new Error('undo failed'), unreconcilable]);
  assert.ok(!text.includes('unreconcilable'), `unknown error ${text}`);
  return new Error(text);
}

interface Handshake {
  readonly kind: string;
  readonly annotations: object;
  readonly events: readonly string[];
  readonly message?: string;
  readonly pollMs?: number;
  readonly withinMs?: number;
}

function handshakeOf(given: Json): Handshake {
  if (given.complete !== undefined) return { kind: 'request', ...uncordonRequest(given.complete) };
  const found = decideDrain(
    defined({
      [CONTROL_PLANE_TOPOLOGY]: given.topology,
      [DESIRED_CONFIG]: given.desiredConfig,
      [LAST_APPLIED_DRAIN]: given.lastAppliedDrain,
    }),
  );
  if (found.kind === 'request') return { kind: found.kind, ...found.request };
  return { annotations: {}, events: [], ...found };
}

const PRESET = '/etc/systemd/system-preset/20-ignition.preset';
const ENCAPSULATED = '/etc/ignition-machine-config-encapsulated.json';

function startup(given: Json, expected: Json): void {
  onlyMembers(given, [
    'annotations', 'onDiskConfig', 'onDiskImage', 'validation', 'forceFileExists', 'initialAnnotationsFile', 'osMatches', 'clusterConfigs', PRESET, ENCAPSULATED,
  ]);
  const preparations = decidePreparations({
    hasEncapsulatedConfig: given[ENCAPSULATED] === true,
    hasIgnitionPreset: given[PRESET] === true,
  });
  onlyMembers(expected, [
    'steps', 'state', 'event', 'reasonContains', 'validationSkipped', 'then', 'bakRename', 'currentConfigStored', 'error', 'errorContains', 'removed', 'renamed', 'set', 'annotations',
  ]);
  if (expected.removed !== undefined) assert.deepEqual(preparations, [{ kind: 'remove', path: expected.removed }]);
  if (expected.renamed !== undefined) {
    const [to] = String(expected.renamed).split(' -> ').slice(-1);
    assert.deepEqual(preparations, [{ kind: 'rename', from: ENCAPSULATED, to }]);
  }
  if (given.annotations === undefined) return;
  const { annotations: a, onDiskConfig, onDiskImage, initialAnnotationsFile } = given;
  const said = defined({
    [CURRENT_CONFIG]: a.currentConfig,
    [DESIRED_CONFIG]: a.desiredConfig,
    [DAEMON_STATE]: a.state,
    [CURRENT_IMAGE]: a.currentImage,
    [DESIRED_IMAGE]: a.desiredImage,
  });
  const found = decideStartUp({
    annotations: said,
    disk: onDiskConfig ? { config: onDiskConfig, image: onDiskImage ?? '' } : undefined,
    initialAnnotations: initialAnnotationsFile ? said : undefined,
    hasForceFile: given.forceFileExists ?? false,
    hasEncapsulatedConfig: false,
    hasIgnitionPreset: false,
    isOsAsWanted: given.osMatches ?? true,
    hasConfig: name => given.clusterConfigs?.includes(name) ?? true,
  });
  const annotated = expected.set ?? expected.annotations;
  if (annotated !== undefined) {
    const plain = Object.entries(found.annotations).map(([name, value]) => [name.split('/').at(-1), value]);
    assert.deepEqual(Object.fromEntries(plain), Object.fromEntries(Object.entries(annotated).map(([name, value]) => [name.split('/').at(-1), value])));
  }
  if (expected.error) {
    assert.ok(found.kind === 'error', JSON.stringify(found));
    assert.ok(found.message.includes(expected.errorContains ?? ''), found.message);
    return;
  }
  // The wanted config comes from the controller, once the node has said where it is.
  if (annotated !== undefined && a.desiredConfig === undefined) return;
  if (/rebase|OS/i.test(expected.then ?? '')) {
    assert.equal(found.kind, 'rebase-and-reboot');
    return;
  }
  assert.ok(found.kind === 'proceed', JSON.stringify(found));
  assert.equal(found.next === 'forced-update', expected.validationSkipped === true);
  if (expected.validationSkipped) {
    assert.equal(expected.then, `update ${found.current.config} -> ${found.desired.config} with reboot`);
    return;
  }
  if (expected.bakRename !== undefined) {
    assert.equal(found.isBootstrapping, expected.bakRename);
    assert.ok(INITIAL_ANNOTATIONS_BACKUP.endsWith('.bak'));
  }
  if (expected.currentConfigStored !== undefined) assert.equal(found.current.config, expected.currentConfigStored);
  const problem = given.validation === undefined || given.validation === 'ok' ? undefined : given.validation;
  const after = decideAfterValidation(found, problem);
  switch (after.kind) {
    case 'degraded':
      assert.equal(expected.state, 'Degraded');
      assert.equal(after.event, expected.event ?? after.event);
      assert.ok(after.reason.includes(expected.reasonContains ?? ''), after.reason);
      return;
    case 'complete': {
      const { config } = after.target;
      const steps = [
        `validate ${found.current.config}`,
        ...Object.values(uncordonRequest(config).annotations).map(value => `desiredDrain=${value}`),
        `SetDone ${config}`,
      ];
      if (expected.steps !== undefined) assert.deepEqual(steps, expected.steps);
      else assert.match(expected.then, /complete/);
      if (expected.state !== undefined) assert.equal(changeOf({ kind: 'done', currentConfig: config }).set[DAEMON_STATE], expected.state);
      return;
    }
    case 'update': {
      if (expected.event !== undefined) assert.equal(after.event, expected.event);
      const update = `update ${after.from.config} -> ${after.to.config}`;
      if (expected.steps !== undefined) assert.ok(expected.steps.join('; ').includes(update), update);
      if (expected.then !== undefined) assert.ok(expected.then.startsWith(update), `${expected.then}: ${update}`);
    }
  }
}
