import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import * as fc from 'fast-check';
import { base64DataUrl, decodeDataUrl, escapedDataUrl } from './data-url.ts';
import { downgraded } from './downgrade.ts';
import { mergeIgnition } from './merge.ts';
import { readIgnition } from './read.ts';
import { irreconcilable } from './reconcilable.ts';
import { LONGEST_SOURCE } from './resource-rules.ts';
import { type IgnitionConfig, IgnitionError } from './types.ts';
import { unitProblem } from './unit-syntax.ts';

const document = (parts: object, version = '3.4.0') => ({ ignition: { version }, ...parts });
const read = (parts: object, version?: string) => readIgnition(document(parts, version)) as IgnitionConfig;
const file = (path: string, more: object = {}) => ({ path, contents: { source: 'data:,x' }, ...more });

describe('data URLs', () => {
  test('what was encoded is decoded, both ways', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), bytes => {
        assert.deepEqual(decodeDataUrl(escapedDataUrl(bytes)), Buffer.from(bytes));
        assert.deepEqual(decodeDataUrl(base64DataUrl(bytes)), Buffer.from(bytes));
      }),
    );
  });

  test('every byte is escaped that must be (TM-5)', () => {
    assert.equal(escapedDataUrl("aZ09-_.!~*'() %\nä"), "data:,aZ09-_.!~*'()%20%25%0A%C3%A4");
  });
});

