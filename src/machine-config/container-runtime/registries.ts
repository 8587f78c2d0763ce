import type { KubeObject } from '../../kube/resource.ts';
import type {
  Image,
  ImageContentSourcePolicy,
  ImageDigestMirrorSet,
  ImageTagMirrorSet,
} from '../../machine-config-api/cluster-config.ts';
import type { IgnitionFile } from '../../machine-config-api/ignition/types.ts';
import { generatedFile } from '../sub-config/generated.ts';
import { POLICY_PATH, policyConf, REGISTRIES_PATH, SEARCH_REGISTRIES } from '../template/files/container-runtime.ts';
import { mergedMirrors } from './mirrors.ts';

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
}

const SEARCH_PATH = '/etc/containers/registries.conf.d/01-image-searchRegistries.conf';

/** The files of `99-<pool>-generated-registries`; those that nothing is said about stay the template's. Throws `RegistriesError`. */
export function registriesFiles(settings: RegistrySettings): IgnitionFile[] {
  const {
    insecureRegistries: insecure = [],
    blockedRegistries: blocked = [],
    allowedRegistries: allowed = [],
    containerRuntimeSearchRegistries: search = [],
  } = settings.image?.spec?.registrySources ?? {};
  if (allowed.length > 0 && blocked.length > 0) {
    throw new RegistriesError(
      `${IMAGE}: spec.registrySources: allowedRegistries and blockedRegistries exclude each other`,
    );
  }
  for (const [field, scopes] of Object.entries({ insecure, blocked, allowed, search })) {
    const bad = scopes.find(scope => !isScope(scope) || (field === 'search' && scope.startsWith('*')));
    if (bad !== undefined)
      throw new RegistriesError(`${IMAGE}: ${FIELDS[field]}: ${JSON.stringify(bad)} is no registry`);
  }
  const registries = registryEntries(settings, insecure, blocked);
  return [
    ...(registries.length > 0 ? [generatedFile(REGISTRIES_PATH, registriesConf(registries))] : []),
    ...(blocked.length + allowed.length > 0 ? [generatedFile(POLICY_PATH, policyConf({ blocked, allowed }))] : []),
    ...(search.length > 0
      ? [generatedFile(SEARCH_PATH, `unqualified-search-registries = ${JSON.stringify(search)}\n`)]
      : []),
  ];
}

const IMAGE = 'image.config.openshift.io cluster';
const FIELDS: Readonly<Record<string, string>> = {
  insecure: 'spec.registrySources.insecureRegistries',
  blocked: 'spec.registrySources.blockedRegistries',
  allowed: 'spec.registrySources.allowedRegistries',
  search: 'spec.registrySources.containerRuntimeSearchRegistries',
};

/** A host, with a port and a path if need be; or all hosts below a domain. */
const SCOPE = /^(?:\*\.[a-zA-Z0-9.-]+|(?:[a-zA-Z0-9.-]+|\[[0-9a-fA-F:]+\])(?::\d{1,5})?(?:\/[a-zA-Z0-9._/-]+)?)$/;

function isScope(scope: string): boolean {
  return SCOPE.test(scope);
}

interface Registry {
  /** A host or repository, or `*.domain`. */
  readonly scope: string;
  isInsecure: boolean;
  isBlocked: boolean;
  readonly mirrors: { readonly location: string; readonly pulls: 'digest-only' | 'tag-only'; isInsecure: boolean }[];
}

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
  for (const { pulls, sets } of mirrorSets(settings)) {
    for (const { source, mirrors, neverContactSource } of sets) {
      const entry = entryOf(source);
      if (neverContactSource) entry.isBlocked = true;
      for (const location of mirrors) entry.mirrors.push({ location, pulls, isInsecure: false });
    }
  }
  // Only the closest entry counts for an image, so what holds for a registry is said again for each entry inside of it.
  for (const scope of [...blocked, ...insecure]) entryOf(scope);
  for (const entry of entries.values()) {
    if (blocked.some(scope => isWithin(entry.scope, scope))) entry.isBlocked = true;
    if (insecure.some(scope => isWithin(entry.scope, scope))) entry.isInsecure = true;
    for (const mirror of entry.mirrors) mirror.isInsecure = insecure.some(scope => isWithin(mirror.location, scope));
  }
  return [...entries.values()];
}

function mirrorSets({ contentPolicies, digestMirrors, tagMirrors }: RegistrySettings) {
  const digests = [
    ...byName(digestMirrors).flatMap(set => checked(set, 'spec.imageDigestMirrors', set.spec?.imageDigestMirrors)),
    ...byName(contentPolicies).flatMap(set =>
      checked(set, 'spec.repositoryDigestMirrors', set.spec?.repositoryDigestMirrors),
    ),
  ];
  const tags = byName(tagMirrors).flatMap(set => checked(set, 'spec.imageTagMirrors', set.spec?.imageTagMirrors));
  return [
    { pulls: 'digest-only' as const, sets: mergedMirrors(digests) },
    { pulls: 'tag-only' as const, sets: mergedMirrors(tags) },
  ];
}

function byName<T extends KubeObject>(objects: readonly T[]): T[] {
  return objects.toSorted((a, b) => ((a.metadata?.name ?? '') < (b.metadata?.name ?? '') ? -1 : 1));
}

/** What is written into a file on every node must not be able to say anything else than a place. */
function checked<T extends { source: string; mirrors?: readonly string[] }>(
  { metadata, kind }: KubeObject,
  field: string,
  lists: readonly T[] = [],
): readonly T[] {
  for (const { source, mirrors = [] } of lists) {
    const bad = [source, ...mirrors].find(place => !isScope(place));
    if (bad === undefined) continue;
    const object = `${kind ?? 'mirrors'} ${metadata?.name ?? ''}`;
    throw new RegistriesError(`${object}: ${field}: ${JSON.stringify(bad)} is no registry or repository`);
  }
  return lists;
}

/** Whether one place is inside of another one, or the same. */
function isWithin(inner: string, outer: string): boolean {
  if (inner === outer || inner.startsWith(`${outer}/`)) return true;
  if (!outer.startsWith('*.')) return false;
  const [host = ''] = inner.split(/[/:]/);
  return host.endsWith(outer.slice(1));
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
