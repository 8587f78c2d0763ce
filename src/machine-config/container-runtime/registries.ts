import type { KubeObject } from '../../kube/resource.ts';
import type {
  Image,
  ImageContentSourcePolicy,
  ImageDigestMirrorSet,
  ImageMirrors,
  ImageTagMirrorSet,
  RegistrySources,
} from '../../machine-config-api/cluster-config.ts';
import type { IgnitionFile } from '../../machine-config-api/ignition/types.ts';
import { generatedFile } from '../sub-config/generated.ts';
import { POLICY_PATH, policyConf, REGISTRIES_PATH, SEARCH_REGISTRIES } from '../template/files/container-runtime.ts';
import { mergedMirrors } from './mirrors.ts';
import { repositoryOf, type Spared, sparePayload } from './payload.ts';
import { isHost, isMirror, isMirrored, isWithin, scopeProblem } from './scope.ts';

/** Settings of registries that are refused: the object, the field and why. */
export class RegistriesError extends Error {
  override readonly name = 'RegistriesError';
}

/** All that says where images come from (spec 50, section 7). */
export interface RegistrySettings {
  readonly image: Image | undefined;
  readonly contentPolicies: readonly ImageContentSourcePolicy[];
  readonly digestMirrors: readonly ImageDigestMirrorSet[];
  readonly tagMirrors: readonly ImageTagMirrorSet[];
  /** The cluster's own release, where it has one: nodes must be able to pull it whatever is blocked. */
  readonly releaseImage?: string | undefined;
}

/** Files for nodes, and what they do not do. */
export interface Registries {
  readonly files: IgnitionFile[];
  /** Registries that are not blocked though that was asked for. */
  readonly open: readonly string[];
}

const SEARCH_PATH = '/etc/containers/registries.conf.d/01-image-searchRegistries.conf';

/** The files of `99-<pool>-generated-registries`; those that nothing is said about stay the template's. Throws `RegistriesError`. */
export function registriesFiles(settings: RegistrySettings): IgnitionFile[] {
  return registriesOf(settings).files;
}

export function registriesOf(settings: RegistrySettings): Registries {
  const sources = settings.image?.spec?.registrySources ?? {};
  const { insecureRegistries: insecure = [], containerRuntimeSearchRegistries: search = [] } = sources;
  checkSources(sources);
  const { blocked, rejected, accepted, open } = payloadSpared(settings, sources);
  const registries = registryEntries(settings, insecure, blocked);
  const files = [
    ...(registries.length > 0 ? [generatedFile(REGISTRIES_PATH, registriesConf(registries))] : []),
    ...(rejected.length + accepted.length > 0
      ? [generatedFile(POLICY_PATH, policyConf({ blocked: rejected, allowed: accepted }))]
      : []),
    ...(search.length > 0
      ? [generatedFile(SEARCH_PATH, `unqualified-search-registries = ${JSON.stringify(search)}\n`)]
      : []),
  ];
  return { files, open };
}

function checkSources(sources: RegistrySources): void {
  for (const field of FIELDS) {
    for (const scope of sources[field] ?? []) {
      const isSearched = field === 'containerRuntimeSearchRegistries';
      const problem = isSearched && !isHost(scope.replace(/\/+$/, '')) ? 'is no registry' : scopeProblem(scope);
      if (problem !== undefined)
        throw new RegistriesError(`${IMAGE}: spec.registrySources.${field}: ${JSON.stringify(scope)} ${problem}`);
    }
  }
}