describe('reading', () => {
  test('a version that is none is invalid, one that is another is unknown (spec 60, 6.2)', () => {
    const message = (version: string) => {
      try {
        read({}, version);
        return 'taken';
      } catch (error) {
        return /(invalid|unknown) version/.exec((error as Error).message)?.[1];
      }
    };
    for (const version of ['3.5.0', '3.4.1', '3.5.0-experimental', '3.4.0+b', '2.2.0-experimental', '2.3.0'])
      assert.equal(message(version), 'unknown', version);
    for (const version of ['', '3.4', 'v3.4.0', '3.4.0-', '99999999999999999999.0.0'])
      assert.equal(message(version), 'invalid', version);
  });

  test('a URL is what Go takes for one (spec 60, 6.5)', () => {
    for (const source of [
      'http://',
      'http:///x',
      'http://u:p@[::1]:80/a b?%zz',
      'http://a:b:99999',
      'gs://b/o',
      'http:x',
    ])
      assert.ok(read({ storage: { files: [file('/a', { contents: { source } })] } }), source);
  });

  test('null is an entry with nothing set', () => {
    for (const parts of [
      { passwd: { users: [null] } },
      { storage: { disks: [null] } },
      { storage: { luks: [null] } },
    ]) {
      try {
        read(parts);
      } catch (error) {
        assert.ok(error instanceof IgnitionError, String(error));
      }
    }
  });

  test('a config that a machine is in need not keep our own rules (spec 60, section 7, rule 1)', () => {
    const sticky = document({ storage: { files: [file('/a', { mode: 0o1777 })] } });
    assert.throws(() => readIgnition(sticky), /cannot exceed 0777/);
    assert.equal(readIgnition(sticky, { isStored: true })?.storage?.files?.[0]?.mode, 0o1777);
    const negative = document({ storage: { files: [file('/a', { mode: -1 })] } });
    assert.throws(() => readIgnition(negative, { isStored: true }), IgnitionError);
    const large = document({
      storage: { files: [file('/a', { contents: { source: `data:,${'x'.repeat(LONGEST_SOURCE)}` } })] },
    });
    assert.throws(() => readIgnition(large), IgnitionError);
    assert.ok(readIgnition(large, { isStored: true }));
  });

  test('special bits mean nothing before 3.4', () => {
    const config = read({ storage: { files: [file('/a', { mode: 0o1777 })] } }, '3.3.0');
    assert.equal(config.storage?.files?.[0]?.mode, 0o777);
  });

  test('a document that says nothing is none', () => {
    for (const nothing of [undefined, null, {}]) assert.equal(readIgnition(nothing), undefined);
  });

  const refused: [what: string, document: unknown, field: string][] = [
    ['no object', [], ''],
    ['no version', { storage: {} }, 'ignition.version'],
    ['a version of the future', document({}, '3.5.0'), 'ignition.version'],
    [
      'a broken escape in a URL',
      document({ storage: { files: [file('/a', { contents: { source: 'https://x/%zz' } })] } }),
      'storage.files[0].contents.source',
    ],
    [
      'a URL without a host that can be',
      document({ storage: { files: [file('/a', { contents: { source: 'http://[::1' } })] } }),
      'storage.files[0].contents.source',
    ],
    [
      'a port that is no number',
      document({ storage: { files: [file('/a', { contents: { source: 'http://x:port' } })] } }),
      'storage.files[0].contents.source',
    ],
    [
      'a host with a blank',
      document({ storage: { files: [file('/a', { contents: { source: 'http://a b' } })] } }),
      'storage.files[0].contents.source',
    ],
    ['null for a file', document({ storage: { files: [null] } }), 'storage.files[0].path'],
    ['null for a unit', document({ systemd: { units: [null] } }), 'systemd.units[0].name'],
    [
      'null for a drop-in',
      document({ systemd: { units: [{ name: 'a.service', dropins: [null] }] } }),
      'systemd.units[0].dropins[0].name',
    ],
    [
      'spec 2: null for a file',
      { ignition: { version: '2.2.0' }, storage: { files: [null] } },
      'storage.files[0].filesystem',
    ],
    ['a list where a text should be', document({ storage: { files: [{ path: ['/a'] }] } }), 'storage.files[0].path'],
    ['half a mode', document({ storage: { files: [file('/a', { mode: 1.5 })] } }), 'storage.files[0].mode'],
    ['the sticky bit', document({ storage: { files: [file('/a', { mode: 0o1644 })] } }), 'storage.files[0].mode'],
    ['a path that leads elsewhere', document({ storage: { files: [file('/a/../../b')] } }), 'storage.files[0].path'],
    ['a path with a zero byte', document({ storage: { files: [file('/a\0b')] } }), 'storage.files[0].path'],
    [
      'the same path as file and link',
      document({ storage: { files: [file('/a')], links: [{ path: '/a', target: '/b' }] } }),
      'storage.links[0]',
    ],
    [
      'a unit outside of its directory',
      document({ systemd: { units: [{ name: '../x.service' }] } }),
      'systemd.units[0].name',
    ],
    [
      'a drop-in outside of its directory',
      document({ systemd: { units: [{ name: 'x.service', dropins: [{ name: '../../y.conf' }] }] } }),
      'systemd.units[0].dropins[0].name',
    ],
    [
      'five megabytes in one file',
      document({ storage: { files: [file('/a', { contents: { source: `data:,${'x'.repeat(5_000_000)}` } })] } }),
      'storage.files[0].contents.source',
    ],
    [
      'base64 that is none',
      document({ storage: { files: [file('/a', { contents: { source: 'data:;base64,Q' } })] } }),
      'storage.files[0].contents.source',
    ],
    ['spec 2: networkd', { ignition: { version: '2.2.0' }, networkd: { units: [{ name: 'x.network' }] } }, 'networkd'],
    [
      'spec 2: no file system',
      { ignition: { version: '2.2.0' }, storage: { files: [{ path: '/a' }] } },
      'storage.files[0].filesystem',
    ],
    [
      'spec 2: a relative path',
      { ignition: { version: '2.2.0' }, storage: { files: [{ filesystem: 'root', path: 'a' }] } },
      'storage.files[0].path',
    ],
    [
      'spec 2: partitions in sectors',
      {
        ignition: { version: '2.2.0' },
        storage: { disks: [{ device: '/dev/a', partitions: [{ number: 1, size: 8 }] }] },
      },
      'storage.disks[0].partitions',
    ],
    [
      'a unit with a line of 2048 bytes',
      document({ systemd: { units: [{ name: 'a.service', contents: `[A]\nB=${'x'.repeat(2046)}\n` }] } }),
      'systemd.units[0].contents',
    ],
    ['spec 2.3', { ignition: { version: '2.3.0' } }, 'ignition.version'],
  ];
  for (const [what, each, field] of refused) {
    test(`refuses ${what}`, () =>
      assert.throws(
        () => readIgnition(each),
        (error: Error) => error instanceof IgnitionError && error.field === field && error.message.length < 1000,
      ));
  }

  test('older documents lose what their version did not know, and special bits', () => {
    const config = read(
      { kernelArguments: { shouldExist: ['a'] }, storage: { files: [file('/a', { mode: 0o4755 })] } },
      '3.2.0',
    );
    assert.equal(config.kernelArguments, undefined);
    assert.equal(config.storage?.files?.[0]?.mode, 0o755);
    assert.equal(config.ignition.version, '3.4.0');
  });

  test('spec 2 becomes spec 3', () => {
    const config = readIgnition({
      ignition: { version: '2.2.0', config: { append: [{ source: 'https://x' }] } },
      passwd: {
        users: [
          { name: 'core', sshAuthorizedKeys: ['a'] },
          { name: 'core', sshAuthorizedKeys: ['b', 'a'] },
        ],
      },
      storage: {
        files: [
          { filesystem: 'root', path: '/a', mode: 420, contents: {} },
          { filesystem: 'root', path: '/b', append: true, contents: { source: 'data:,b' } },
        ],
      },
      systemd: { units: [{ name: 'u.service', enable: true, contents: '' }] },
    });
    assert.deepEqual(config, {
      ignition: { version: '3.4.0', config: { merge: [{ source: 'https://x' }] } },
      passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['b', 'a'] }] },
      storage: {
        files: [
          { path: '/b', overwrite: false, append: [{ source: 'data:,b' }] },
          { path: '/a', overwrite: true, contents: { source: '' }, mode: 420 },
        ],
      },
      systemd: { units: [{ name: 'u.service', enabled: true }] },
    });
  });

  test('a source may be as long as it may be, and no longer', () => {
    const source = (length: number) => `data:,${'x'.repeat(length - 6)}`;
    assert.ok(read({ storage: { files: [file('/a', { contents: { source: source(LONGEST_SOURCE) } })] } }));
    assert.throws(() =>
      read({ storage: { files: [file('/a', { contents: { source: source(LONGEST_SOURCE + 1) } })] } }),
    );
  });

  test('whatever is asked, it answers or refuses', () => {
    const anything = fc.record({
      ignition: fc.record({ version: fc.constantFrom('3.4.0', '2.2.0', '3.0.0') }),
      storage: fc.object(),
      systemd: fc.object(),
      passwd: fc.object(),
    });
    fc.assert(
      fc.property(anything, each => {
        try {
          readIgnition(each);
        } catch (error) {
          assert.ok(error instanceof IgnitionError, String(error));
        }
      }),
    );
  });
});

