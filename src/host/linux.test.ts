/** The programs a Linux machine is worked through: which are called with what, and what is made of their answers. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { unsupportedPackages } from '../daemon/apply/extensions.ts';
import type { CommandResult, RunCommand } from './command.ts';
import { runCommand } from './command.ts';
import { linuxHost } from './linux.ts';
import { memoryFiles } from './memory-disk.ts';
import { operatingSystemOf } from './os-release.ts';

const OK = { code: 0, stdout: '', stderr: '' };

/** A machine with these files that answers commands by how they begin. */
async function machine(paths: readonly string[], answers: Record<string, Partial<CommandResult>>) {
  const files = memoryFiles();
  for (const path of paths) await files.write(path, Buffer.from(''));
  const commands: { argv: readonly string[]; input: string | undefined }[] = [];
  const run: RunCommand = async (argv, options) => {
    commands.push({ argv, input: options?.input });
    const found = Object.keys(answers).find(start => argv.join(' ').startsWith(start));
    return { ...OK, ...(found === undefined ? {} : answers[found]) };
  };
  return { host: await linuxHost({ files, run }), commands, files };
}

describe('which operating system', () => {
  for (const [paths, tool] of [
    [[], undefined],
    [['/usr/bin/rpm-ostree'], undefined],
    [['/run/ostree-booted', '/usr/bin/rpm-ostree', '/usr/bin/bootc'], 'rpm-ostree'],
    [['/run/ostree-booted', '/usr/bin/bootc'], 'bootc'],
  ] as const) {
    test(`${paths.join(', ') || 'nothing'}: ${tool}`, async () => {
      assert.equal((await machine(paths, {})).host.os?.tool, tool);
    });
  }

  test('os-release of other systems', () => {
    const debian = operatingSystemOf('ID=debian\nVERSION_ID="12"\n');
    assert.deepEqual([debian.isCoreOSVariant, debian.prometheusLabel], [false, 'DEBIAN']);
    assert.equal(operatingSystemOf('').prometheusLabel, 'unsupported');
    const derived = operatingSystemOf('ID=mine\nVARIANT_ID=coreos\n');
    assert.deepEqual([derived.isCoreOSVariant, derived.isFCOS], [true, false]);
  });
});