function payloadSpared(settings: RegistrySettings, sources: RegistrySources): Spared {
  const { insecureRegistries = [], blockedRegistries = [], allowedRegistries = [] } = sources;
  const { releaseImage } = settings;
  const repository = releaseImage === undefined ? undefined : repositoryOf(releaseImage);
  if (releaseImage !== undefined && repository === undefined)
    throw new RegistriesError(
      `clusterversion version: status.desired.image: ${JSON.stringify(releaseImage)} is no image`,
    );
  const spared = sparePayload(repository, blockedRegistries, allowedRegistries, payload => {
    const entries = registryEntries({ ...settings, tagMirrors: [] }, insecureRegistries, blockedRegistries);
    const isDigest = releaseImage?.includes('@') === true;
    return [...(isDigest ? mirrorsOf(payload, entries) : []), payload];
  });
  const { rejected, accepted } = spared;
  if (rejected.length > 0 && accepted.length > 0 && !(accepted.length === 1 && accepted[0] === repository)) {
    throw new RegistriesError(
      `${IMAGE}: spec.registrySources: only one of AllowedRegistries or BlockedRegistries may be specified`,
    );
  }
  return spared;
}

/** Where an image of this repository is looked for before it is there. */
function mirrorsOf(repository: string, entries: readonly Registry[]): string[] {
  const closest = entries
    .filter(({ scope }) => isWithin(repository, scope))
    .reduce<Registry | undefined>((a, b) => (a === undefined || b.scope.length > a.scope.length ? b : a), undefined);
  if (closest === undefined) return [];
  const [host = ''] = repository.split(/[:/]/);
  const rest = repository.slice(closest.scope.startsWith('*.') ? host.length : closest.scope.length);
  return closest.mirrors.map(({ location }) => location + rest);
}

const IMAGE = 'image.config.openshift.io cluster';
const FIELDS = [
  'insecureRegistries',
  'blockedRegistries',
  'allowedRegistries',
  'containerRuntimeSearchRegistries',
] as const;

interface Mirror {
  readonly location: string;
  readonly pulls: 'digest-only' | 'tag-only';
  isInsecure: boolean;
}

interface Registry {
  /** A host or repository, or `*.domain`. */
  readonly scope: string;
  isInsecure: boolean;
  isBlocked: boolean;
  mirrors: Mirror[];
}

/** Only the closest entry counts for an image, so what holds for a registry is said again for each entry inside of it. */
function registryEntries(
  settings: RegistrySettings,
  insecure: readonly string[],
  blocked: readonly string[],
): Registry[] {
  const entries = new Map<string, Registry>();
  const entryOf = (scope: string): Registry => {
    const entry = entries.get(scope) ?? { scope, isInsecure: false, isBlocked: false, mirrors: [] };
    entries.set(scope, entry);
    return entry;
  };
  const sets = mirrorSets(settings);
  for (const { pulls, source, mirrors, neverContactSource } of sets) {
    const entry = entryOf(source);
    if (neverContactSource) entry.isBlocked = true;
    for (const location of mirrors) entry.mirrors.push({ location, pulls, isInsecure: false });
  }
  for (const scope of [...blocked, ...insecure]) entryOf(scope);
  for (const entry of entries.values()) {
    if (blocked.some(scope => isWithin(entry.scope, scope))) entry.isBlocked = true;
    if (insecure.some(scope => isWithin(entry.scope, scope))) entry.isInsecure = true;
    for (const mirror of entry.mirrors) mirror.isInsecure = insecure.some(scope => isWithin(mirror.location, scope));
  }
  for (const { source } of sets) {
    const { mirrors } = entryOf(source);
    for (const entry of entries.values()) {
      if (entry.scope === source || entry.mirrors.length > 0 || !isWithin(entry.scope, source)) continue;
      if (source.startsWith('*.')) {
        throw new RegistriesError(
          `mirrors of ${JSON.stringify(source)}: what they would be of ${JSON.stringify(entry.scope)} inside of it cannot be said`,
        );
      }
      const rest = entry.scope.slice(source.length);
      entry.mirrors = mirrors.map(mirror => ({ ...mirror, location: mirror.location + rest }));
    }
  }
  checkSame([...entries.values()]);
  return [...entries.values()];
}