describe('merging', () => {
  test('new content is plain, unless it says otherwise (trap 8)', () => {
    const earlier = read({
      storage: {
        files: [
          file('/a', {
            mode: 384,
            contents: { source: 'data:,old', compression: 'gzip', verification: { hash: `sha256-${'0'.repeat(64)}` } },
          }),
        ],
      },
    });
    const merged = mergeIgnition(
      earlier,
      read({ storage: { files: [file('/a', { contents: { source: 'data:,new' } })] } }),
    );
    assert.deepEqual(merged.storage?.files, [{ contents: { source: 'data:,new' }, mode: 384, path: '/a' }]);
    const touched = mergeIgnition(earlier, read({ storage: { files: [{ path: '/a', mode: 420 }] } }));
    assert.equal(touched.storage?.files?.[0]?.contents?.compression, 'gzip');
  });

  test('kernel arguments move between the lists', () => {
    const merged = mergeIgnition(
      read({ kernelArguments: { shouldExist: ['a', 'b'] } }),
      read({ kernelArguments: { shouldNotExist: ['a'] } }),
    );
    assert.deepEqual(merged.kernelArguments, { shouldExist: ['b'], shouldNotExist: ['a'] });
  });

  test('keys are joined in the order they were first seen; appended contents are put one after the other', () => {
    const keys = (...sshAuthorizedKeys: string[]) => read({ passwd: { users: [{ name: 'core', sshAuthorizedKeys }] } });
    assert.deepEqual(mergeIgnition(keys('a', 'b'), keys('b', 'c')).passwd?.users?.[0]?.sshAuthorizedKeys, [
      'a',
      'b',
      'c',
    ]);
    const appending = read({ storage: { files: [{ path: '/a', append: [{ source: 'data:,x' }] }] } });
    assert.equal(mergeIgnition(appending, appending).storage?.files?.[0]?.append?.length, 2);
  });

  test('a document merged with itself is itself, where lists are sets', () => {
    const config = read({
      storage: { files: [file('/a'), file('/b', { mode: 1 })] },
      systemd: { units: [{ name: 'u.service', dropins: [{ name: 'a.conf', contents: '' }] }] },
    });
    assert.deepEqual(mergeIgnition(config, config), mergeIgnition(config, read({})));
  });
});