describe('rpm-ostree', () => {
  const paths = ['/run/ostree-booted', '/usr/bin/rpm-ostree'];

  test('tells what is booted', async () => {
    const deployments = [
      { booted: false, version: 'staged' },
      {
        booted: true,
        version: '416',
        'base-checksum': 'abc',
        'container-image-reference': 'ostree-unverified-registry:quay.io/os@sha256:1',
        'requested-packages': ['usbguard', 'kernel-rt-core'],
        'requested-local-packages': ['a.rpm'],
        'requested-local-fileoverride-packages': ['b.rpm'],
        'requested-base-removals': ['kernel'],
      },
    ];
    const { host } = await machine(paths, { 'rpm-ostree status': { stdout: JSON.stringify({ deployments }) } });
    const booted = await host.os?.booted();
    assert.deepEqual(
      [booted?.image, booted?.commit, booted?.layeredPackages],
      ['quay.io/os@sha256:1', 'abc', ['usbguard', 'kernel-rt-core']],
    );
    // All but the package of an extension (spec 60, 13.1).
    assert.equal(booted && unsupportedPackages(booted), 4);
  });

  test('rebases only where it can deploy containers', async () => {
    const { host } = await machine(paths, {
      'rpm-ostree --version': { stdout: "rpm-ostree:\n Version: '2021.1'\n Features:\n  - rust\n" },
    });
    await assert.rejects(async () => host.os?.rebase('image'), { code: 'unsupported' });
    const newer = await machine(paths, {
      'rpm-ostree --version': { stdout: "rpm-ostree:\n Version: '2023.1'\n Features:\n  - container\n" },
    });
    await newer.host.os?.rebase('quay.io/os:2');
    assert.deepEqual(newer.commands.at(-1)?.argv, [
      'rpm-ostree',
      'rebase',
      '--experimental',
      'ostree-unverified-registry:quay.io/os:2',
    ]);
  });

  test('takes kernel arguments away that may be gone', async () => {
    const { host, commands } = await machine(paths, { 'rpm-ostree kargs': { stdout: 'rw a="b c"\n' } });
    assert.deepEqual(await host.os?.kernelArguments(), ['rw', 'a="b c"']);
    await host.os?.changeKernelArguments(['--delete=a', '--append=b']);
    assert.deepEqual(commands.at(-1)?.argv, ['rpm-ostree', 'kargs', '--delete-if-present=a', '--append=b']);
  });

  test('tells what the last boot could not finalize, and flushes each object', async () => {
    const journal = 'journalctl -b -1 -o cat _UID=0 -u ostree-finalize-staged.service';
    const { host, commands } = await machine(paths, {
      [journal]: { stdout: 'Finalizing\nerror: no space\nerror: more\n' },
    });
    assert.equal(await host.os?.finalizeFailure?.(), 'error: no space');
    await host.os?.flushEachObject?.();
    assert.equal(
      commands.at(-1)?.argv.join(' '),
      'ostree --repo=/sysroot/ostree/repo config set core.per-object-fsync true',
    );
    assert.equal(await (await machine(paths, {})).host.os?.finalizeFailure?.(), '');
    const first = await machine(paths, { journalctl: { code: 1 } });
    await assert.rejects(async () => first.host.os?.finalizeFailure?.());
  });

  test('says what people ask first about a machine (spec 60, 1.6.1)', async () => {
    const { host, files } = await machine(paths, {
      'rpm-ostree status': { stdout: 'State: idle\n' },
      'journalctl --list-boots': { stdout: '0 abc\n' },
      systemctl: { code: 1 },
    });
    await files.write('/etc/.ignition-result.json', Buffer.from('{}\n'));
    assert.deepEqual(
      [...((await host.describe?.()) ?? [])],
      [
        ['rpm-ostree status', 'State: idle'],
        ['journalctl --list-boots', '0 abc'],
        ['/etc/.ignition-result.json', '{}'],
      ],
    );
  });

  test('offers extensions as a repository and withdraws them', async () => {
    const { host, files, commands } = await machine(paths, {});
    const withdraw = await host.os?.offerExtensions?.('extensions:1');
    assert.match(
      (await files.read('/etc/yum.repos.d/coreos-extensions.repo'))?.toString() ?? '',
      /baseurl=\/run\/mco-extensions\/.*extensions\/\n/,
    );
    assert.ok(commands.some(({ argv }) => argv.includes('pull') && argv.includes('/var/lib/kubelet/config.json')));
    await withdraw?.();
    assert.equal(await files.stat('/etc/yum.repos.d/coreos-extensions.repo'), undefined);
    assert.equal(await files.stat('/run/mco-extensions'), undefined);
  });
});

test('bootc switches images and discards what is staged', async () => {
  const status = {
    status: { booted: { image: { image: { image: 'os:1' }, version: '1' }, ostree: { checksum: 'c' } }, staged: {} },
  };
  const { host, commands } = await machine(['/run/ostree-booted', '/usr/bin/bootc'], {
    'bootc status': { stdout: JSON.stringify(status) },
  });
  assert.equal((await host.os?.booted())?.image, 'os:1');
  await host.os?.rebase('os:2');
  assert.deepEqual(commands.at(-1)?.argv, ['bootc', 'switch', '--transport', 'registry', '--', 'os:2']);
  await host.os?.discardStaged();
  assert.deepEqual(commands.at(-1)?.argv, ['ostree', 'admin', 'undeploy', '0']);
  await assert.rejects(async () => host.os?.changeKernelArguments(['--append=a']), { code: 'unsupported' });
});

describe('systemctl', () => {
  for (const [stdout, stderr, enablement] of [
    ['enabled\n', '', 'enabled'],
    ['disabled\n', '', 'disabled'],
    ['masked\n', '', 'masked'],
    ['static\n', '', 'static'],
    ['alias\n', '', 'other'],
    ['not-found\n', '', 'not-found'],
    ['', 'Failed to get unit file state for x.service: No such file or directory', 'not-found'],
  ] as const) {
    test(`is-enabled: ${JSON.stringify(stdout)} is ${enablement}`, async () => {
      const { host } = await machine([], { 'systemctl is-enabled': { code: 1, stdout, stderr } });
      assert.equal(await host.services.isEnabled('x.service'), enablement);
    });
  }

  test('a name is never taken for an option, and failure says why in few words', async () => {
    const { host, commands } = await machine([], { 'systemctl restart': { code: 5, stderr: 'x'.repeat(1000) } });
    await host.services.enable(['--now', 'a.service']);
    assert.deepEqual(commands[0]?.argv, ['systemctl', 'enable', '--', '--now', 'a.service']);
    await assert.rejects(host.services.restart('a.service'), {
      code: 'command',
      message: /ended with 5: x{256} \[744 more chars\]$/,
    });
  });
});

