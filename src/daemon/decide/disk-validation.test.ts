import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { memoryHost } from '../../host/memory.ts';
import type { Host, HostFiles, UnitEnablement } from '../../host/port.ts';
import { base64DataUrl } from '../../machine-config-api/ignition/data-url.ts';
import { emptyIgnition, type IgnitionConfig, type IgnitionUnit } from '../../machine-config-api/ignition/types.ts';
import { directoriesOf, driftPaths } from './disk-paths.ts';
import { validateDisk } from './disk-validation.ts';
import { modeText } from './mode-text.ts';

const KEYS = '/home/core/.ssh/authorized_keys.d/ignition';
const UNIT = '/etc/systemd/system/a.service';
const DROPIN = '/etc/systemd/system/a.service.d/1.conf';
const TEXT = Buffer.from('text');

const withFile = (more: object = {}): IgnitionConfig => ({
  ...emptyIgnition(),
  storage: { files: [{ path: '/etc/a', contents: { source: base64DataUrl(TEXT) }, ...more }] },
});
const withUnit = (unit: Partial<IgnitionUnit>): IgnitionConfig => ({
  ...emptyIgnition(),
  systemd: { units: [{ name: 'a.service', ...unit }] },
});
const withKeys = (...sshAuthorizedKeys: string[]): IgnitionConfig => ({
  ...emptyIgnition(),
  passwd: { users: [{ name: 'core', sshAuthorizedKeys }] },
});
type Prepare = (files: HostFiles) => Promise<unknown>;
const file =
  (path: string, content: string | Buffer = TEXT, mode = 0o644): Prepare =>
  files =>
    files.write(path, Buffer.from(content), { mode });
const nothing: Prepare = async () => {};

