import { knownWord, notCompared } from '../run-case.ts';
import assert from 'node:assert/strict';
import { silentLog } from '../../../src/controller/log.ts';
import { VirtualClock } from '../../../src/kube/clock.ts';
import { contentsOf } from '../../../src/machine-config-api/ignition/contents.ts';
import { base64DataUrl } from '../../../src/machine-config-api/ignition/data-url.ts';
import { emptyIgnition, type IgnitionConfig } from '../../../src/machine-config-api/ignition/types.ts';
import { decideDisruption } from '../../../src/machine-config-api/disruption.ts';
import { CURRENT_CONFIG, DAEMON_STATE, DESIRED_CONFIG } from '../../../src/machine-config-api/names.ts';
import { DriftMonitor } from '../../../src/daemon/agent/drift-monitor.ts';
import { planActions } from '../../../src/daemon/decide/action-plan.ts';
import { directoriesOf, driftPaths, dropinPath, unitPath } from '../../../src/daemon/decide/disk-paths.ts';
import { validateDisk } from '../../../src/daemon/decide/disk-validation.ts';
import { stateOfError } from '../../../src/daemon/decide/reconcile.ts';
import { unexpectedDisk } from '../../../src/daemon/decide/start-up.ts';
import { decideUpdate } from '../../../src/daemon/decide/update-needed.ts';
import type { Host, UnitEnablement } from '../../../src/host/port.ts';
import { memoryHost } from '../../../src/host/memory.ts';
import { type Adapter, type Json, onlyMembers } from './case.ts';

/** The disk: whether it is what the config says, and what becomes of a node whose disk is not. */
export const diskAdapters: Record<string, Adapter> = {
  async 'on-disk-validation'(given, expected) {
    onlyMembers(given, ['files', 'units', 'disk', 'systemctlIsEnabled']);
    const host = memoryHost();
    for (const [path, entry] of Object.entries<Json>(given.disk)) await place(host, path, entry);
    const { systemctlIsEnabled: enablement } = given;
    const isEnabled = async (): Promise<UnitEnablement> => enablement;
    const services = enablement === undefined ? host.services : { isEnabled };
    const found = await validateDisk(configOf(given), { files: host.files, services });
    // 4.16 does not look at whether units are enabled; seed 003 promises it, and 4.18 keeps the promise again.
    const isEnablementWrong = (given.units ?? []).some(({ enabled }: Json) => enabled !== undefined && enablement === (enabled ? 'disabled' : 'enabled'));
    const wanted = expected.ok && isEnablementWrong ? { ok: false, errorType: 'unit' } : expected;
    assert.equal(found === undefined, wanted.ok, found?.message);
    if (wanted.errorType !== undefined) assert.equal(found?.kind, wanted.errorType);
    if (wanted.errorContains !== undefined) assert.ok(found?.message.includes(wanted.errorContains), found?.message);
  },

  async 'config-drift'(given, expected) {
    onlyMembers(given, ['config', 'target', 'mutation', 'how']);
    const config = configOf(given.config);
    const host = await hostWith(config);
    knownWord(given.how, undefined, ...(HOW[given.mutation] ?? []));
    await mutate(host, given.target, given.mutation);
    const isNoticed = driftPaths(config).includes(given.target);
    const found = isNoticed ? await validateDisk(config, host) : undefined;
    assert.equal(found !== undefined, expected.drift, found?.message);
    assert.equal(found?.kind ?? null, expected.errorType);
  },

  async 'config-drift-watch'(given, expected) {
    onlyMembers(given, ['config', 'missingOption']);
    if (given.missingOption !== undefined) {
      assert.ok(Object.hasOwn(REFUSED_BY_THE_COMPILER, given.missingOption), `unknown option ${given.missingOption}`);
      notCompared(expected, 'error', 'errorContains');
      return;
    }
    onlyMembers(expected, ['watchedDirs']);
    assert.deepEqual(new Set(directoriesOf(driftPaths(configOf(given.config)))), new Set(expected.watchedDirs));
  },

  'config-drift-recovery': recovery,
};

const CLOCK = new VirtualClock('2026-01-01T00:00:00Z');

/** 4.16 looks for these when the monitor starts. Here no program without them can be built: each line fails to compile otherwise. */
const REFUSED_BY_THE_COMPILER = {
  // @ts-expect-error -- nobody would hear of drift
  OnDrift: () => new DriftMonitor({ files: memoryHost().files, clock: CLOCK, log: silentLog }),
  // @ts-expect-error -- errors would go nowhere
  ErrChan: () => new DriftMonitor({ files: memoryHost().files, clock: CLOCK, onChange() {} }),
  // @ts-expect-error -- there would be nothing to compare with
  MachineConfig: (monitor: DriftMonitor) => monitor.start({ paths: [], validate: async () => undefined }),
};

function configOf({ files = [], units = [] }: Json): IgnitionConfig {
  return { ...emptyIgnition(), storage: { files }, systemd: { units } };
}

async function place({ files }: Host, path: string, { type, content = '', mode = '0644', target, ...others }: Json): Promise<void> {
  onlyMembers(others, []);
  const bits = Number.parseInt(mode, 8);
  switch (type) {
    case 'file':
      return files.write(path, Buffer.from(content), { mode: bits });
    case 'directory':
      return files.makeDirectory(path, bits);
    case 'symlink':
      if (target === undefined) await files.write(`${path}.target`, Buffer.from(content), { mode: bits });
      return files.symlink(target ?? `${path}.target`, path);
    default:
      assert.fail(`unknown type ${type}`);
  }
}

