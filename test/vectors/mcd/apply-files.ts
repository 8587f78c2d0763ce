import { silentLog as silent } from '../../../src/controller/log.ts';
import { update } from '../../../src/daemon/agent/update.ts';
import { VirtualClock } from '../../../src/kube/clock.ts';
import { KubeError } from '../../../src/kube/error.ts';
import { recordingEvents } from '../../../src/kube/events.ts';
import { CURRENT_CONFIG, DESIRED_CONFIG } from '../../../src/machine-config-api/names.ts';
import assert from 'node:assert/strict';
import { applyConfig, revertConfig } from '../../../src/daemon/apply/apply-config.ts';
import { writeFiles } from '../../../src/daemon/apply/files.ts';
import { keepOriginal, noOriginalStampOf, originalOf } from '../../../src/daemon/apply/originals.ts';
import { decidePruning, prune } from '../../../src/daemon/apply/prune.ts';
import { UpdateError } from '../../../src/daemon/apply/steps.ts';
import { dropinPath, isDropinOf, unitPath, writeUnits } from '../../../src/daemon/apply/units.ts';
import { ensureCaFile } from '../../../src/daemon/certificates/ca-file.ts';
import type { Host, HostOs } from '../../../src/host/port.ts';
import { isOnceFromPath } from '../../../src/daemon/apply/once-from.ts';
import { type HostOperation, memoryHost, observed } from '../../../src/host/memory.ts';
import type { IgnitionConfig, IgnitionUnit } from '../../../src/machine-config-api/ignition/types.ts';
import type { MachineConfig } from '../../../src/machine-config-api/machine-config.ts';
import { snapshot } from '../../../src/daemon/apply/snapshot.test-support.ts';
import { type Adapter, type Json, onlyMembers } from './case.ts';

const octal = (mode: number | undefined) => `0${mode?.toString(8)}`;

