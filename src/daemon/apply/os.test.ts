/** Image, kernel arguments, kernel and extensions (spec 60, 8.7 to 8.9), against an operating system that stages what it is told. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { memoryHost } from '../../host/memory.ts';
import { operatingSystemOf } from '../../host/os-release.ts';
import { type BootedOs, HostError, type HostOs } from '../../host/port.ts';
import { VirtualClock } from '../../kube/clock.ts';
import type { MachineConfig, MachineConfigSpec } from '../../machine-config-api/machine-config.ts';
import { readConfig } from '../../machine-config-api/reconciliation.ts';
import { applyConfig, revertConfig } from './apply-config.ts';
import { applyTuning } from './kernel-arguments.ts';
import { osPartsLeftOut, osRefusal, updateOs } from './os.ts';
import { UpdateError } from './steps.ts';

const SYSTEM = operatingSystemOf('ID=rhcos\nRHEL_VERSION=9.2\n');

function fakeOs(booted: Partial<BootedOs> = {}, kernelArguments: string[] = ['rw']) {
  const commands: string[] = [];
  const failing = new Map<string, Error>();
  const say = async (verb: string, ...words: readonly string[]) => {
    commands.push([verb, ...words].join(' '));
    const error = failing.get(verb);
    if (error !== undefined) throw error;
  };
  const os: HostOs = {
    tool: 'rpm-ostree',
    booted: async () => ({ image: 'image:1', commit: 'c', version: 'v', layeredPackages: [], ...booted }),
    rebase: image => say('rebase', image),
    kernelArguments: async () => kernelArguments,
    changeKernelArguments: change => say('kargs', ...change),
    changePackages: change => say('packages', ...change),
    discardStaged: () => say('discard'),
    removeRollback: () => say('rollback'),
    async offerExtensions(image) {
      await say('offer', image);
      return () => say('withdraw');
    },
  };
  return { os, commands, failing };
}

const config = (name: string, spec: MachineConfigSpec): MachineConfig => ({ metadata: { name }, spec });

async function update(from: MachineConfigSpec, to: MachineConfigSpec, fake = fakeOs()) {
  const reasons: string[] = [];
  const options = {
    clock: new VirtualClock('2026-01-01T00:00:00Z'),
    system: SYSTEM,
    report: ({ reason }: { reason: string }) => void reasons.push(reason),
  };
  await updateOs(memoryHost({ os: fake.os }), readConfig(config('a', from)), readConfig(config('b', to)), options);
  return { commands: fake.commands, reasons };
}

describe('the operating system', () => {
  test('is not touched without need', async () => {
    assert.deepEqual(await update({ osImageURL: 'image:1' }, { osImageURL: 'image:1' }), { commands: [], reasons: [] });
  });

  test('is rebased, unless it is booted already', async () => {
    const { commands, reasons } = await update({ osImageURL: 'image:1' }, { osImageURL: 'image:2' });
    assert.deepEqual(commands, ['discard', 'rebase image:2']);
    assert.deepEqual(reasons, ['InClusterUpgrade', 'OSUpdateStarted', 'OSUpgradeApplied', 'OSUpdateStaged']);
    assert.deepEqual((await update({ osImageURL: 'image:0' }, { osImageURL: 'image:1' })).commands, ['discard']);
  });

  test('gets kernel arguments, unless it runs with them', async () => {
    const kernel = (kernelArguments: string[]) => ({ osImageURL: 'image:1', kernelArguments });
    assert.deepEqual((await update(kernel(['a']), kernel(['b="x y"']))).commands, [
      'discard',
      'kargs --delete=a --append=b="x y"',
    ]);
    const running = fakeOs({}, ['rw', 'b="x y"']);
    assert.deepEqual((await update(kernel(['a']), kernel(['b="x y"']), running)).commands, ['discard']);
  });

  test('gets another kernel, and its own one back', async () => {
    const { commands } = await update({ osImageURL: 'image:1' }, { osImageURL: 'image:1', kernelType: 'realtime' });
    assert.match(
      commands[1] ?? '',
      /^packages override remove kernel kernel-core .*--install kernel-rt-core .*--install kernel-rt-kvm$/,
    );
    const realtime = fakeOs({
      removedPackages: ['kernel', 'kernel-core'],
      layeredPackages: ['kernel-rt-core', 'htop'],
    });
    const back = await update({ osImageURL: 'image:1', kernelType: 'realtime' }, { osImageURL: 'image:1' }, realtime);
    assert.deepEqual(back.commands, [
      'discard',
      'packages override reset kernel kernel-core --uninstall kernel-rt-core',
    ]);
  });

  test('gets extensions from their image, which is offered only meanwhile', async () => {
    const before = { osImageURL: 'image:1', extensions: ['usbguard'] };
    const after = { osImageURL: 'image:1', extensions: ['kerberos'], baseOSExtensionsContainerImage: 'extensions:1' };
    const fake = fakeOs({ layeredPackages: ['usbguard', 'libkadm5'] });
    const { commands } = await update(before, after, fake);
    assert.deepEqual(commands, [
      'offer extensions:1',
      'discard',
      'packages update --install krb5-workstation --uninstall usbguard',
      'withdraw',
    ]);
    await assert.rejects(update({}, { extensions: ['nonsense'] }), /invalid extensions found: \[nonsense\]/);
  });

  test('throws away what it staged when a part fails', async () => {
    const fake = fakeOs();
    fake.failing.set('kargs', new Error('kargs failed'));
    await assert.rejects(
      update({ osImageURL: 'image:1' }, { osImageURL: 'image:2', kernelArguments: ['a'] }, fake),
      /kargs failed/,
    );
    assert.equal(fake.commands.at(-1), 'discard');
  });

  test('is tried to be rebased five times and its extensions six times, and once where it never can be (spec 60, 8.8)', async () => {
    for (const [verb, error, tries] of [
      ['rebase', new Error('network'), 5],
      ['rebase', new HostError('unsupported', 'old'), 1],
      ['offer', new Error('network'), 6],
    ] as const) {
      const fake = fakeOs();
      fake.failing.set(verb, error);
      const clock = new VirtualClock('2026-01-01T00:00:00Z');
      const [before, after] = [
        readConfig(config('a', { osImageURL: 'image:1' })),
        readConfig(config('b', { osImageURL: 'image:2', baseOSExtensionsContainerImage: 'extensions:2' })),
      ];
      const work = assert.rejects(
        updateOs(memoryHost({ os: fake.os }), before, after, { clock, system: SYSTEM }),
        error,
      );
      let isOver = false;
      void work.then(() => (isOver = true));
      while (!isOver) await clock.advance(60_000);
      await work;
      assert.equal(fake.commands.filter(command => command.startsWith(verb)).length, tries);
    }
  });
});

test('an update that fails after the operating system was staged throws the staging away', async () => {
  const fake = fakeOs({}, ['rw', 'a']);
  fake.failing.set('packages', new Error('no such package'));
  const host = memoryHost({ os: fake.os });
  await host.files.write('/etc/os-release', Buffer.from('ID=rhcos\nRHEL_VERSION=9.2\n'));
  const [from, to] = [
    config('a', { kernelArguments: ['a'] }),
    config('b', { kernelArguments: ['b'], extensions: ['ipsec'] }),
  ];
  await assert.rejects(applyConfig(host, from, to), (error: UpdateError) => error.step === 'os');
  assert.deepEqual(fake.commands.slice(-2), ['discard', 'discard']);
  fake.failing.clear();
  await applyConfig(host, from, to);
  fake.commands.length = 0;
  assert.deepEqual((await revertConfig(host)).rolledBack, ['store-current', 'os', 'password', 'files']);
  assert.deepEqual(fake.commands, ['discard']);
});

describe('refusals', () => {
  const refusal = (os: HostOs | undefined, from: MachineConfigSpec, to: MachineConfigSpec) =>
    osRefusal({ os }, readConfig(config('a', from)), readConfig(config('b', to)));
  const bootc: HostOs = { ...fakeOs().os, tool: 'bootc' };

  test('a machine that is no image keeps its operating system, and takes the rest', () => {
    const leftOut = (from: MachineConfigSpec, to: MachineConfigSpec) =>
      osPartsLeftOut({ os: undefined }, readConfig(config('a', from)), readConfig(config('b', to)));
    const [from, to] = [{ osImageURL: 'a' }, { osImageURL: 'b', extensions: ['ipsec'], kernelType: 'realtime' }];
    assert.equal(refusal(undefined, from, to), undefined);
    assert.deepEqual(leftOut(from, to), ['the OS image', 'the kernel type', 'extensions']);
    assert.deepEqual(leftOut(from, from), []);
  });

  test('bootc takes images only', () => {
    assert.equal(refusal(bootc, { osImageURL: 'a' }, { osImageURL: 'b' }), undefined);
    assert.match(refusal(bootc, {}, { kernelArguments: ['a'] }) ?? '', /kernel arguments.*part of an image/);
  });
});

test('the tuning file is carried out one change at a time, on CoreOS only', async () => {
  const fake = fakeOs();
  const host = memoryHost({ os: fake.os });
  await host.files.write('/etc/pivot/kernel-args', Buffer.from('ADD nosmt\nADD other\n'));
  await host.files.write('/proc/cmdline', Buffer.from('rw quiet\n'));
  await applyTuning(host, operatingSystemOf('ID=debian\n'));
  assert.deepEqual(fake.commands, []);
  await applyTuning(host, SYSTEM);
  assert.deepEqual(fake.commands, ['kargs --append=nosmt']);
});
