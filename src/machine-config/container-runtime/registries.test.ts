import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import * as fc from 'fast-check';
import { parse } from 'smol-toml';
import type { ImageMirrors, RegistrySources } from '../../machine-config-api/cluster-config.ts';
import { decodeDataUrl } from '../../machine-config-api/ignition/data-url.ts';
import type { IgnitionFile } from '../../machine-config-api/ignition/types.ts';
import { registriesDrainReason } from '../../machine-config-api/registries-conf.ts';
import { mergedMirrors } from './mirrors.ts';
import { RegistriesError, registriesFiles, registriesOf } from './registries.ts';

interface Given {
  readonly sources?: RegistrySources;
  readonly digest?: readonly ImageMirrors[];
  readonly tag?: readonly ImageMirrors[];
  readonly policy?: readonly ImageMirrors[];
}

function filesOf({ sources, digest = [], tag = [], policy = [] }: Given): Map<string, string> {
  const files = registriesFiles({
    image: { spec: { ...(sources && { registrySources: sources }) } },
    digestMirrors: [{ kind: 'ImageDigestMirrorSet', metadata: { name: 'd' }, spec: { imageDigestMirrors: digest } }],
    tagMirrors: [{ kind: 'ImageTagMirrorSet', metadata: { name: 't' }, spec: { imageTagMirrors: tag } }],
    contentPolicies: [{ metadata: { name: 'p' }, spec: { repositoryDigestMirrors: policy } }],
  });
  return new Map(
    files.map(({ path, contents }) => [path, decodeDataUrl(contents?.source ?? '')?.toString('utf8') ?? '']),
  );
}

