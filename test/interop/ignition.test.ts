/** Ignition's own Go library judges what is rendered, refuses what ours refuses, and merges what ours merges to the same. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import * as fc from 'fast-check';
import { registriesFiles } from '../../src/machine-config/container-runtime/registries.ts';
import { containerRuntimeFiles } from '../../src/machine-config/container-runtime/render.ts';
import { checkKubeletConfig, kubeletFiles } from '../../src/machine-config/kubelet-config/render.ts';
import { pointerConfig } from '../../src/machine-config/operator/pointer.ts';
import { mergeMachineConfigs } from '../../src/machine-config/render/merge.ts';
import { bootstrapKubeconfig, firstBootConfig } from '../../src/machine-config/server/serve.ts';
import { generateForRole } from '../../src/machine-config/template/generate.ts';
import type { ControllerConfigSpec } from '../../src/machine-config-api/controller-config.ts';
import { mergeIgnition } from '../../src/machine-config-api/ignition/merge.ts';
import { readIgnition } from '../../src/machine-config-api/ignition/read.ts';
import { type IgnitionConfig, IgnitionError } from '../../src/machine-config-api/ignition/types.ts';
import { buildGo } from './go-program.ts';
import { find, run } from './program.ts';

const skip = find('go') ? false : 'go is not installed';

interface Answer {
  ok: boolean;
  error?: string;
  merged?: unknown;
}

describe("Ignition's Go library agrees with ours", { skip }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'rotunda-ignition-'));
  const program = join(folder, 'ignition');
  /** Why there is no program: its modules come over the network. */
  let missing: string | undefined;

  before(async () => {
    missing = await buildGo(fileURLToPath(new URL('ignition-go', import.meta.url)), program);
  });
  after(() => rmSync(folder, { recursive: true }));

  async function ask(t: TestContext, questions: readonly object[]): Promise<Answer[] | undefined> {
    if (missing !== undefined) {
      t.skip(missing);
      return undefined;
    }
    return JSON.parse(await run(program, [], { input: JSON.stringify(questions) })) as Answer[];
  }

  it('everything that is rendered is accepted', async t => {
    const documents = [...renderedDocuments()];
    const answers = await ask(
      t,
      documents.map(document => ({ op: 'parse', document })),
    );
    for (const [index, answer] of answers?.entries() ?? [])
      assert.ok(answer.ok, `${answer.error}: ${JSON.stringify(documents[index]).slice(0, 400)}`);
  });

  it('the same documents are valid', async t => {
    const documents = fc.sample(document, { numRuns: 3000, seed: 7 });
    const answers = await ask(
      t,
      documents.map(each => ({ op: 'parse', document: each })),
    );
    let valid = 0;
    for (const [index, answer] of answers?.entries() ?? []) {
      const ours = verdictOf(documents[index]);
      const told = `ours: ${ours}; Go: ${answer.error}; ${JSON.stringify(documents[index])}`;
      // Older versions have rules of their own, which ours does without where 3.4 did away with them.
      if (versionOf(documents[index]) === '3.4.0') assert.equal(ours === undefined, answer.ok, told);
      else assert.ok(!answer.ok || ours === undefined, told);
      if (answer.ok) valid++;
    }
    if (answers !== undefined) assert.ok(valid > 300 && valid < 2700, `${valid} of 3000 are valid`);
  });

  it('two documents are merged to the same', async t => {
    // A hash belongs to its content and is not inherited by new content here, which is on purpose.
    const pairs = fc
      .sample(fc.tuple(document, document), { numRuns: 4000, seed: 11 })
      .filter(
        pair => pair.every(each => verdictOf(each) === undefined) && !JSON.stringify(pair).includes('verification'),
      );
    assert.ok(pairs.length > 200, `${pairs.length} pairs of valid documents`);
    const answers = await ask(
      t,
      pairs.map(([earlier, later]) => ({ op: 'merge', document: earlier, later })),
    );
    for (const [index, answer] of answers?.entries() ?? []) {
      if (!answer.ok) continue;
      const [earlier, later] = (pairs[index] ?? []).map(each => readIgnition(each)) as [IgnitionConfig, IgnitionConfig];
      assert.deepEqual(said(mergeIgnition(earlier, later)), said(answer.merged), JSON.stringify(pairs[index]));
    }
  });
});

