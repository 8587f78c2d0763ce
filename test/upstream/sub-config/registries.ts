import { registriesFiles } from '../../../src/machine-config/container-runtime/registries.ts';
import { policyConf } from '../../../src/machine-config/template/files/container-runtime.ts';
import { attempt, canonical, firstDifference, plain, same, unlike, verdicts } from '../difference.ts';
import { type Difference, type Judged, judged } from '../judged.ts';
import { distinct, type Random } from '../random.ts';
import { readToml, textsOf } from './files.ts';

const REGISTRIES_BASE = "unqualified-search-registries = ['registry.access.redhat.com', 'docker.io']\n";
const RELEASE = `quay.io/openshift-release-dev/ocp-release@sha256:${'ab'.repeat(32)}`;

interface Input {
  Image: object;
  Release: string;
  ICSP: object[];
  IDMS: object[];
  ITMS: object[];
}

interface Answered {
  err: string;
  registries: string;
  policy: string;
  search: string;
}

/** The image settings of a cluster become the same registries.conf and policy.json, or are refused by both. */
function registries(name: string, odd: number): Judged {
  return judged<Input>({
    name,
    program: 'mcodiff',
    op: 'registries',
    generate: r => {
      const sets = (probability: number, field: string, hasPolicy: boolean) =>
        r.chance(probability) ? mirrorSets(r, odd, field, hasPolicy) : [];
      return {
        Image: { metadata: { name: 'cluster' }, spec: { registrySources: sources(r, odd) } },
        Release: RELEASE,
        ICSP: sets(0.4, 'repositoryDigestMirrors', false),
        IDMS: sets(0.5, 'imageDigestMirrors', true),
        ITMS: sets(0.4, 'imageTagMirrors', true),
      };
    },
    question: input => ({ ...input, RegBase: REGISTRIES_BASE, PolicyBase: policyConf(), Refs: [] }),
    keep: ({ out, err }) => {
      const { err: refusal, registries: text, policy, search } = out as Answered;
      return { out: { err: refusal, registries: text, policy, search }, err };
    },
    compare: ({ Image, ICSP, IDMS, ITMS }, { out, err }) => {
      if (err !== undefined) return [{ class: `upstream: ${plain(err)}`, mine: undefined, theirs: err }];
      const theirs = out as Answered;
      const settings = { image: Image, contentPolicies: ICSP, digestMirrors: IDMS, tagMirrors: ITMS };
      const mine = attempt(() => textsOf(registriesFiles(settings as Parameters<typeof registriesFiles>[0])));
      const differences = verdicts(mine, theirs.err || undefined, theirs);
      return differences.length > 0 || mine.kind !== 'value' ? differences : unlikeFiles(mine.value, theirs);
    },
  });
}

function unlikeFiles(mine: Readonly<Record<string, string>>, theirs: Answered): Difference[] {
  const policy = (text: string | undefined) => canonical(JSON.parse(text || policyConf()));
  const [ours, their] = [policy(mine['/etc/containers/policy.json']), policy(theirs.policy)];
  const where = firstDifference(ours, their).replace(/(docker|atomic)\..*/, '$1');
  const search = (text: string | undefined) => (text ? (readToml(text)['unqualified-search-registries'] ?? []) : []);
  return [
    ...unlike(`policy.json at ${where}`, ours, their),
    ...unlikeRegistries(registriesIn(mine['/etc/containers/registries.conf']), registriesIn(theirs.registries)),
    ...unlike(
      'search registries',
      search(mine['/etc/containers/registries.conf.d/01-image-searchRegistries.conf']),
      search(theirs.search),
    ),
  ];
}

interface Registry {
  scope: string;
  mirrors: object[];
}

function unlikeRegistries(mine: readonly Registry[], theirs: readonly Registry[]): Difference[] {
  const ordered = (all: readonly Registry[]) =>
    all.map(registry => ({ ...registry, mirrors: registry.mirrors.map(mirror => JSON.stringify(mirror)).sort() }));
  const isOrderOnly = same(ordered(mine), ordered(theirs));
  const where = isOrderOnly ? 'only the order of mirrors' : `at ${firstDifference(mine, theirs)}`;
  return unlike(`registries.conf: ${where}`, mine, theirs);
}

/** The registries of a file by scope, defaults filled in. */
function registriesIn(text: string | undefined): Registry[] {
  const all = (readToml(text ?? '').registry ?? []) as Record<string, unknown>[];
  return all
    .map(({ prefix = '', location = '', blocked = false, insecure = false, mirror = [] }) => ({
      scope: String(prefix || location),
      prefix,
      location,
      blocked,
      insecure,
      mirrors: (mirror as Record<string, unknown>[]).map(each => ({
        location: each.location,
        insecure: each.insecure ?? false,
        pull: each['pull-from-mirror'] ?? '',
      })),
    }))
    .sort((a, b) => (a.scope < b.scope ? -1 : 1));
}

const SCOPES = ['a.io', 'b.io', 'a.io/x', 'a.io/x/y', 'sub.b.io', 'b.io:5000', 'c.d.io/r', 'a.io/x/y/z'];
const WILDCARDS = ['*.b.io', '*.d.io', '*.sub.b.io'];
const ODD_SCOPES = [
  ...'* *.b.io/x a.io/* a.io:x A.io a.io/X a.io/x@sha256:00 a.io/x:tag b.io:5000/x [::1]:5000 localhost'.split(' '),
  ...'a_b.io -a.io a.io/x//y a.io/'.split(' '),
  '',
  'a io',
];
const MIRRORS = ['m1.io', 'm2.io/x', 'm3.io', 'a.io', 'b.io/k', 'm.b.io'];
const ODD_MIRRORS = ['*.m.io', 'm io', '', 'm.io:x'];

function scope(r: Random, odd: number): string {
  return r.pick([...SCOPES, ...(r.chance(0.3) ? WILDCARDS : []), ...(r.chance(odd) ? ODD_SCOPES : [])]);
}

function sources(r: Random, odd: number): object {
  const list = r.int(3);
  const scopes = (most: number) => r.list(most, () => scope(r, odd));
  const search = () => r.pick(['s1.io', 's2.io', ...(r.chance(odd) ? ['*.x.io'] : [])]);
  return {
    ...(r.chance(0.4) && { insecureRegistries: scopes(2) }),
    ...((list === 1 || r.chance(odd)) && { blockedRegistries: scopes(3) }),
    ...((list === 2 || r.chance(odd)) && { allowedRegistries: scopes(3) }),
    ...(r.chance(0.3) && { containerRuntimeSearchRegistries: r.list(2, search) }),
  };
}

function mirrorSets(r: Random, odd: number, field: string, hasPolicy: boolean): object[] {
  const mirrors = () => ({
    source: scope(r, odd),
    ...(r.chance(0.95) && {
      mirrors: r.list(3, () => r.pick([...MIRRORS, ...(r.chance(odd) ? ODD_MIRRORS : [])])),
    }),
    ...(hasPolicy && r.chance(0.2) && { mirrorSourcePolicy: r.pick(['NeverContactSource', 'AllowContactingSource']) }),
  });
  const sets = r.list(2, () => ({
    metadata: { name: r.pick(['s1', 's2', 's3']) },
    spec: { [field]: r.list(2, mirrors) },
  }));
  return distinct(sets, ({ metadata }) => metadata.name).sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
}

export const REGISTRIES: readonly Judged[] = [registries('registries', 0), registries('registries, odd scopes', 0.15)];