test('downgrading says what an older version cannot', () => {
  const config = read({ kernelArguments: { shouldExist: ['a'] } });
  assert.throws(() => downgraded(config, '3.2.0'), /kernelArguments: is not part of Ignition 3\.2\.0/);
  assert.deepEqual(downgraded(config, '3.3.0'), { ...config, ignition: { version: '3.3.0' } });
  const files = read({ storage: { files: [file('/a', { mode: 420, overwrite: true })] } });
  const old = downgraded(files, '2.2.0') as { storage: { files: unknown[] } };
  assert.deepEqual(old.storage.files, [
    { filesystem: 'root', path: '/a', mode: 420, overwrite: true, contents: { source: 'data:,x' } },
  ]);
  assert.deepEqual(readIgnition(JSON.parse(JSON.stringify(old))), files);
});

describe('what can change on a running machine (6.5)', () => {
  const state = (parts: object, fips = false) => ({ ignition: read(parts), fips });
  const user = (more: object) => ({ passwd: { users: [{ name: 'core', sshAuthorizedKeys: ['k'], ...more }] } });
  const table: [what: string, before: object, after: object, reason: RegExp | undefined][] = [
    ['files', { storage: { files: [file('/a')] } }, { storage: { files: [file('/b')] } }, undefined],
    ['units', {}, { systemd: { units: [{ name: 'u.service' }] } }, undefined],
    ['keys of core', user({}), user({ sshAuthorizedKeys: ['x'] }), undefined],
    ['password of core', {}, { passwd: { users: [{ name: 'core', passwordHash: 'h' }] } }, undefined],
    ['the shell of core', user({}), user({ shell: '/bin/sh' }), /not reconcilable: user core has shell/],
    ['a core without keys', user({}), { passwd: { users: [{ name: 'core' }] } }, /1 or more sshKeys/],
    [
      'appended files',
      {},
      { storage: { files: [{ path: '/a', append: [{ source: 'data:,x' }] }] } },
      /includes append/,
    ],
    ['a new link', {}, { storage: { links: [{ path: '/a', target: '/b' }] } }, /links section/],
    ['kernel arguments of Ignition', {}, { kernelArguments: { shouldExist: ['a'] } }, /kargs section/],
  ];
  for (const [what, before, after, reason] of table) {
    test(what, () => {
      const found = irreconcilable(state(before), state(after));
      if (reason === undefined) assert.equal(found, undefined);
      else assert.match(found ?? '', reason);
    });
  }
  test('FIPS', () => assert.match(irreconcilable(state({}), state({}, true)) ?? '', /FIPS/));
});

describe('units', () => {
  for (const good of [
    '',
    '[A]\nB=c\n',
    '# x\n[A]\n\nB=c \\\n d\n',
    'before\n[A]\nB=',
    '[A]\r\nB=c\r\n',
    '[A] \n;c\n',
  ]) {
    test(`takes ${JSON.stringify(good)}`, () => assert.equal(unitProblem(good), undefined));
  }
  for (const bad of ['[A', '[A]x\n', '[A]\nB\n', '[A]\nB']) {
    test(`refuses ${JSON.stringify(bad)}`, () => assert.ok(unitProblem(bad)));
  }
});