describe('files and units on disk (spec 60, 11.1)', () => {
  const table: [what: string, config: IgnitionConfig, disk: Prepare, drift: RegExp | undefined][] = [
    ['as it should be', withFile(), file('/etc/a'), undefined],
    [
      'compressed in the config',
      withFile({ contents: { source: `data:;base64,${gzipSync(TEXT).toString('base64')}`, compression: 'gzip' } }),
      file('/etc/a'),
      undefined,
    ],
    ['missing', withFile(), nothing, /could not stat file "\/etc\/a"/],
    ['other content of that length', withFile(), file('/etc/a', 'texT'), /content mismatch for file "\/etc\/a"/],
    ['longer', withFile(), file('/etc/a', 'text and more'), /content mismatch/],
    [
      'another mode',
      withFile(),
      file('/etc/a', TEXT, 0o600),
      /mode mismatch for file: "\/etc\/a"; expected: -rw-r--r--\/420\/0644; received: -rw-------\/384\/0600/,
    ],
    ['a mode of the config', withFile({ mode: 0o600 }), file('/etc/a', TEXT, 0o600), undefined],
    [
      'a link to that content',
      withFile(),
      async files => {
        await file('/etc/b')(files);
        await files.symlink('/etc/b', '/etc/a');
      },
      /mode mismatch.*received: L/,
    ],
    ['a directory', withFile(), files => files.makeDirectory('/etc/a'), /mode mismatch.*received: d/],
    ['an empty file of an empty source', withFile({ contents: { source: '' } }), file('/etc/a', ''), undefined],
    ['what appends', withFile({ append: [{ source: 'data:,x' }] }), file('/etc/a'), /Append is not supported/],
    [
      'a source that cannot be decoded',
      withFile({ contents: { source: 'https://x' } }),
      file('/etc/a'),
      /expected a data URL/,
    ],
    ['a file of the certificate writer', withFile({ path: '/etc/kubernetes/kubelet-ca.crt' }), nothing, undefined],
    [
      'the CAs of the cloud',
      withFile({ path: '/etc/kubernetes/static-pod-resources/configmaps/cloud-config/ca-bundle.pem' }),
      nothing,
      undefined,
    ],
    [
      'credentials of the registry',
      withFile({ path: '/etc/mco/internal-registry-pull-secret.json' }),
      nothing,
      undefined,
    ],

    ['a unit', withUnit({ contents: 'text' }), file(UNIT), undefined],
    ['a unit with other content', withUnit({ contents: 'text' }), file(UNIT, 'other'), /content mismatch/],
    ['a unit with another mode', withUnit({ contents: 'text' }), file(UNIT, TEXT, 0o600), /mode mismatch/],
    ['a unit that is missing', withUnit({ contents: 'text' }), nothing, /could not stat/],
    ['a unit of the OS', withUnit({}), nothing, undefined],
    ['a masked unit', withUnit({ contents: 'text', mask: true }), files => files.symlink('/dev/null', UNIT), undefined],
    ['a masked unit that is not', withUnit({ contents: 'text', mask: true }), file(UNIT), /masked setting/],
    [
      'a masked unit that leads elsewhere',
      withUnit({ contents: 'text', mask: true }),
      files => files.symlink('/etc/other', UNIT),
      /masked setting.*\/etc\/other/,
    ],
    ['a masked unit that nobody knows', withUnit({ mask: true }), nothing, undefined],
    [
      'a masked unit of the OS that is not, and has no contents of its own',
      withUnit({ mask: true }),
      file('/usr/lib/systemd/system/a.service', '[Service]\n'),
      undefined,
    ],
    ['a masked unit without contents that is a file', withUnit({ mask: true }), file(UNIT), undefined],
    [
      'a masked unit by way of other links',
      withUnit({ mask: true, contents: 'text' }),
      async files => {
        await files.symlink('../../../dev/null', '/etc/systemd/system/other.service');
        await files.symlink('other.service', UNIT);
      },
      undefined,
    ],
    [
      'a masked unit that leads in a circle',
      withUnit({ mask: true, contents: 'text' }),
      async files => {
        await files.symlink('a.service', '/etc/systemd/system/other.service');
        await files.symlink('other.service', UNIT);
      },
      /masked setting/,
    ],
    ['a drop-in', withUnit({ dropins: [{ name: '1.conf', contents: 'text' }] }), file(DROPIN), undefined],
    [
      'a drop-in with other content',
      withUnit({ dropins: [{ name: '1.conf', contents: 'text' }] }),
      file(DROPIN, 'other'),
      /content mismatch/,
    ],
    [
      'a drop-in that is missing',
      withUnit({ dropins: [{ name: '1.conf', contents: 'text' }] }),
      nothing,
      /could not stat/,
    ],
    ['an empty drop-in', withUnit({ dropins: [{ name: '1.conf' }] }), nothing, undefined],
    [
      'an empty drop-in as a file',
      withUnit({ dropins: [{ name: '1.conf', contents: '' }] }),
      file(DROPIN, ''),
      undefined,
    ],
    ['an empty drop-in that is not', withUnit({ dropins: [{ name: '1.conf' }] }), file(DROPIN), /content mismatch/],
  ];
  for (const [what, config, disk, drift] of table) {
    test(what, async () => {
      const host = memoryHost();
      await disk(host.files);
      const found = await validateDisk(config, host);
      if (drift === undefined) assert.equal(found, undefined);
      else {
        assert.match(found?.message ?? '', drift);
        assert.equal(found?.kind, config.systemd === undefined ? 'file' : 'unit');
        assert.ok(!found.message.includes('text and more'), 'contents are not told');
      }
    });
  }

  test('files come before units, and the first one is told', async () => {
    const config = { ...withFile(), ...withUnit({ contents: 'text' }) };
    assert.equal((await validateDisk(config, memoryHost()))?.kind, 'file');
  });

  test('what cannot be looked at is an error, not drift', async () => {
    const host = memoryHost();
    await host.files.write('/etc/a/b', TEXT);
    await host.files.remove('/etc/a/b');
    const broken = { ...host, files: { ...host.files, stat: () => Promise.reject(new Error('EIO')) } };
    await assert.rejects(validateDisk(withFile(), broken), /EIO/);
  });
});

describe('whether units are enabled (seed 003)', () => {
  const states: UnitEnablement[] = ['enabled', 'disabled', 'masked', 'static', 'not-found', 'other'];
  const wrong: [enabled: boolean | undefined, states: UnitEnablement[]][] = [
    [true, ['disabled', 'masked']],
    [false, ['enabled']],
    [undefined, []],
  ];
  for (const [enabled, wrongStates] of wrong) {
    for (const state of states) {
      const isDrift = wrongStates.includes(state);
      test(`${enabled} in the config, ${state} on the host: ${isDrift ? 'drift' : 'fine'}`, async () => {
        const config = withUnit(enabled === undefined ? {} : { enabled });
        const found = await validateDisk(config, { ...memoryHost(), services: { isEnabled: async () => state } });
        assert.equal(found !== undefined, isDrift);
        if (isDrift) assert.match(found?.message ?? '', new RegExp(`"a.service".*received: ${state}`));
      });
    }
  }

  test('really: a unit whose link is gone', async () => {
    const host = memoryHost();
    const contents = '[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n';
    const config = withUnit({ contents, enabled: true });
    await file(UNIT, contents)(host.files);
    assert.match((await validateDisk(config, host))?.message ?? '', /expected: enabled; received: disabled/);
    await host.services.enable(['a.service']);
    assert.equal(await validateDisk(config, host), undefined);
  });

  test('a masked unit need not be enabled', async () => {
    const host = memoryHost();
    await host.files.symlink('/dev/null', UNIT);
    assert.equal(await validateDisk(withUnit({ mask: true, enabled: true }), host), undefined);
  });
});

