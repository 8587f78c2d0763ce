import assert from 'node:assert/strict';
import { builtInAction, builtInNeedsDrain } from '../../../src/machine-config-api/built-in-actions.ts';
import { configDifference, isNoDifference } from '../../../src/machine-config-api/config-difference.ts';
import { decideDisruption } from '../../../src/machine-config-api/disruption.ts';
import { longestPolicy, mergePolicies, policyActions, policyNeedsDrain } from '../../../src/machine-config-api/disruption-policy.ts';
import { contentsOf } from '../../../src/machine-config-api/ignition/contents.ts';
import { base64DataUrl } from '../../../src/machine-config-api/ignition/data-url.ts';
import { changedFiles } from '../../../src/machine-config-api/ignition/difference.ts';
import { readIgnition } from '../../../src/machine-config-api/ignition/read.ts';
import { readIgnitionBytes } from '../../../src/machine-config-api/ignition/read-bytes.ts';
import { emptyIgnition } from '../../../src/machine-config-api/ignition/types.ts';
import { deduplicated } from '../../../src/machine-config-api/ignition/v2.ts';
import { readConfig } from '../../../src/machine-config-api/reconciliation.ts';
import { commandOf, planActions } from '../../../src/daemon/decide/action-plan.ts';
import { missingKernelArguments } from '../../../src/daemon/decide/kernel-arguments.ts';
import { fipsProblem, reconcile } from '../../../src/daemon/decide/reconcile.ts';
import { type Adapter, type Json, onlyMembers } from './case.ts';

const REGISTRIES = '/etc/containers/registries.conf';

/** Configs: reading, comparing, and what a node does about a change. */
export const configAdapters: Record<string, Adapter> = {
  'machine-config-diff'(given, expected) {
    onlyMembers(given, ['old', 'new', 'forceFileExists']);
    const found = configDifference(readConfig(given.old), readConfig(given.new), given.forceFileExists);
    assert.deepEqual(found, expected.diff);
    assert.equal(isNoDifference(found), expected.isEmpty);
  },

  reconcilable(given, expected) {
    onlyMembers(given, ['old', 'new']);
    const found = reconcile(given.old, given.new, undefined);
    assert.equal(found.isPossible, expected.reconcilable);
    if (found.isPossible) return;
    const { old, new: current } = given;
    assert.ok(found.reason.startsWith(`can't reconcile config ${old.metadata.name} with ${current.metadata.name}`));
    contains(found.reason, expected.errorContains);
  },

  'fips-node-check'(given, expected) {
    onlyMembers(given, ['fipsEnabledFile', 'desiredFIPS']);
    const problem = fipsProblem(given.fipsEnabledFile ?? undefined, given.desiredFIPS);
    assert.equal(problem === undefined, expected.ok, problem);
    contains(problem, expected.errorContains);
  },

  'ignition-validate'(given, expected) {
    onlyMembers(given, ['config']);
    if (expected.valid) readIgnition(given.config);
    else contains(errorOf(() => readIgnition(given.config)), expected.errorContains);
  },

  'ignition-parse'(given, expected) {
    onlyMembers(given, ['raw']);
    if (expected.error) contains(errorOf(() => readIgnition(given.raw)), expected.errorContains);
    else assert.deepEqual(readIgnition(given.raw), expected.config);
  },

  'ignition-parse-v2-dedup'(given, expected) {
    onlyMembers(given, ['files', 'units', 'users']);
    const { files, units, users } = given;
    const found = deduplicated({
      ignition: { version: '2.2.0' },
      ...(files && { storage: { files } }),
      ...(units && { systemd: { units } }),
      ...(users && { passwd: { users } }),
    } as Parameters<typeof deduplicated>[0]);
    const lists: Json = { files: found.storage?.files, units: found.systemd?.units, users: found.passwd?.users };
    for (const [name, list] of Object.entries(expected)) assert.deepEqual(lists[name], list, name);
  },

  'ignition-parse-gzipped'(given, expected) {
    onlyMembers(given, ['bytesBase64']);
    const bytes = Buffer.from(given.bytesBase64, 'base64');
    if (expected.error) contains(errorOf(() => readIgnitionBytes(bytes)), expected.errorContains);
    else assert.deepEqual(readIgnitionBytes(bytes), expected.config);
  },

  'data-url'(given, expected) {
    onlyMembers(given, ['source', 'compression']);
    const { source, compression } = given;
    const resource = { ...(source !== null && { source }), ...(compression !== null && { compression }) };
    if (expected.error) contains(errorOf(() => contentsOf(resource)), expected.errorContains);
    else if (expected.bytes !== undefined) assert.equal(contentsOf(resource).toString('utf8'), expected.bytes);
    else assert.equal(contentsOf(resource).toString('base64'), expected.bytesBase64);
  },

  'validate-kargs'(given, expected) {
    onlyMembers(given, ['rpmOstreeKargs', 'expectedKargs']);
    const missing = missingKernelArguments(given.expectedKargs, [given.rpmOstreeKargs]);
    assert.deepEqual(missing, expected.missing);
    assert.equal(missing.length === 0, expected.ok);
  },

  'config-file-diff'(given, expected) {
    onlyMembers(given, ['old', 'new']);
    const [before, after] = [given.old, given.new].map(document => readIgnition(document) ?? emptyIgnition());
    assert.deepEqual(new Set(changedFiles(before!, after!)), new Set(expected.paths));
  },

  'post-config-action'(given, expected) {
    onlyMembers(given, ['old', 'new', 'forceFileExists']);
    const [before, after] = [readConfig(given.old), readConfig(given.new)];
    const difference = configDifference(before, after, given.forceFileExists);
    const action = builtInAction(difference, changedFiles(before.ignition, after.ignition), given.forceFileExists);
    assert.deepEqual([action], expected.actions);
  },

  'drain-required'(given, expected) {
    onlyMembers(given, ['actions', 'oldRegistriesConf', 'newRegistriesConf', 'otherChangedFiles', 'drainOverrideConfigMapExists']);
    const decide = () => given.actions.some((action: string) => needsDrain(action, given));
    if (expected.error) assert.throws(decide);
    else assert.equal(decide(), expected.drain);
  },

  'ndp-merge'({ userPolicy, ...others }, expected) {
    onlyMembers(others, []);
    // A list that is empty is left out of ours.
    const { units = [], ...found } = mergePolicies(userPolicy);
    assert.deepEqual({ ...found, units }, expected.clusterPolicies);
  },

  'ndp-actions'(given, expected) {
    onlyMembers(given, ['diffFlags', 'changedFiles', 'changedUnits', 'sshChanged', 'clusterPolicies', 'forceFileExists']);
    const { changedFiles: files, changedUnits, sshChanged, clusterPolicies, forceFileExists } = given;
    const plain = configDifference(readConfig({}), readConfig({}));
    const implied = { files: files.length > 0, units: changedUnits.length > 0, passwd: sshChanged };
    const difference = { ...plain, ...implied, ...given.diffFlags };
    const change = { difference, changedFiles: files, changedUnits, hasForceFile: forceFileExists };
    assert.deepEqual(policyActions(clusterPolicies, change), expected.actions);
  },

  'ndp-drain'(given, expected) {
    onlyMembers(given, ['actions', 'registriesChangeSafe']);
    const reason = () => (given.registriesChangeSafe === true ? undefined : 'unsafe');
    assert.equal(policyNeedsDrain(given.actions, reason), expected.drain);
  },

  'ndp-execute'(given, expected) {
    onlyMembers(given, ['actions']);
    executes(planActions({ engine: 'policy', actions: given.actions }, 'rendered'), expected);
  },

  'post-config-execute'(given, expected) {
    onlyMembers(given, ['actions']);
    const [action] = given.actions;
    assert.equal(given.actions.length, 1);
    executes(planActions({ engine: 'built-in', action }, 'rendered'), expected);
  },

  'ndp-path-match-later'(given, expected) {
    onlyMembers(given, ['changedPath', 'filePolicies']);
    const found = longestPolicy(given.filePolicies, given.changedPath);
    assert.equal(found !== undefined, expected.found);
    assert.deepEqual(found?.actions ?? [], expected.actions);
  },
};

function errorOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    return (error as Error).message;
  }
  assert.fail('expected an error, found none');
}

function contains(text: string | undefined, fragment: string | undefined): void {
  if (fragment !== undefined) assert.ok(text?.includes(fragment), `${text} does not contain ${fragment}`);
}

/** Through the whole decision, except for actions that no change of these files would lead to. */
function needsDrain(action: string, given: Json): boolean {
  const { oldRegistriesConf, newRegistriesConf, otherChangedFiles, drainOverrideConfigMapExists } = given;
  const config = (registries: string | null, other: string) => readConfig({ spec: { config: documentOf(registries, otherChangedFiles, other) } });
  const [before, after] = [config(oldRegistriesConf, 'old'), config(newRegistriesConf, 'new')];
  const found = decideDisruption(before, after, { hasDrainOverride: drainOverrideConfigMapExists });
  if (found.actions.engine === 'built-in' && found.actions.action === action) return found.needsDrain;
  const paths = changedFiles(before.ignition, after.ignition);
  const policies = { files: [{ path: REGISTRIES, actions: [{ type: 'Special' as const }] }] };
  return builtInNeedsDrain(action, paths, drainOverrideConfigMapExists, () =>
    decideDisruption(before, after, { policies }).needsDrain ? 'unsafe' : undefined,
  );
}

function documentOf(registries: string | null, others: readonly string[], content: string): object {
  const file = (path: string, text: string) => ({ path, contents: { source: base64DataUrl(text) } });
  const files = [
    ...(registries === null ? [] : [file(REGISTRIES, registries)]),
    ...others.map(path => file(path, content)),
  ];
  return { ignition: { version: '3.4.0' }, storage: { files } };
}

function executes(plan: ReturnType<typeof planActions>, expected: Json): void {
  onlyMembers(expected, ['commands', 'events', 'then']);
  const commands = plan.steps.flatMap(({ operation }) => (operation === undefined ? [] : [commandOf(operation).join(' ')]));
  const isReboot = plan.ending === 'reboot';
  assert.deepEqual(isReboot ? [...commands, 'reboot (see group reboot-command)'] : commands, expected.commands);
  assert.deepEqual(plan.steps.flatMap(({ done }) => (done === undefined ? [] : [done.reason])), expected.events);
  assert.equal(plan.ending, expected.then);
}