export const fileAdapters: Record<string, Adapter> = {
  async 'write-files'(given, expected) {
    onlyMembers(given, ['files', 'skipCertificateWrite']);
    onlyMembers(expected, ['written', 'error', 'errorContains']);
    const host = memoryHost();
    await host.accounts.addUser('core', []);
    const before = await snapshot(host.files);
    const work = writeFiles(host, given.files, { skipCertificateWrite: given.skipCertificateWrite });
    if (expected.error === true) {
      await assert.rejects(work, (error: Error) => error.message.includes(expected.errorContains ?? ''));
      return;
    }
    await work;
    const after = Object.keys(await snapshot(host.files));
    const written = after.filter(path => before[path] === undefined && !path.startsWith('/etc/machine-config-daemon/'));
    assert.deepEqual(written, Object.keys(expected.written).sort());
    for (const [path, wanted] of Object.entries<Json>(expected.written)) {
      const stat = await host.files.stat(path);
      const content = (await host.files.read(path))?.toString();
      assert.deepEqual({ content, mode: octal(stat?.mode), uid: stat?.uid, gid: stat?.gid }, wanted);
    }
  },

  async 'orig-backup'(given, expected) {
    onlyMembers(given, ['path', 'exists', 'rpmAvailable', 'ownedByRpm', 'inUsrEtc', 'noorigStampExists', 'origExists']);
    onlyMembers(expected, ['created', 'deleted', 'removed']);
    const host = memoryHost({ packages: given.rpmAvailable ? { owns: async () => given.ownedByRpm } : undefined });
    const place = (path: string, isThere: boolean) => (isThere ? host.files.write(path, Buffer.from('x')) : undefined);
    await place(given.path, given.exists);
    await place(`/usr${given.path}`, given.inUsrEtc);
    await place(noOriginalStampOf(given.path), given.noorigStampExists);
    await place(originalOf(given.path), given.origExists);
    const before = Object.keys(await snapshot(host.files));
    await keepOriginal(host, given.path);
    const after = Object.keys(await snapshot(host.files));
    assert.deepEqual(after.filter(path => !before.includes(path)), expected.created === null ? [] : [expected.created]);
    const removed = expected.deleted ?? expected.removed;
    if (removed !== undefined) assert.deepEqual(before.filter(path => !after.includes(path)), [removed].flat());
  },

  async 'unit-write'(given, expected) {
    onlyMembers(given, ['unit', 'units', 'precondition']);
    onlyMembers(given.precondition ?? {}, ['isEnabled', 'existing', 'symlinks']);
    onlyMembers(expected, ['files', 'fileMode', 'symlinks', 'removed', 'commands', 'presetErrorIgnored', 'error']);
    const units: IgnitionUnit[] = given.units ?? [given.unit];
    const { isEnabled, existing = [], symlinks = {} } = given.precondition ?? {};
    const commands: string[] = [];
    const removed: string[] = [];
    const base = memoryHost();
    for (const path of existing) await base.files.write(path, Buffer.from('old'));
    for (const [path, target] of Object.entries<string>(symlinks)) await base.files.symlink(target, path);
    const answering: Host = {
      ...base,
      services: {
        ...base.services,
        isEnabled: async () => isEnabled ?? 'disabled',
        enable: async () => {},
        disable: async () => {},
        preset: async () => {
          if (expected.presetErrorIgnored === true) throw new Error('preset failed');
        },
      },
    };
    const host = observed(answering, operation => {
      commands.push(...commandOf(operation));
      if (operation.name === 'files.remove') removed.push(String(operation.args[0]));
    });
    const work = writeUnits(host, units, { isCoreOSVariant: true });
    if (expected.error === true) return assert.rejects(work);
    await work;
    const isQuery = (command: string) => command.startsWith('systemctl is-enabled');
    assert.deepEqual(commands.filter(command => !isQuery(command)), expected.commands.filter((command: string) => !isQuery(command)));
    assert.deepEqual(expected.commands.filter(isQuery).filter((command: string) => !commands.includes(command)), []);
    for (const [path, content] of Object.entries<string>(expected.files ?? {})) {
      assert.equal((await base.files.read(path))?.toString(), content);
      assert.equal(octal((await base.files.stat(path))?.mode), expected.fileMode ?? '0644');
    }
    if (expected.files !== undefined) {
      const files = Object.entries(await snapshot(base.files)).filter(([path, entry]) => !entry.startsWith('->') && !existing.includes(path));
      assert.deepEqual(files.map(([path]) => path), Object.keys(expected.files).sort());
    }
    for (const [path, target] of Object.entries<string>(expected.symlinks ?? {})) {
      assert.equal(await base.files.readLink(path), target);
    }
    if (expected.removed !== undefined) assert.deepEqual(removed, expected.removed);
  },

  async 'delete-stale'(given, expected) {
    onlyMembers(given, ['oldFiles', 'newFiles', 'oldUnits', 'newUnits', 'noorig', 'orig', 'missing', 'ownedByRpm', 'inUsrEtc']);
    onlyMembers(expected, ['removed', 'restored', 'commands', 'error', 'warning']);
    const { noorig = [], orig = [], missing = [], ownedByRpm = false, inUsrEtc = false } = given;
    const [before, after] = [configOf(given.oldFiles, given.oldUnits), configOf(given.newFiles, given.newUnits)];
    const base = memoryHost({ packages: { owns: async () => ownedByRpm } });
    const place = (path: string) => base.files.write(path, Buffer.from('x'));
    for (const path of pathsOf(before)) if (!missing.includes(path)) await place(path);
    for (const path of noorig) await place(noOriginalStampOf(path));
    for (const path of orig) await place(originalOf(path));
    if (inUsrEtc) for (const { path } of before.storage?.files ?? []) await place(`/usr${path}`);
    const [removed, restored, commands]: [string[], string[], string[]] = [[], [], []];
    let warnings = 0;
    const host = observed(base, operation => {
      commands.push(...commandOf(operation).filter(command => !command.includes('is-enabled')));
      if (operation.name === 'files.remove') removed.push(String(operation.args[0]));
      if (operation.name === 'files.copy') restored.push(String(operation.args[1]));
    });
    const log = { ...silent, warn: () => void warnings++ };
    const pruning = prune(host, await decidePruning(host, before, after), { isCoreOSVariant: true, log });
    if (expected.error === true) await assert.rejects(pruning);
    else await pruning;
    assert.deepEqual(removed, expected.removed);
    if (expected.restored !== undefined) assert.deepEqual(restored, expected.restored);
    if (expected.commands !== undefined) assert.deepEqual(commands, expected.commands);
    if (expected.warning !== undefined) assert.equal(warnings > 0, expected.warning);
  },

  'dropin-path'(given, expected) {
    onlyMembers(given, ['path', 'units']);
    onlyMembers(expected, ['coveredByDropin']);
    assert.equal(isDropinOf(given.path, unitsOf(given.units)), expected.coveredByDropin);
  },

  async 'update-rollback'(given, expected) {
    if (given.rollbackOf !== undefined) {
      assert.equal(expected.callArguments, '(old users, new users)');
      await undoneUsersAreTheOldOnes();
      return;
    }
    onlyMembers(given, ['steps', 'passwdChanged', 'coreOSVariant', 'failsAt']);
    onlyMembers(expected, ['rolledBackInOrder']);
    assert.deepEqual(await rolledBack(given), expected.rolledBackInOrder);
  },

  async 'write-to-disk'(given, expected) {
    onlyMembers(given, ['data', 'existingFileMode', 'existingData']);
    onlyMembers(expected, ['fileBytes', 'fileMode', 'chown', 'written']);
    const path = '/etc/kubernetes/kubelet-ca.crt';
    const base = memoryHost();
    const owner = { uid: 7, gid: 7 };
    if (given.existingFileMode !== null)
      await base.files.write(path, Buffer.from(given.existingData ?? 'old'), { mode: Number.parseInt(given.existingFileMode, 8), owner });
    let isOwnerGiven = false;
    const { files } = observed(base, ({ name, args }) => {
      if (name === 'files.write') isOwnerGiven = (args[2] as Json)?.owner !== undefined;
    });
    const written = await ensureCaFile(files, { path, part: 'kubelet-ca' }, Buffer.from(given.data), []);
    if (expected.fileBytes !== undefined) assert.equal((await base.files.read(path))?.toString(), expected.fileBytes);
    if (expected.fileMode !== undefined) assert.equal(octal((await base.files.stat(path))?.mode), expected.fileMode);
    if (expected.chown !== undefined) assert.equal(isOwnerGiven, expected.chown);
    if (expected.written !== undefined) assert.equal(written, expected.written);
  },

  'valid-path'(given, expected) {
    onlyMembers(given, ['path']);
    onlyMembers(expected, ['valid']);
    assert.equal(isOnceFromPath(given.path), expected.valid);
  },
};