describe('keys on disk (seed 003)', () => {
  const check = async (config: IgnitionConfig, disk: Prepare) => {
    const host: Host = memoryHost();
    await disk(host.files);
    return validateDisk(config, host, { sshKeysPath: KEYS });
  };
  const table: [what: string, config: IgnitionConfig, disk: Prepare, drift: RegExp | undefined][] = [
    ['as they should be', withKeys('k1', 'k2'), file(KEYS, 'k1\nk2\n', 0o600), undefined],
    [
      'in another order, with blank lines and comments',
      withKeys('k1', 'k2'),
      file(KEYS, '# x\nk2\n\nk1', 0o600),
      undefined,
    ],
    ['several in one entry', withKeys('k1\nk2'), file(KEYS, 'k1\nk2\n', 0o600), undefined],
    ['stricter than needed', withKeys('k1'), file(KEYS, 'k1\n', 0o400), undefined],
    ['one too many', withKeys('k1'), file(KEYS, 'k1\nmine\n', 0o600), /0 keys are missing, 1 are not from the config/],
    ['one missing', withKeys('k1', 'k2'), file(KEYS, 'k1\n', 0o600), /1 keys are missing/],
    ['open to others', withKeys('k1'), file(KEYS, 'k1\n', 0o644), /mode mismatch/],
    ['a link', withKeys('k1'), files => files.symlink('/tmp/k', KEYS), /expected a file, found a symlink/],
    ['not there', withKeys('k1'), nothing, /could not stat/],
    ['not there and none wanted', withKeys(), nothing, undefined],
    ['none wanted and one there', withKeys(), file(KEYS, 'mine\n', 0o600), /1 are not from the config/],
    ['a config that says nothing of users', emptyIgnition(), file(KEYS, 'mine\n', 0o600), undefined],
  ];
  for (const [what, config, disk, drift] of table) {
    test(what, async () => {
      const found = await check(config, disk);
      if (drift === undefined) assert.equal(found, undefined);
      else {
        assert.match(found?.message ?? '', drift);
        assert.equal(found?.kind, 'ssh');
        assert.ok(!found.message.includes('mine'), 'keys are not told');
      }
    });
  }

  test('a host without that user has no keys to look at', async () => {
    assert.equal(await validateDisk(withKeys('k'), memoryHost()), undefined);
  });
});

test('what is watched: files, units, drop-ins and keys, also where they do not exist; nothing of the certificate writer', () => {
  const config = {
    ...withUnit({ contents: 'x', dropins: [{ name: '1.conf' }] }),
    storage: { files: [{ path: '/etc/a' }, { path: '/etc/kubernetes/kubelet-ca.crt' }] },
  };
  const paths = driftPaths(config, KEYS);
  assert.deepEqual(paths, ['/etc/a', UNIT, DROPIN, KEYS]);
  assert.deepEqual(directoriesOf(paths), [
    '/etc',
    '/etc/systemd/system',
    '/etc/systemd/system/a.service.d',
    '/home/core/.ssh/authorized_keys.d',
  ]);
});

test('modes as people know them', () => {
  assert.equal(modeText('file', 0o644), '-rw-r--r--/420/0644');
  assert.equal(modeText('directory', 0o1777), 'tdrwxrwxrwx/1023/01777');
  assert.equal(modeText('symlink', 0o777), 'Lrwxrwxrwx/511/0777');
});

test('files of the certificate writer are compared only where the config is of spec 2', async () => {
  const { files, services } = memoryHost();
  await file('/etc/kubernetes/kubelet-ca.crt', 'of the certificate writer')(files);
  const config = withFile({ path: '/etc/kubernetes/kubelet-ca.crt' });
  assert.equal(await validateDisk(config, { files, services }), undefined);
  const drift = await validateDisk(config, { files, services }, { comparesCertificates: true });
  assert.match(drift?.message ?? '', /content mismatch/);
});