/** The locations of the mirrors, by place. */
function mirrorsOf(given: Given): Record<string, string[]> {
  const { registry } = parse(filesOf(given).get(REGISTRIES) ?? '') as unknown as {
    registry: { location: string; mirror?: { location: string }[] }[];
  };
  return Object.fromEntries(
    registry
      .map(({ location, mirror = [] }): [string, string[]] => [location, mirror.map(each => each.location)])
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}

const REGISTRIES = '/etc/containers/registries.conf';
const POLICY = '/etc/containers/policy.json';

describe('where images come from', () => {
  test('nothing is said where nothing was', () => assert.equal(filesOf({}).size, 0));

  test('mirrors by digest and by tag, in order, and a source that is left alone', () => {
    const text = filesOf({
      digest: [
        {
          source: 'quay.io/a',
          mirrors: ['m1.example.com/a', 'm2.example.com:5000/a'],
          mirrorSourcePolicy: 'NeverContactSource',
        },
      ],
      policy: [{ source: 'docker.io', mirrors: ['hub.example.com'] }],
      tag: [{ source: 'quay.io/a', mirrors: ['t.example.com/a'], mirrorSourcePolicy: 'NeverContactSource' }],
    }).get(REGISTRIES);
    assert.equal(
      text,
      `unqualified-search-registries = ["registry.access.redhat.com","docker.io"]

[[registry]]
  prefix = ""
  location = "docker.io"

  [[registry.mirror]]
    location = "hub.example.com"
    pull-from-mirror = "digest-only"

[[registry]]
  prefix = ""
  location = "quay.io/a"
  blocked = true

  [[registry.mirror]]
    location = "m1.example.com/a"
    pull-from-mirror = "digest-only"

  [[registry.mirror]]
    location = "m2.example.com:5000/a"
    pull-from-mirror = "digest-only"

  [[registry.mirror]]
    location = "t.example.com/a"
    pull-from-mirror = "tag-only"
`,
    );
  });

  test('mirrors that are asked by digest only need no drain, others do (spec 50, section 13)', () => {
    const template = `unqualified-search-registries = ['registry.access.redhat.com', 'docker.io']\n`;
    const sets = [{ source: 'quay.io/a', mirrors: ['m1.example.com/a'] }];
    assert.equal(registriesDrainReason(template, filesOf({ digest: sets }).get(REGISTRIES)), undefined);
    assert.notEqual(registriesDrainReason(template, filesOf({ tag: sets }).get(REGISTRIES)), undefined);
  });

  test('what holds for a registry holds for every entry inside of it, and for its mirrors', () => {
    const text = filesOf({
      sources: { insecureRegistries: ['*.lab.example.com'], blockedRegistries: ['bad.example.com'] },
      digest: [
        { source: 'bad.example.com/team', mirrors: ['m.lab.example.com:5000/team', 'm.example.com/x.lab.example.com'] },
      ],
    }).get(REGISTRIES);
    assert.equal((parse(text ?? '')['registry'] as unknown[]).length, 3, 'it is TOML');
    const blocks = (text ?? '').split('[[registry]]').slice(1);
    assert.match(blocks[0] ?? '', /location = "bad\.example\.com\/team"\n {2}blocked = true/);
    assert.match(blocks[0] ?? '', /m\.lab\.example\.com:5000\/team"\n {4}insecure = true/);
    assert.doesNotMatch(blocks[0] ?? '', /x\.lab\.example\.com"\n {4}insecure/);
    assert.match(blocks[1] ?? '', /location = "bad\.example\.com"\n {2}blocked = true/);
    assert.match(blocks[2] ?? '', /prefix = "\*\.lab\.example\.com"\n {2}insecure = true/);
  });

  test('blocked registries are refused by the policy, allowed ones are the only ones', () => {
    const policyOf = (sources: RegistrySources) =>
      JSON.parse(filesOf({ sources }).get(POLICY) ?? '') as {
        default: { type: string }[];
        transports: Record<string, Record<string, { type: string }[]>>;
      };
    const blocked = policyOf({ blockedRegistries: ['bad.example.com'] });
    assert.equal(blocked.default[0]?.type, 'insecureAcceptAnything');
    assert.equal(blocked.transports['docker']?.['bad.example.com']?.[0]?.type, 'reject');
    const allowed = policyOf({ allowedRegistries: ['good.example.com'] });
    assert.equal(allowed.default[0]?.type, 'reject');
    assert.equal(allowed.transports['atomic']?.['good.example.com']?.[0]?.type, 'insecureAcceptAnything');
    assert.equal(allowed.transports['docker-daemon']?.['']?.[0]?.type, 'insecureAcceptAnything');
  });

  test('the policy has no scope in "atomic" that the container runtime could not read there', () => {
    const scopes = ['a.io', 'a.io/x/y', 'a.io/x/y/z', 'a.io/x:tag', 'a.io/x/y:tag'];
    const { transports } = JSON.parse(filesOf({ sources: { blockedRegistries: scopes } }).get(POLICY) ?? '') as {
      transports: Record<string, object>;
    };
    assert.deepEqual(Object.keys(transports['docker'] ?? {}), scopes);
    assert.deepEqual(Object.keys(transports['atomic'] ?? {}), ['a.io', 'a.io/x/y', 'a.io/x/y:tag']);
  });

  test('an entry inside of a mirrored place has its mirrors, one with mirrors of its own has those', () => {
    const found = mirrorsOf({
      sources: { insecureRegistries: ['a.io/x/y'], blockedRegistries: ['b.io/k'] },
      digest: [
        { source: 'a.io', mirrors: ['m.io'] },
        { source: 'b.io', mirrors: ['n.io/b'] },
      ],
      tag: [{ source: 'b.io/k/own', mirrors: ['o.io'] }],
    });
    assert.deepEqual(found, {
      'a.io': ['m.io'],
      'a.io/x/y': ['m.io/x/y'],
      'b.io': ['n.io/b'],
      'b.io/k': ['n.io/b/k'],
      'b.io/k/own': ['o.io'],
    });
  });

  test('where images without a registry are looked for', () => {
    const files = filesOf({ sources: { containerRuntimeSearchRegistries: ['quay.io', 'docker.io'] } });
    assert.deepEqual(
      [...files],
      [
        [
          '/etc/containers/registries.conf.d/01-image-searchRegistries.conf',
          'unqualified-search-registries = ["quay.io","docker.io"]\n',
        ],
      ],
    );
  });

  const bad: [string, Given, RegExp][] = [
    [
      'allowed and blocked at once',
      { sources: { allowedRegistries: ['a'], blockedRegistries: ['b'] } },
      /image\.config\.openshift\.io cluster: spec\.registrySources/,
    ],
    [
      'a star in the middle',
      { sources: { insecureRegistries: ['a.*.com'] } },
      /spec\.registrySources\.insecureRegistries/,
    ],
    [
      'a line of its own',
      { digest: [{ source: 'a', mirrors: ['b"\nblocked = false'] }] },
      /ImageDigestMirrorSet d: spec\.imageDigestMirrors/,
    ],
    [
      'two policies for a source',
      {
        digest: [{ source: 'a.io', mirrors: ['b.io'], mirrorSourcePolicy: 'NeverContactSource' }],
        tag: [{ source: 'a.io', mirrors: [] }],
      },
      /ImageTagMirrorSet t: spec\.imageTagMirrors: conflicting mirrorSourcePolicy/,
    ],
    [
      'a source among the mirrors that is never to be contacted',
      { tag: [{ source: 'a.io', mirrors: ['b.io', 'a.io'], mirrorSourcePolicy: 'NeverContactSource' }] },
      /NeverContactSource if the source "a\.io" is one of the mirrors/,
    ],
    ['a star as a mirror', { digest: [{ source: 'a.io', mirrors: ['*.b.io'] }] }, /invalid format for mirror/],
    [
      'a mirror that is long and wrong',
      { digest: [{ source: 'a.io', mirrors: [`m.io/${'a'.repeat(400)}!`] }] },
      /format/,
    ],
    ['an odd source', { policy: [{ source: '-a.io', mirrors: [] }] }, /invalid format for source "-a\.io"/],
    [
      'something inside of a mirrored star',
      { sources: { insecureRegistries: ['x.b.io'] }, digest: [{ source: '*.b.io', mirrors: ['m.io'] }] },
      /mirrors of "\*\.b\.io"/,
    ],
    ['a scheme', { sources: { insecureRegistries: ['https://a.io'] } }, /insecureRegistries: "https:\/\/a\.io" has/],
    [
      'the same place twice',
      { sources: { insecureRegistries: ['a.io/'], blockedRegistries: ['a.io'] } },
      /"a\.io" and "a\.io\/" are the same place/,
    ],
    ['a path to search in', { sources: { containerRuntimeSearchRegistries: ['a.io/x'] } }, /SearchRegistries/],
    [
      'a star to search in',
      { sources: { containerRuntimeSearchRegistries: ['*.a'] } },
      /containerRuntimeSearchRegistries/,
    ],
  ];
  for (const [what, given, message] of bad) {
    test(`${what} is refused by object and field`, () =>
      assert.throws(
        () => filesOf(given),
        (error: Error) => error instanceof RegistriesError && message.test(error.message),
      ));
  }
});

describe("the cluster's own release", () => {
  const repository = 'quay.io/openshift-release-dev/ocp-release';
  const given = (blockedRegistries: string[], mirrors: string[]) =>
    registriesOf({
      image: { spec: { registrySources: { blockedRegistries } } },
      digestMirrors: [{ metadata: { name: 'd' }, spec: { imageDigestMirrors: [{ source: 'quay.io', mirrors }] } }],
      contentPolicies: [],
      tagMirrors: [],
      releaseImage: `${repository}@sha256:${'ab'.repeat(32)}`,
    });
  const scopes = (files: readonly IgnitionFile[]) => {
    const file = files.find(({ path }) => path === POLICY);
    if (file === undefined) return undefined;
    const policy = JSON.parse(decodeDataUrl(file.contents?.source ?? '')?.toString() ?? '') as {
      default: { type: string }[];
      transports: { docker: Record<string, { type: string }[]> };
    };
    return {
      default: policy.default[0]?.type,
      ...Object.fromEntries(Object.entries(policy.transports.docker).map(([scope, [rule]]) => [scope, rule?.type])),
    };
  };

  test('is not cut off: what it comes from is not blocked', () => {
    const { files, open } = given(['quay.io', 'bad.io'], []);
    assert.deepEqual(open, ['quay.io']);
    assert.deepEqual(scopes(files), { default: 'insecureAcceptAnything', 'bad.io': 'reject' });
  });

  test('has a mirror: then its source is blocked, and its own name allowed', () => {
    const { files, open } = given(['quay.io', 'bad.io'], ['m.io']);
    assert.deepEqual(open, []);
    assert.deepEqual(scopes(files), {
      default: 'insecureAcceptAnything',
      [repository]: 'insecureAcceptAnything',
      'quay.io': 'reject',
      'bad.io': 'reject',
    });
  });

  test('a mirror that is blocked is none', () =>
    assert.deepEqual(given(['quay.io', 'm.io'], ['m.io/x']).open, ['quay.io']));
});

describe('mirrors of one source from several objects', () => {
  const merged = (...lists: string[][]) => mergedMirrors(lists.map(mirrors => ({ source: 's', mirrors })))[0]?.mirrors;
  test('keep the order of each', () => assert.deepEqual(merged(['b', 'c'], ['a', 'b']), ['a', 'b', 'c']));
  test('are as far in front as they can be, by name', () =>
    assert.deepEqual(merged(['d', 'e'], ['c'], ['a', 'b']), ['a', 'c', 'd', 'b', 'e']));
  test('go by name where they contradict', () => {
    assert.deepEqual(merged(['b', 'a'], ['a', 'b']), ['a', 'b']);
    assert.deepEqual(merged(['b', 'a', 'b']), ['a', 'b']);
  });
  test('the source itself is no mirror', () => assert.equal(merged(['s']), undefined));
  test('the source among its mirrors stays in its place', () => {
    assert.deepEqual(merged(['a', 's', 'b']), ['a', 's', 'b']);
    assert.deepEqual(merged(['a', 'b', 's']), ['a', 'b']);
  });

  test('all are there once, in an order that contradicts none of those that agree', () => {
    const list = fc.subarray(['a', 'b', 'c', 'd', 'e', 'f'], { minLength: 1 });
    fc.assert(
      fc.property(fc.array(list, { minLength: 1, maxLength: 6 }), lists => {
        const found = merged(...lists) ?? [];
        assert.deepEqual([...found].sort(), [...new Set(lists.flat())].sort());
        for (const each of lists)
          assert.deepEqual(
            found.filter(mirror => each.includes(mirror)),
            each,
          );
      }),
    );
  });
});