describe('accounts', () => {
  test('a password hash is given on standard input, where no list of processes shows it', async () => {
    const { host, commands } = await machine([], {
      'getent -- passwd core': { stdout: 'core:x:1000:1000::/home/core:/bin/bash\n' },
    });
    assert.equal(await host.accounts.uid('core'), 1000);
    await host.accounts.setPasswordHash('core', '$6$x');
    assert.deepEqual(commands.at(-1), { argv: ['chpasswd', '-e'], input: 'core:$6$x\n' });
    await assert.rejects(host.accounts.setPasswordHash('core', 'x\nroot:y'), /not well-formed/);
  });
});

test('sessions are those of now and those of the journal that were too short to be seen; only people log in', async () => {
  const entry = (id: string, more: object = {}) => JSON.stringify({ SESSION_ID: id, USER_ID: 'core', ...more });
  const { host } = await machine([], {
    'loginctl list-sessions': { stdout: ' 3 1000 core seat0 tty1\nc1 0 root\n' },
    'loginctl show-session 3': { stdout: 'Name=core\nRemote=yes\nTimestamp=Sun 2026-11-15 12:00:00 UTC\nClass=user\n' },
    'loginctl show-session c1': { stdout: 'Name=root\nRemote=no\nTimestamp=\nClass=manager\n' },
    journalctl: {
      stdout: [
        entry('2', { __REALTIME_TIMESTAMP: '1763200000000000' }),
        entry('3'),
        entry('c1'),
        entry('4', { CLASS: 'user-early' }),
        entry('5', { CLASS: 'manager' }),
      ].join('\n'),
    },
  });
  const sessions = await host.sessions.list();
  assert.deepEqual(
    sessions.map(({ id, user, isRemote }) => [id, user, isRemote]),
    [
      ['3', 'core', true],
      ['2', 'core', true],
      ['4', 'core', true],
    ],
  );
});

describe('packages', () => {
  test('rpm says who owns a file, and its errors are errors', async () => {
    const paths = ['/usr/bin/rpm'];
    assert.equal(await (await machine(paths, {})).host.packages?.owns('/etc/a'), true);
    const free = await machine(paths, { 'rpm -qf': { code: 1, stdout: 'file /etc/a is not owned by any package\n' } });
    assert.equal(await free.host.packages?.owns('/etc/a'), false);
    const broken = await machine(paths, { 'rpm -qf': { code: 1, stderr: 'database is locked' } });
    await assert.rejects(async () => broken.host.packages?.owns('/etc/a'), { code: 'command' });
  });

  test('dpkg does so where there is no rpm', async () => {
    const { host } = await machine(['/usr/bin/dpkg-query'], { 'dpkg-query': { code: 1 } });
    assert.equal(await host.packages?.owns('/etc/a'), false);
    assert.equal((await machine([], {})).host.packages, undefined);
  });
});

test('a reboot clears what an earlier one left, and says when it is refused', async () => {
  const { host, commands } = await machine([], { 'systemd-run': { code: 1, stderr: 'no' } });
  await assert.rejects(host.reboot('two\nlines'), { message: 'reboot command failed, something is seriously wrong' });
  assert.deepEqual(commands[0]?.argv, ['systemctl', 'reset-failed', 'machine-config-daemon-reboot.service']);
  assert.equal(commands[1]?.argv[4], 'machine-config-daemon: two lines');
});

describe('a program', () => {
  test('that does not end in time is ended', async () => {
    await assert.rejects(runCommand(['sleep', '60'], { timeoutMs: 20 }), {
      code: 'command',
      message: /did not end within 20 ms/,
    });
  });

  test('that prints without end is ended', async () => {
    await assert.rejects(runCommand(['yes']), { code: 'command', message: /printed more than/ });
  });

  test('that reads nothing does no harm', async () => {
    assert.equal((await runCommand(['true'], { input: 'x'.repeat(1_000_000) })).code, 0);
  });
});
