import { knownWord } from '../run-case.ts';
import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { rebootNode } from '../../../src/daemon/agent/reboot.ts';
import { extensionArguments, extensionProblem, unsupportedPackages } from '../../../src/daemon/apply/extensions.ts';
import { kernelArgumentChanges, runningKernelArguments, tuningChanges } from '../../../src/daemon/apply/kernel-arguments.ts';
import { isBootedInto, osChangesText } from '../../../src/daemon/apply/os.ts';
import { sshKeyFile } from '../../../src/daemon/apply/ssh-keys.ts';
import { commandOutput, runCommand, truncated } from '../../../src/host/command.ts';
import { imageLookup, isImagePresent } from '../../../src/host/extensions-image.ts';
import { linuxHost } from '../../../src/host/linux.ts';
import { memoryFiles } from '../../../src/host/memory-disk.ts';
import { isRhel7Like, operatingSystemOf } from '../../../src/host/os-release.ts';
import { bootedOf, rpmOstreeVersion } from '../../../src/host/rpm-ostree.ts';
import { systemOf } from './apply-users.ts';
import { type Adapter, onlyMembers } from './case.ts';

export const osAdapters: Record<string, Adapter> = {
  'kernel-args'(given, expected) {
    onlyMembers(given, ['old', 'new']);
    onlyMembers(expected, ['args', 'commandRun']);
    const changes = kernelArgumentChanges(given.old ?? [], given.new ?? []);
    assert.deepEqual(changes, expected.args);
    if (expected.commandRun !== undefined) assert.equal(changes.length > 0, expected.commandRun);
  },

  'running-kargs'(given, expected) {
    onlyMembers(given, ['cmdline', 'requested']);
    onlyMembers(expected, ['currentKargs', 'kargsDiff']);
    const running = runningKernelArguments(given.cmdline, given.requested);
    assert.deepEqual(running, expected.currentKargs ?? []);
    assert.equal(!isDeepStrictEqual(running, given.requested), expected.kargsDiff);
  },

  'tuning-args'(given, expected) {
    onlyMembers(given, ['os', 'file', 'cmdline']);
    onlyMembers(expected, ['add', 'delete']);
    assert.deepEqual(tuningChanges(given.file ?? undefined, given.cmdline, systemOf(given.os)), expected);
  },

  extensions(given, expected) {
    onlyMembers(given, ['extensions']);
    onlyMembers(expected, ['valid', 'errorContains']);
    assert.equal(extensionProblem(given.extensions) === undefined, expected.valid);
    if (expected.errorContains !== undefined) assert.ok(extensionProblem(given.extensions)?.includes(expected.errorContains));
  },

  'extension-args'(given, expected) {
    onlyMembers(given, ['os', 'old', 'new']);
    onlyMembers(expected, ['args']);
    assert.deepEqual(extensionArguments(systemOf(given.os), given.old, given.new), expected.args);
  },

  async 'reboot-command'(given, expected) {
    onlyMembers(given, ['rationale', 'coreOSVariant', 'commandFails']);
    onlyMembers(expected, ['argv', 'annotation', 'error', 'errorContains', 'metric', 'rollback']);
    const files = memoryFiles();
    if (given.coreOSVariant === true) await files.write('/etc/os-release', Buffer.from('ID=rhcos\nRHEL_VERSION=9.2\n'));
    const commands: (readonly string[])[] = [];
    const host = await linuxHost({
      files,
      async run(argv) {
        commands.push(argv);
        return { code: given.commandFails === true ? 1 : 0, stdout: '', stderr: '' };
      },
    });
    const told: Record<string, string>[] = [];
    let failures = 0;
    const parts = {
      host,
      writer: { annotate: async (annotations: Record<string, string>) => void told.push(annotations) },
      log: { debug() {}, info() {}, warn() {}, error() {}, child() {} },
      metrics: { rebootFailed: () => void failures++ },
    };
    const work = rebootNode(parts as never, given.rationale ?? 'test');
    if (expected.error === true) await assert.rejects(work, (error: Error) => error.message.includes(expected.errorContains));
    else await work;
    if (expected.argv !== undefined) assert.deepEqual(commands.at(-1), expected.argv);
    if (expected.annotation !== undefined) assert.deepEqual(told, [expected.annotation]);
    // Whoever asked for the reboot takes the update back: update-rollback has that as a failing post-action.
    knownWord(expected.rollback, undefined, expected.error === true);
    if (expected.metric !== undefined) assert.deepEqual([failures, expected.metric], [1, 'mcd_reboots_failed_total +1']);
  },

  'os-changes-string'(given, expected) {
    onlyMembers(given, ['diff']);
    onlyMembers(expected, ['text']);
    assert.equal(osChangesText(given.diff), expected.text);
  },

  'os-release'(given, expected) {
    if (given.version !== undefined) {
      onlyMembers(given, ['version']);
      onlyMembers(expected, ['isRHEL7Like']);
      assert.equal(isRhel7Like(given.version), expected.isRHEL7Like);
      return;
    }
    onlyMembers(given, ['osRelease']);
    const { sshKeyPath, ...flags } = expected;
    const system = operatingSystemOf(given.osRelease);
    for (const [name, value] of Object.entries(flags)) assert.deepEqual([name, system[name as keyof typeof system]], [name, value]);
    if (sshKeyPath !== undefined) assert.equal(sshKeyFile(system), sshKeyPath);
  },

  'rpm-ostree-version'(given, expected) {
    onlyMembers(given, ['yaml']);
    assert.deepEqual(rpmOstreeVersion(given.yaml), expected);
  },

  truncate(given, expected) {
    onlyMembers(given, ['text', 'limit']);
    onlyMembers(expected, ['text']);
    assert.equal(truncated(given.text, given.limit), expected.text);
  },

  async 'command-output'(given, expected) {
    onlyMembers(given, ['command']);
    onlyMembers(expected, ['stdout', 'error', 'errorContains']);
    const work = commandOutput(runCommand, given.command);
    if (expected.error === true) await assert.rejects(work, (error: Error) => error.message.includes(expected.errorContains ?? ''));
    else assert.equal(await work, expected.stdout);
  },

  'image-present'(given, expected) {
    onlyMembers(given, ['podmanOutput']);
    onlyMembers(expected, ['present', 'command']);
    assert.equal(isImagePresent(given.podmanOutput), expected.present);
    if (expected.command !== undefined) assert.deepEqual(imageLookup('<image>'), expected.command);
  },

  'check-os'(given, expected) {
    onlyMembers(given, ['coreOSVariant', 'targetURL', 'bootedURL', 'bootedCommit', 'imageOstreeCommitLabel']);
    onlyMembers(expected, ['match']);
    const isMatch = isBootedInto({
      isCoreOSVariant: given.coreOSVariant,
      targetImage: given.targetURL,
      bootedImage: given.bootedURL,
      bootedCommit: given.bootedCommit,
      targetCommit: given.imageOstreeCommitLabel ?? undefined,
    });
    assert.equal(isMatch, expected.match);
  },

  'unsupported-packages'(given, expected) {
    onlyMembers(given, ['booted']);
    onlyMembers(expected, ['mcd_local_unsupported_packages']);
    const booted = bootedOf(JSON.stringify({ deployments: [{ booted: true, ...given.booted }] }));
    assert.equal(unsupportedPackages(booted), expected.mcd_local_unsupported_packages);
  },
};