/** What machines of all kinds of clusters get. */
function* renderedDocuments(): Generator<object> {
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  for (const type of ['None', 'AWS', 'GCP', 'Azure', 'BareMetal', 'VSphere', 'OpenStack']) {
    for (const ipFamilies of ['IPv4', 'IPv6', 'DualStack'] as const) {
      const spec: ControllerConfigSpec = {
        rootCAData: base64('-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n'),
        additionalTrustBundle: base64('ä "quoted" 100 %\n'),
        cloudProviderConfig: '[Global]\nname = "x"\n',
        infra: { status: { platformStatus: { type }, apiServerInternalURI: 'https://api-int:6443' } },
        ipFamilies,
        clusterDNSIP: '172.30.0.10',
        images: { infraImageKey: 'registry/pause@sha256:1' },
        proxy: ipFamilies === 'IPv4' ? { httpProxy: 'http://user:p%40ss@proxy:3128', noProxy: '.cluster.local' } : null,
      };
      for (const role of ['master', 'worker', 'infra']) {
        const merged = mergeMachineConfigs(generateForRole(role, spec, '{"auths":{"quay.io":{"auth":"eA=="}}}'), spec);
        assert.ok(merged);
        yield merged.config;
        const rendered = { metadata: { name: 'rendered-x' }, spec: merged };
        const kubeconfig = bootstrapKubeconfig('https://api', Buffer.from('ca'), 'token');
        for (const version of ['3.4.0', '3.3.0', '3.2.0', '3.1.0'] as const)
          yield firstBootConfig({ rendered, controllerConfig: spec, kubeconfig, version });
      }
      const kubeletConfig = {
        spec: { kubeletConfig: { maxPods: 500, systemReserved: { memory: '2Gi' } }, logLevel: 4 },
      };
      checkKubeletConfig(kubeletConfig);
      const files = kubeletFiles(kubeletConfig, {
        pool: 'worker',
        controllerConfig: spec,
        nodeConfig: undefined,
        tlsProfile: undefined,
        featureGates: { SomeGate: true },
      });
      const registries = registriesFiles({
        image: {
          spec: { registrySources: { insecureRegistries: ['*.lab'], containerRuntimeSearchRegistries: ['q.io'] } },
        },
        contentPolicies: [],
        digestMirrors: [{ spec: { imageDigestMirrors: [{ source: 'quay.io', mirrors: ['m:5000/x'] }] } }],
        tagMirrors: [],
      });
      const runtime = containerRuntimeFiles({
        spec: {
          containerRuntimeConfig: {
            pidsLimit: 2048,
            overlaySize: '8Gi',
            logSizeMax: '-1',
            logLevel: 'debug',
            defaultRuntime: 'crun',
          },
        },
      });
      yield { ignition: { version: '3.4.0' }, storage: { files: [...files, ...runtime, ...registries] } };
    }
  }
  yield pointerConfig('api-int:22623', Buffer.from('CA\n'), 'worker');
}

function verdictOf(document: unknown): string | undefined {
  try {
    readIgnition(document);
    return undefined;
  } catch (error) {
    if (error instanceof IgnitionError) return error.message;
    throw error;
  }
}

function versionOf(document: unknown): string {
  return (document as IgnitionConfig).ignition?.version ?? '';
}

/** Without objects and lists that say nothing, which Go writes and we do not. */
function said(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(said);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, member]) => [name, said(member)] as const);
  return Object.fromEntries(
    entries.filter(
      ([name, member]) =>
        !(typeof member === 'object' && member !== null && Object.keys(member).length === 0) &&
        !(name === 'number' && member === 0),
    ),
  );
}

/** Mostly what makes sense, now and then something that does not. */
const rarely = <T>(usual: fc.Arbitrary<T>, ...odd: T[]) =>
  fc.oneof({ weight: 12, arbitrary: usual }, { weight: 1, arbitrary: fc.constantFrom(...odd) });