/** What systemctl would have been called with. */
export function commandOf({ name, args }: HostOperation): string[] {
  const verb = /^services\.(isEnabled|enable|disable|preset)$/.exec(name)?.[1];
  if (verb === undefined) return [];
  return [['systemctl', verb === 'isEnabled' ? 'is-enabled' : verb, ...[args[0] as string | string[]].flat()].join(' ')];
}

function unitsOf(units: Json[] = []): IgnitionUnit[] {
  return units.map(({ dropins = [], ...unit }) => ({
    ...unit,
    dropins: dropins.map((dropin: Json) => (typeof dropin === 'string' ? { name: dropin, contents: '[Service]\n' } : dropin)),
  }));
}

function configOf(files: string[] = [], units: Json[] = []): IgnitionConfig {
  return {
    ignition: { version: '3.4.0' },
    storage: { files: files.map(path => ({ path, contents: { source: 'data:,x' } })) },
    systemd: { units: unitsOf(units) },
  };
}

function pathsOf({ storage, systemd }: IgnitionConfig): string[] {
  const units = (systemd?.units ?? []).flatMap(({ name, dropins = [] }) =>
    dropins.length > 0 ? dropins.map(dropin => dropinPath(name, dropin.name)) : [unitPath(name)],
  );
  return [...(storage?.files ?? []).map(({ path }) => path), ...units];
}

/** The operation in which a step is made to fail. */
const FAILING: Record<string, (operation: HostOperation) => boolean> = {
  files: ({ name, args }) => name === 'files.write' && args[0] === '/etc/b',
  'kubeconfig-mode': ({ name }) => name === 'files.chmod',
  ssh: ({ name, args }) => name === 'files.write' && String(args[0]).startsWith('/home/core/.ssh/'),
  password: ({ name, args }) => name === 'accounts.setPasswordHash' && args[1] === '$6$new',
  os: ({ name, args }) => name === 'os.changeKernelArguments' && (args[0] as string[]).includes('--append=new'),
  tuning: ({ name, args }) => name === 'os.changeKernelArguments' && (args[0] as string[]).includes('--append=nosmt'),
  'store-current': ({ name, args }) => name === 'files.write' && args[0] === '/etc/machine-config-daemon/currentconfig',
};

/** How the steps before anything is touched are made to fail. */
const FAILING_BEFORE: Record<string, (parts: Json, to: Json) => void> = {
  'set-working': parts => (parts.report.working = () => Promise.reject(new Error('no'))),
  // Ours ends no process between two steps: it is asked for first.
  'sigterm-guard': parts => (parts.report.working = () => Promise.reject(new Error('no'))),
  parse: (_parts, to) => (to.config.spec.config = { ignition: { version: '9.9.9' } }),
  reconcile: (_parts, to) => (to.config.spec.fips = true),
  actions: parts => (parts.kube.get = () => Promise.reject(new Error('no'))),
  'drain-decision': parts => (parts.kube.get = () => Promise.reject(new Error('no'))),
  drain: parts => (parts.writer.annotate = () => Promise.reject(new Error('no'))),
};

