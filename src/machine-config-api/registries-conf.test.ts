import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { RegistriesConfError, registriesDrainReason } from './registries-conf.ts';

const registry = (fields: string, ...mirrors: string[]) =>
  `[[registry]]\nlocation = "r.io"\n${fields}\n${mirrors.map(mirror => `[[registry.mirror]]\n${mirror}\n`).join('')}`;
const digest = (location: string) => `location = "${location}"\npull-from-mirror = "digest-only"`;
const plain = (location: string, more = '') => `location = "${location}"\n${more}`;
const ALL_DIGEST = 'mirror-by-digest-only = true';

describe('which changes of registries.conf ask for a drain (spec 60, 9.3)', () => {
  const table: [what: string, before: string | undefined, after: string | undefined, reason: RegExp | undefined][] = [
    ['nothing', registry(''), registry(''), undefined],
    [
      'spacing and comments',
      'unqualified-search-registries = ["a"]',
      '# x\nunqualified-search-registries=[ "a" ]',
      undefined,
    ],
    ['an empty file that comes', undefined, '', undefined],
    [
      'a search registry appended',
      'unqualified-search-registries = ["a"]',
      'unqualified-search-registries = ["a", "b"]',
      undefined,
    ],
    [
      'a search registry in front',
      'unqualified-search-registries = ["a"]',
      'unqualified-search-registries = ["b", "a"]',
      /search/,
    ],
    ['a search registry gone', 'unqualified-search-registries = ["a"]', '', /search/],
    ['a registry whose mirrors are digest-only', '', registry('', digest('m'), digest('n')), undefined],
    ['a registry without mirrors', '', registry(''), /without mirror-by-digest-only/],
    ['a registry without mirrors, by digest', '', registry(ALL_DIGEST), undefined],
    ['a registry by digest with a plain mirror', '', registry(ALL_DIGEST, plain('m')), /mirror m, which is not/],
    ['a registry gone', registry(''), '', /r\.io was removed/],
    ['the file gone', registry(''), undefined, /removed/],
    ['another prefix', registry('prefix = "a"'), registry('prefix = "b"'), /a was removed/],
    ['another location', registry('prefix = "a"'), registry('prefix = "a"').replace('r.io', 's.io'), /location/],
    ['blocked', registry(''), registry('blocked = true'), /blocked/],
    ['insecure', registry(''), registry('insecure = true'), /insecure/],
    ['a mirror gone', registry('', digest('m')), registry(''), /removed/],
    ['a digest-only mirror', registry('', digest('m')), registry('', digest('m'), digest('n')), undefined],
    ['a digest-only mirror in front', registry('', digest('m')), registry('', digest('n'), digest('m')), undefined],
    ['a plain mirror', registry(''), registry('', plain('m')), /not digest-only/],
    ['a plain mirror of a registry by digest', registry(ALL_DIGEST), registry(ALL_DIGEST, plain('m')), undefined],
    ['a mirror tightened', registry('', plain('m')), registry('', digest('m')), undefined],
    ['a mirror loosened', registry('', digest('m')), registry('', plain('m')), /loosened/],
    [
      'a mirror for tags only',
      registry('', plain('m')),
      registry('', plain('m', 'pull-from-mirror = "tag-only"')),
      /loosened/,
    ],
    [
      'another order of registries',
      `${registry('')}${registry('').replace('r.io', 's.io')}`,
      `${registry('').replace('r.io', 's.io')}${registry('')}`,
      undefined,
    ],
    // What 4.16 does not look at (D-20).
    ['mirrors reordered', registry('', digest('m'), digest('n')), registry('', digest('n'), digest('m')), /reordered/],
    ['a mirror insecure', registry('', digest('m')), registry('', `${digest('m')}\ninsecure = true`), /insecure/],
    ['by digest dropped', registry(ALL_DIGEST, plain('m')), registry('', plain('m')), /no longer digest-only/],
    ['by digest dropped without mirrors', registry(ALL_DIGEST), registry(''), /dropped/],
    ['by digest moved to the mirrors', registry(ALL_DIGEST, plain('m')), registry('', digest('m')), undefined],
    ['by digest set', registry('', plain('m')), registry(ALL_DIGEST, plain('m')), undefined],
    ['short-name-mode', '', 'short-name-mode = "enforcing"', /short-name-mode/],
    ['an alias', '', '[aliases]\n"a" = "b/a"', /aliases/],
    ['a setting of the future', registry(''), registry('sometimes = true'), /sometimes/],
    ['a setting of a mirror', registry('', digest('m')), registry('', `${digest('m')}\nsometimes = 1`), /sometimes/],
    ['a registry twice', '', `${registry(ALL_DIGEST)}${registry(ALL_DIGEST)}`, /twice/],
    ['a mirror twice', registry('', digest('m')), registry('', digest('m'), digest('m')), /twice/],
  ];
  for (const [what, before, after, reason] of table) {
    test(what, () => {
      const found = registriesDrainReason(before, after);
      if (reason === undefined) assert.equal(found, undefined);
      else assert.match(found ?? '', reason);
    });
  }
});

test('what cannot be read is refused', () => {
  const unreadable = [
    '= =',
    '[[registry]',
    'registry = 1',
    '[[registry]]\nlocation = 3',
    '[[registry]]\nblocked = "no"',
    'unqualified-search-registries = "a"',
    '[[registry]]\nmirror = ["a"]',
    '#'.repeat(2 * 1024 * 1024),
  ];
  for (const text of unreadable) assert.throws(() => registriesDrainReason('', text), RegistriesConfError);
});

test('any text is judged or refused, and never differs from itself', () => {
  fc.assert(
    fc.property(fc.string(), text => {
      try {
        assert.equal(registriesDrainReason(text, text), undefined);
      } catch (error) {
        assert.ok(error instanceof RegistriesConfError);
      }
    }),
  );
});