/** A host that is what the config says. */
async function hostWith(config: IgnitionConfig): Promise<Host> {
  const host = memoryHost();
  for (const { path, contents, mode = 0o644 } of config.storage?.files ?? []) await host.files.write(path, contentsOf(contents), { mode });
  for (const { name, contents = '', mask, dropins = [] } of config.systemd?.units ?? []) {
    if (mask === true) await host.files.symlink('/dev/null', unitPath(name));
    else if (contents !== '') await host.files.write(unitPath(name), Buffer.from(contents), { mode: 0o644 });
    for (const dropin of dropins) {
      if (dropin.contents) await host.files.write(dropinPath(name, dropin.name), Buffer.from(dropin.contents), { mode: 0o644 });
    }
  }
  assert.equal((await validateDisk(config, host))?.message, undefined);
  return host;
}

/** The same in other words. */
const HOW: Record<string, readonly string[]> = {
  content: ['write "notthecontents"', 'write'],
  rename: ['rename to <path>.old'],
  overwrite: ['write temp file and rename over'],
  chmod: ['chmod 0755', 'chmod', 'chmod 755'],
  mode: ['chmod 0755', 'chmod', 'chmod 755'],
  delete: ['delete', 'remove'],
  remove: ['delete', 'remove'],
  touch: ['touch'],
};

async function mutate({ files }: Host, path: string, mutation: string): Promise<void> {
  switch (mutation) {
    case 'content':
      return files.write(path, Buffer.from('notthecontents'), { mode: 0o644 });
    case 'overwrite':
      await files.write(`${path}.new`, Buffer.from('notthecontents'), { mode: 0o644 });
      return files.rename(`${path}.new`, path);
    case 'rename':
      return files.rename(path, `${path}.old`);
    case 'delete':
    case 'remove':
      return files.remove(path);
    case 'chmod':
    case 'mode':
      return files.chmod(path, 0o755);
    // Times are not looked at.
    case 'touch':
    case 'none':
      return;
    default:
      assert.fail(`unknown mutation ${mutation}`);
  }
}

const FILE = '/etc/etc-file';
const SECOND_FILE = '/etc/other-file';
const UNIT = 'e2etest.service';

/** What the node worker does after drift: Degraded, then again and again an update onto itself behind the preflight check. */
async function recovery(given: Json, expected: Json): Promise<void> {
  onlyMembers(given, ['mutate', 'recover', 'steps']);
  onlyMembers(expected, ['stateAfterMutate', 'reasonContains', 'stateAfterRecover', 'reboot']);
  const source = (text: string) => ({ source: base64DataUrl(text) });
  const config = configOf({
    files: [
      { path: FILE, contents: source('the data'), mode: 0o644 },
      { path: SECOND_FILE, contents: source('other data'), mode: 0o644 },
      { path: '/etc/compressed-file', contents: source('more data'), mode: 0o644 },
    ],
    units: [{ name: UNIT, contents: 'unit', dropins: [{ name: '10-e2etest-service.conf', contents: 'drop-in' }] }],
  });
  const host = await hostWith(config);
  const target = { config: 'rendered', image: '' };
  const check = async () => {
    const drift = await validateDisk(config, host);
    return drift && unexpectedDisk(target, drift.message);
  };

  if (given.steps !== undefined) {
    for (const step of given.steps as string[]) {
      const path = /second/.test(step) ? SECOND_FILE : /first/.test(step) ? FILE : assert.fail(`unknown step ${step}`);
      await mutate(host, path, 'content');
      assert.ok((await check()) !== undefined);
    }
    const reason = await check();
    assert.ok(reason?.includes(expected.reasonContains), reason);
    return;
  }

  const [path = ''] = /^\S+/.exec(given.mutate) ?? [];
  assert.ok(driftPaths(config).includes(path), `unknown path ${path}; known are ${driftPaths(config).join(', ')}`);
  const isModeOnly = /mode|chmod|permission/i.test(given.mutate.slice(path.length));
  const original = await host.files.read(path);
  await mutate(host, path, isModeOnly ? 'chmod' : 'content');
  const reason = await check();
  assert.ok(reason !== undefined);
  assert.equal(stateOfError(new Error(reason)), expected.stateAfterMutate);
  assert.ok(reason.includes(expected.reasonContains ?? ''), reason);

  const hasForceFile = given.recover.includes('/run/machine-config-daemon-force');
  if (!hasForceFile) {
    assert.match(given.recover, /restore|revert/);
    await host.files.write(path, original ?? Buffer.alloc(0), { mode: 0o644 });
  }
  const annotations = { [CURRENT_CONFIG]: target.config, [DESIRED_CONFIG]: target.config, [DAEMON_STATE]: 'Degraded' };
  assert.equal(decideUpdate(annotations, target, () => true).kind, 'update');
  const preflight = hasForceFile ? undefined : await check();
  const read = { name: target.config, spec: {}, ignition: config };
  const plan = planActions(decideDisruption(read, read, { hasForceFile }).actions, target.config);
  assert.equal(plan.ending === 'reboot', expected.reboot);
  assert.equal(preflight === undefined ? 'Done' : 'Degraded', expected.stateAfterRecover);
}