/** The whole update of the agent up to the step: nothing was written, so that there is nothing to take back. */
async function failsBefore(step: string): Promise<readonly string[]> {
  const host = memoryHost();
  const metadata = { name: 'n', annotations: { [DESIRED_CONFIG]: 'new', [CURRENT_CONFIG]: 'old' } };
  const parts: Json = {
    host,
    kube: { get: () => Promise.reject(new KubeError(404, 'NotFound', 'not there')) },
    node: { name: 'n', annotations: () => metadata.annotations, until: async () => true },
    writer: { annotate: async () => {} },
    report: { working: async () => {}, handOverDrift() {} },
    drift: { stop: async () => false },
    clock: new VirtualClock('2026-01-01T00:00:00Z'),
    log: silent,
    events: recordingEvents(),
    agentEvents: recordingEvents(),
    metrics: { pivot() {} },
    stop: new AbortController().signal,
  };
  const [from, to] = [machineConfig('old', '/etc/a', {}), machineConfig('new', '/etc/b', {})].map(config => ({ config, image: '' })) as [Json, Json];
  const before = await snapshot(host.files);
  const fail = FAILING_BEFORE[step];
  assert.ok(fail, `no way to let step ${step} fail`);
  fail(parts, to);
  const error = await update(parts, from, to).catch((thrown: unknown) => thrown);
  assert.ok(error instanceof Error && !(error instanceof UpdateError), String(error));
  assert.deepEqual(await snapshot(host.files), before);
  return [];
}

async function rolledBack(given: Json): Promise<readonly string[]> {
  if (given.steps.indexOf(given.failsAt) < given.steps.indexOf('files')) return failsBefore(given.failsAt);
  const base = memoryHost(given.coreOSVariant ? { os: fakeOs() } : {});
  await base.files.write('/etc/os-release', Buffer.from(given.coreOSVariant ? 'ID=rhcos\nRHEL_VERSION=9.2\n' : 'ID=debian\n'));
  await base.files.write('/etc/pivot/kernel-args', Buffer.from('ADD nosmt\n'));
  await base.files.write('/etc/kubernetes/kubeconfig', Buffer.from('x'), { mode: 0o644 });
  await base.accounts.addUser('core', []);
  const users = (word: string) => ({ users: [{ name: 'core', passwordHash: `$6$${word}`, sshAuthorizedKeys: [word] }] });
  const [from, to] = [machineConfig('old', '/etc/a', users('old')), machineConfig('new', '/etc/b', users(given.passwdChanged ? 'new' : 'old'))];
  if (given.failsAt === 'post-action') {
    await applyConfig(base, from, to);
    return (await revertConfig(base)).rolledBack;
  }
  const fails = FAILING[given.failsAt];
  assert.ok(fails, `no way to let step ${given.failsAt} fail`);
  const host = observed(base, operation => {
    if (fails(operation)) throw new Error(`${given.failsAt} fails`);
  });
  const error = await applyConfig(host, from, to).catch((thrown: unknown) => thrown);
  assert.ok(error instanceof UpdateError && error.step === given.failsAt, String(error));
  return error.rolledBack;
}

function machineConfig(name: string, path: string, passwd: object): MachineConfig {
  const kernelArguments = [name];
  const storage = { files: [{ path, contents: { source: 'data:,x' } }] };
  return { metadata: { name }, spec: { kernelArguments, config: { ignition: { version: '3.4.0' }, passwd, storage } } };
}

function fakeOs(): HostOs {
  return {
    tool: 'rpm-ostree',
    booted: async () => ({ image: '', commit: '', version: '', layeredPackages: [] }),
    rebase: async () => {},
    kernelArguments: async () => ['rw'],
    changeKernelArguments: async () => {},
    changePackages: async () => {},
    discardStaged: async () => {},
    removeRollback: async () => {},
  };
}

async function undoneUsersAreTheOldOnes(): Promise<void> {
  const host = memoryHost();
  await host.accounts.addUser('core', []);
  const config = (name: string): MachineConfig => ({
    metadata: { name },
    spec: { config: { ignition: { version: '3.4.0' }, passwd: { users: [{ name: 'core', passwordHash: `$6$${name}`, sshAuthorizedKeys: [name] }] } } },
  });
  await applyConfig(host, undefined, config('old'));
  for (let attempt = 1; attempt <= 2; attempt++) {
    await applyConfig(host, config('old'), config('new'));
    await revertConfig(host);
    assert.equal((await host.files.read('/home/core/.ssh/authorized_keys'))?.toString(), 'old\n');
    assert.match((await host.files.read('/etc/shadow'))?.toString() ?? '', /^core:\$6\$old:/m);
  }
}
