/** The library that the container runtime reads its files with reads ours, and pulls from where it should. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import * as fc from 'fast-check';
import { RegistriesError, registriesFiles } from '../../src/machine-config/container-runtime/registries.ts';
import type { ImageMirrors, RegistrySources } from '../../src/machine-config-api/cluster-config.ts';
import { decodeDataUrl } from '../../src/machine-config-api/ignition/data-url.ts';
import { buildGo } from './go-program.ts';
import { find, run } from './program.ts';

const skip = find('go') ? false : 'go is not installed';
/** Without what needs libraries of the host. */
const TAGS = 'containers_image_openpgp exclude_graphdriver_devicemapper exclude_graphdriver_btrfs';

interface Settings {
  readonly sources?: RegistrySources;
  readonly digest?: readonly ImageMirrors[];
  readonly tag?: readonly ImageMirrors[];
}

interface Answer {
  readonly policy: string;
  readonly registries: string;
  readonly places: Readonly<Record<string, readonly string[]>>;
}

describe('the container runtime and our registries.conf and policy.json', { skip }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'rotunda-registries-'));
  const program = join(folder, 'registries');
  /** Why there is no program: its modules come over the network. */
  let missing: string | undefined;

  before(async () => {
    missing = await buildGo(fileURLToPath(new URL('registries-go', import.meta.url)), program, ['-tags', TAGS]);
  });
  after(() => rmSync(folder, { recursive: true }));

  async function ask(
    t: TestContext,
    questions: readonly { settings: Settings; images?: readonly string[] }[],
  ): Promise<Answer[] | undefined> {
    if (missing !== undefined) {
      t.skip(missing);
      return undefined;
    }
    const input = questions.map(({ settings, images = [] }) => ({ ...textsOf(settings), images }));
    return JSON.parse(await run(program, [], { input: JSON.stringify(input) })) as Answer[];
  }

  it('whatever is not refused can be read', async t => {
    const accepted = fc.sample(settings, { numRuns: 3000, seed: 14 }).filter(isAccepted);
    assert.ok(accepted.length > 1000, `${accepted.length} of 3000 are accepted`);
    const answers = await ask(
      t,
      accepted.map(each => ({ settings: each })),
    );
    for (const [index, { policy, registries }] of (answers ?? []).entries())
      assert.deepEqual({ policy, registries }, { policy: '', registries: '' }, JSON.stringify(accepted[index]));
  });

  it('images are looked for where it was said, in that order', async t => {
    const digest = `@sha256:${'cd'.repeat(32)}`;
    const settings: Settings = {
      sources: { insecureRegistries: ['m1.io'], blockedRegistries: ['a.io/x/blocked', 'bad.io'] },
      digest: [
        { source: 'a.io', mirrors: ['m2.io/a', 'm1.io'] },
        { source: 'a.io/own', mirrors: ['a.io/own', 'm3.io'] },
        { source: 'never.io', mirrors: ['m1.io/n'], mirrorSourcePolicy: 'NeverContactSource' },
      ],
      tag: [{ source: 'a.io', mirrors: ['m4.io'] }],
    };
    const expected: Record<string, string[]> = {
      [`a.io/k${digest}`]: [`m2.io/a/k${digest}`, `m1.io/k${digest} insecure`, `a.io/k${digest}`],
      'a.io/k:1': ['m4.io/k:1', 'a.io/k:1'],
      [`a.io/x/blocked/k${digest}`]: [`m2.io/a/x/blocked/k${digest}`, `m1.io/x/blocked/k${digest} insecure`, 'blocked'],
      [`a.io/own/k${digest}`]: [`a.io/own/k${digest}`, `m3.io/k${digest}`, `a.io/own/k${digest}`],
      [`never.io/k${digest}`]: [`m1.io/n/k${digest} insecure`, 'blocked'],
      'bad.io/k:1': ['blocked'],
      'm1.io/k:1': ['m1.io/k:1 insecure'],
      'else.io/k:1': ['else.io/k:1'],
    };
    const [answer] = (await ask(t, [{ settings, images: Object.keys(expected) }])) ?? [];
    if (answer !== undefined) assert.deepEqual(answer.places, expected);
  });
});

function textsOf({ sources = {}, digest = [], tag = [] }: Settings) {
  const files = registriesFiles({
    image: { spec: { registrySources: sources } },
    digestMirrors: [{ metadata: { name: 'd' }, spec: { imageDigestMirrors: digest } }],
    tagMirrors: [{ metadata: { name: 't' }, spec: { imageTagMirrors: tag } }],
    contentPolicies: [],
  });
  const text = (end: string) =>
    decodeDataUrl(files.find(({ path }) => path.endsWith(end))?.contents?.source ?? '')?.toString() ?? '';
  return { policy: text('policy.json'), registries: text('registries.conf'), search: text('searchRegistries.conf') };
}

function isAccepted(each: Settings): boolean {
  try {
    textsOf(each);
    return true;
  } catch (error) {
    if (!(error instanceof RegistriesError)) throw error;
    return false;
  }
}

const scope = fc.oneof(
  {
    weight: 40,
    arbitrary: fc.constantFrom('a.io', 'b.io', 'a.io/x', 'a.io/x/y', 'a.io/x/y/z', 'sub.b.io', 'b.io:5000', '*.b.io'),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '*',
      '',
      'a io',
      'A.io',
      'a.io/',
      '/',
      'a.io/x:tag',
      '[::1]:5000',
      'https://a.io',
      'a.io/x//y',
      '*.',
      'a"b',
      'x\n',
      'é.io',
    ),
  },
  { weight: 1, arbitrary: fc.string({ maxLength: 6 }) },
);
const lists = fc.array(
  fc.record(
    {
      source: scope,
      mirrors: fc.array(scope, { maxLength: 3 }),
      mirrorSourcePolicy: fc.constantFrom('NeverContactSource', 'AllowContactingSource'),
    },
    { requiredKeys: ['source', 'mirrors'] },
  ),
  { maxLength: 2 },
);
const scopes = fc.array(scope, { maxLength: 3 });
const settings = fc.record<Settings>({
  sources: fc.oneof(
    fc.record({ insecureRegistries: scopes, blockedRegistries: scopes }),
    fc.record({ insecureRegistries: scopes, allowedRegistries: scopes, containerRuntimeSearchRegistries: scopes }),
  ),
  digest: lists,
  tag: lists,
});