const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 2 });
const clean = (fields: Record<string, fc.Arbitrary<unknown>>) =>
  fc.record(fields).map(record => JSON.parse(JSON.stringify(record)) as object);

const path = rarely(
  fc.constantFrom('/a', '/b', '/etc/x', '/etc/x/y', '/etc/systemd/system/u.service', '/'),
  'relative',
  '/a/../b',
  '/a//b',
  '/a/',
  '',
  '/./a',
);
const source = rarely(
  fc.constantFrom(
    'data:,text',
    'data:,',
    'data:;base64,QUJD',
    'data:text/plain;charset=utf-8;base64,QUJD',
    'data:,a%20b',
    'data:text/plain,x',
    'https://x/y',
    's3://b/k',
    'tftp://x/y',
    'data:;a="b,c",x',
    'data:x-y/z,1',
  ),
  'data:,a b',
  'data:;base64,QUI',
  'data:,%zz',
  'data',
  'file:///x',
  'data:text,x',
  'data:;base65,QUJD',
  'data:foo/bar,x',
  's3://b/k?versionId=',
  'data:text/plain;x,y',
  'gopher://x',
  'data:;base64,QUJD\n',
  'data:/x,y',
  'data:,a|b',
);
const owner = clean({ id: optional(fc.nat(9)), name: rarely(fc.constant(undefined as string | undefined), 'root') });
const contents = clean({
  source: optional(source),
  verification: rarely(
    fc.constant(undefined as object | undefined),
    { hash: `sha256-${'0'.repeat(64)}` },
    { hash: 'md5-0' },
    { hash: `sha512-${'0'.repeat(64)}` },
  ),
  httpHeaders: rarely(
    fc.constant(undefined as object[] | undefined),
    [{ name: 'h', value: 'v' }],
    [{ name: 'h' }],
    [{ name: '', value: 'v' }],
  ),
});
const mode = rarely(optional(fc.constantFrom(0, 0o644, 0o777)), -1);
const file = clean({
  path,
  mode,
  overwrite: rarely(fc.constant(undefined as boolean | undefined), true, false),
  contents: optional(contents),
  append: rarely(fc.constant(undefined as unknown[] | undefined), [{ source: 'data:,x' }]),
  user: optional(owner),
  group: rarely(fc.constant(undefined as object | undefined), { id: 1, name: 'g' }),
});
const link = clean({ path, target: rarely(fc.constantFrom('/etc/x', '../y', '/a'), ''), hard: optional(fc.boolean()) });
const unitText = rarely(
  fc.constantFrom(
    '[Unit]\nDescription=x\n',
    '',
    '[Service]\nExecStart=a \\\n  b\n[Install]\nWantedBy=x\n',
    '# comment \\\n[Unit\n[Unit]\n',
    '; c\n\n[A]\nB=\n',
    'text before\n[A]\nB=c',
  ),
  '[Unit',
  '[Unit] garbage\n',
  '[Unit]\nno equals sign\n',
  '[Unit]\nname',
  '[A]\nB=c\\\n',
  '[A]\n=c\n',
);
const unit = clean({
  name: rarely(fc.constantFrom('u.service', 'v.timer', 'w@.service'), 'u.txt', 'u'),
  contents: optional(unitText),
  enabled: optional(fc.boolean()),
  mask: optional(fc.boolean()),
  dropins: optional(
    fc.array(clean({ name: rarely(fc.constantFrom('a.conf', 'b.conf'), 'c.txt'), contents: optional(unitText) }), {
      maxLength: 2,
    }),
  ),
});
const user = clean({
  name: fc.constantFrom('core', 'root'),
  sshAuthorizedKeys: optional(fc.array(fc.constantFrom('k1', 'k2', 'k3'), { maxLength: 3 })),
  passwordHash: optional(fc.constant('h')),
  groups: optional(fc.array(fc.constantFrom('g', 'h'), { maxLength: 2 })),
  uid: optional(fc.nat(9)),
});
const partition = clean({
  number: rarely(fc.nat(4), 0),
  label: optional(rarely(fc.constantFrom('l1', 'l2', 'l3'), 'a:b', 'x'.repeat(37))),
  sizeMiB: optional(fc.nat(20)),
  startMiB: optional(fc.nat(20)),
  shouldExist: rarely(fc.constant(undefined as boolean | undefined), false, true),
  guid: rarely(fc.constant(undefined as string | undefined), '', 'no'),
});
const disk = clean({
  device: rarely(fc.constantFrom('/dev/a', '/dev/b'), 'dev', ''),
  wipeTable: optional(fc.boolean()),
  partitions: optional(fc.array(partition, { maxLength: 3 })),
});
const filesystem = clean({
  device: rarely(fc.constantFrom('/dev/a1', '/dev/b1'), 'x'),
  format: rarely(fc.constantFrom('xfs', 'ext4', 'vfat', 'none', undefined), 'ntfs'),
  path: optional(rarely(fc.constant('/var'), 'var')),
  label: optional(rarely(fc.constant('data'), 'x'.repeat(13))),
  options: optional(fc.array(fc.constantFrom('o', 'p'), { maxLength: 2 })),
});
const raid = clean({
  name: fc.constantFrom('r', 's'),
  level: rarely(fc.constantFrom('raid1', 'stripe', '5'), 'raid99', ''),
  devices: rarely<string[]>(fc.constantFrom(['/dev/a', '/dev/b'], ['/dev/c']), [], ['x']),
  spares: rarely(fc.constant(undefined as number | undefined), 1, 0),
});
const luks = clean({
  name: rarely(fc.constantFrom('l', 'm'), 'a/b'),
  device: rarely(optional(fc.constant('/dev/l')), 'x'),
  clevis: rarely(
    fc.constant(undefined as object | undefined),
    { tpm2: true },
    { tang: [{ url: 'https://t', thumbprint: 't' }] },
    { tang: [{ url: 'ftp://t', thumbprint: 't' }] },
    { custom: { pin: 'tpm2', config: '{}' } },
    { custom: { pin: 'x', config: '{}' } },
    { custom: { pin: 'sss' } },
    { custom: { pin: 'sss', config: 'c' }, tpm2: true },
  ),
});
const list = (items: fc.Arbitrary<object>, maxLength: number) => optional(fc.array(items, { maxLength }));