/** The container runtime reads no file in which the same place, but for slashes at its end, has two different settings. */
function checkSame(entries: readonly Registry[]): void {
  const seen = new Map<string, Registry>();
  for (const entry of entries) {
    const place = entry.scope.replace(/\/+$/, '');
    const other = seen.get(place) ?? entry;
    seen.set(place, other);
    if (other.isBlocked === entry.isBlocked && other.isInsecure === entry.isInsecure) continue;
    throw new RegistriesError(
      `${IMAGE}: spec.registrySources: ${JSON.stringify(other.scope)} and ${JSON.stringify(entry.scope)} are the same place with different settings`,
    );
  }
}

function mirrorSets({ contentPolicies, digestMirrors, tagMirrors }: RegistrySettings) {
  const check = mirrorCheck();
  const digests = [
    ...digestMirrors.flatMap(set => check(set, 'spec.imageDigestMirrors', set.spec?.imageDigestMirrors)),
    ...contentPolicies.flatMap(set => check(set, 'spec.repositoryDigestMirrors', set.spec?.repositoryDigestMirrors)),
  ];
  const tags = tagMirrors.flatMap(set => check(set, 'spec.imageTagMirrors', set.spec?.imageTagMirrors));
  return [
    ...mergedMirrors(digests).map(set => ({ ...set, pulls: 'digest-only' as const })),
    ...mergedMirrors(tags).map(set => ({ ...set, pulls: 'tag-only' as const })),
  ];
}

/** Lists of mirrors as they are; throws where one is no place, or where they contradict those that came before. */
function mirrorCheck() {
  const policies = new Map<string, string>();
  return (
    { metadata, kind }: KubeObject,
    field: string,
    lists: readonly ImageMirrors[] = [],
  ): readonly ImageMirrors[] => {
    const refused = (problem: string) =>
      new RegistriesError(`${kind ?? 'mirrors'} ${metadata?.name ?? ''}: ${field}: ${problem}`);
    for (const { source, mirrors, mirrorSourcePolicy } of lists) {
      if (!isMirrored(source)) throw refused(`invalid format for source ${JSON.stringify(source)}`);
      const policy = mirrorSourcePolicy || 'AllowContactingSource';
      if ((policies.get(source) ?? policy) !== policy)
        throw refused(`conflicting mirrorSourcePolicy is set for the same source ${JSON.stringify(source)}`);
      policies.set(source, policy);
      for (const mirror of mirrors ?? []) {
        if (!isMirror(mirror)) throw refused(`invalid format for mirror ${JSON.stringify(mirror)}`);
        if (policy === 'NeverContactSource' && mirror === source)
          throw refused(
            `cannot set mirrorSourcePolicy: NeverContactSource if the source ${JSON.stringify(source)} is one of the mirrors`,
          );
      }
    }
    return lists;
  };
}

/** Says nothing that the template's file does not say, but for the registries: any other difference drains nodes (spec 60, 9.3). */
function registriesConf(registries: readonly Registry[]): string {
  const blocks = registries.map(({ scope, isInsecure, isBlocked, mirrors }) =>
    [
      '[[registry]]',
      `  prefix = ${JSON.stringify(scope.startsWith('*.') ? scope : '')}`,
      ...(scope.startsWith('*.') ? [] : [`  location = ${JSON.stringify(scope)}`]),
      ...(isInsecure ? ['  insecure = true'] : []),
      ...(isBlocked ? ['  blocked = true'] : []),
      ...mirrors.flatMap(mirror => [
        '',
        '  [[registry.mirror]]',
        `    location = ${JSON.stringify(mirror.location)}`,
        ...(mirror.isInsecure ? ['    insecure = true'] : []),
        `    pull-from-mirror = ${JSON.stringify(mirror.pulls)}`,
      ]),
    ].join('\n'),
  );
  return `unqualified-search-registries = ${JSON.stringify(SEARCH_REGISTRIES)}\n\n${blocks.join('\n\n')}\n`;
}
