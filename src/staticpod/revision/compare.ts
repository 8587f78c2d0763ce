import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { listText } from '../../controller/aggregate-error.ts';
import { semanticallyEqual } from '../../kube/equality.ts';
import { CONFIG_MAPS, type Resource, SECRETS } from '../../kube/resource.ts';
import type { ListedObject, ObjectLists } from '../config.ts';
import type { ContentCheck } from '../loadable.ts';
import { notFound, type Objects } from '../objects.ts';
import { copyName } from './number.ts';

/** A revisioned object and its copy in one revision, as far as they exist. */
export interface RevisionedPair extends ListedObject {
  readonly kind: 'configmap' | 'secret';
  readonly source: ConfigMap | Secret | undefined;
  readonly copy: ConfigMap | Secret | undefined;
  /** Why no process could load the source. It counts as what its copy is, so that what runs goes on. */
  readonly problem?: string | undefined;
}

export type Comparison =
  | { readonly outcome: 'current' }
  /** Nothing can be made as long as these are missing. */
  | { readonly outcome: 'source missing'; readonly reason: string }
  | { readonly outcome: 'changed'; readonly reason: string };

/**
 * Whether the copies of a revision are what the sources are now. Only `data` counts (spec 30, 8.3). Required sources are
 * looked at first, all of them (T03).
 */
export function compareRevision(revision: number, pairs: readonly RevisionedPair[]): Comparison {
  const required = pairs.filter(({ optional }) => !optional);
  const unusable = required.filter(({ problem, copy }) => problem !== undefined && copy === undefined);
  if (unusable.length > 0) return { outcome: 'source missing', reason: unusable.map(unusableText).join(', ') };
  const missing = required.filter(({ source }) => source === undefined);
  if (missing.length > 0) {
    return { outcome: 'source missing', reason: listText(missing.map(pair => notFound(resourceOf(pair), pair.name))) };
  }
  const uncopied = required.find(({ copy }) => copy === undefined);
  if (uncopied !== undefined) {
    const reason = notFound(resourceOf(uncopied), copyName(uncopied.name, revision)).message;
    return { outcome: 'changed', reason };
  }
  const changed = pairs.filter(
    ({ source, copy, problem }) => problem === undefined && !semanticallyEqual(source?.data, copy?.data),
  );
  if (changed.length === 0) return { outcome: 'current' };
  const secretsFirst = [...changed.filter(isSecret), ...changed.filter(pair => !isSecret(pair))];
  return { outcome: 'changed', reason: secretsFirst.map(changeText).join(',') };
}

/** Reads sources and copies, ConfigMaps before Secrets. */
export async function readPairs(
  objects: Objects,
  namespace: string,
  { configMaps, secrets }: ObjectLists,
  revision: number,
  check: ContentCheck = () => undefined,
): Promise<RevisionedPair[]> {
  const pair = async (kind: RevisionedPair['kind'], listed: ListedObject): Promise<RevisionedPair> => {
    const resource = resourceOf({ kind });
    const source = await objects.get(resource, { namespace, name: listed.name });
    const copy = await objects.get(resource, { namespace, name: copyName(listed.name, revision) });
    return { ...listed, kind, source, copy, problem: source && check(source, kind) };
  };
  return [
    ...(await Promise.all(configMaps.map(listed => pair('configmap', listed)))),
    ...(await Promise.all(secrets.map(listed => pair('secret', listed)))),
  ];
}

export function unusableText({ kind, name, problem }: RevisionedPair): string {
  return `${kind}/${name} cannot be loaded: ${problem}`;
}

function changeText({ kind, name, optional, copy }: RevisionedPair): string {
  const verb = Object.keys(copy?.data ?? {}).length === 0 ? 'been created' : 'changed';
  return `${optional ? 'optional' : 'required'} ${kind}/${name} has ${verb}`;
}

function isSecret({ kind }: RevisionedPair): boolean {
  return kind === 'secret';
}

function resourceOf({ kind }: Pick<RevisionedPair, 'kind'>): Resource<ConfigMap | Secret> {
  return kind === 'secret' ? SECRETS : CONFIG_MAPS;
}