const document: fc.Arbitrary<object> = clean({
  ignition: clean({
    version: rarely(
      fc.constantFrom('3.4.0', '3.4.0', '3.3.0', '3.2.0', '3.1.0', '3.0.0'),
      '3.5.0',
      '3.4',
      '',
      '3.4.1',
      '4.0.0',
      '3.4.0-experimental',
    ),
    config: rarely(
      fc.constant(undefined as object | undefined),
      { merge: [{ source: 'https://x' }] },
      { merge: [{}] },
      { replace: { source: 'https://y' } },
    ),
    proxy: rarely(
      fc.constant(undefined as object | undefined),
      { httpProxy: 'http://p', noProxy: ['a', 'b'] },
      { httpProxy: 'ftp://p' },
      { noProxy: ['b', 'c'] },
    ),
    security: rarely(
      fc.constant(undefined as object | undefined),
      { tls: { certificateAuthorities: [{ source: 'data:,ca' }] } },
      { tls: { certificateAuthorities: [{}] } },
    ),
    timeouts: rarely(fc.constant(undefined as object | undefined), { httpTotal: 3 }),
  }),
  kernelArguments: rarely(
    fc.constant(undefined as object | undefined),
    { shouldExist: ['a', 'b'] },
    { shouldNotExist: ['b'] },
    { shouldExist: ['a', 'a'] },
  ),
  passwd: optional(
    clean({
      users: list(user, 2),
      groups: rarely(
        fc.constant(undefined as object[] | undefined),
        [{ name: 'g', gid: 1 }],
        [{ name: 'g', system: true }],
      ),
    }),
  ),
  storage: optional(
    clean({
      files: list(file, 4),
      links: list(link, 1),
      directories: list(clean({ path, mode }), 2),
      disks: list(disk, 1),
      filesystems: list(filesystem, 1),
      raid: list(raid, 1),
      luks: list(luks, 1),
    }),
  ),
  systemd: optional(clean({ units: list(unit, 2) })),
});
