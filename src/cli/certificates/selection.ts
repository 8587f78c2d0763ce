import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { selectableFields } from '../../api/select/selectable.ts';
import { type Selection, type SelectionRequest, selection } from '../../api/select/selection.ts';
import { loadObjects } from '../../inventory/files.ts';
import { isNotFound } from '../../kube/error.ts';
import { listAll } from '../../kube/list.ts';
import type { Kube } from '../../kube/port.ts';
import type { Resource } from '../../kube/resource.ts';
import { type ClusterFlags, namespaceFrom } from '../cluster-flags.ts';
import { UsageError } from '../usage-error.ts';

/** How the verbs of `oc adm ocp-certificates` are told what to work on. */
export interface VerbFlags extends ClusterFlags {
  readonly all?: boolean | undefined;
  readonly selector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  readonly local?: boolean | undefined;
  readonly filename?: readonly string[] | undefined;
  readonly dryRun?: boolean | undefined;
  readonly yes?: boolean | undefined;
  readonly verbose?: boolean | undefined;
  readonly output: string;
}

/** What was asked for, checked before anything is read. */
export interface Selected {
  readonly names: readonly string[];
  readonly namespace: string | undefined;
  readonly labelSelector: string | undefined;
  readonly fieldSelector: string | undefined;
}

const WORDS: Readonly<Record<string, readonly string[]>> = {
  Secret: ['secret', 'secrets'],
  ConfigMap: ['configmap', 'configmaps', 'cm'],
};

export function selectedFrom(
  resource: Resource,
  words: readonly string[],
  flags: VerbFlags,
  contextNamespace: string,
): Selected {
  const known = WORDS[resource.kind] as readonly string[];
  const kindOf = (word: string) => {
    if (!known.includes(word.toLowerCase())) throw new UsageError(`only ${resource.plural} are taken, found "${word}"`);
  };
  const names: string[] = [];
  const [first, ...rest] = words;
  if (first?.includes('/')) {
    for (const word of words) {
      const [kind = '', name = '', ...more] = word.split('/');
      kindOf(kind);
      if (name === '' || more.length > 0) throw new UsageError(`expected ${known[0]}/NAME, found "${word}"`);
      names.push(name);
    }
  } else if (first !== undefined) {
    kindOf(first);
    names.push(...rest);
  }
  const isWide = flags.all === true || flags.selector !== undefined || flags.fieldSelector !== undefined;
  if (flags.filename !== undefined && !flags.local) throw new UsageError('--filename goes with --local');
  if (flags.local && flags.filename === undefined) throw new UsageError('--local needs -f: it asks no cluster');
  if (names.length > 0 && isWide)
    throw new UsageError('names and --all or a selector contradict each other: give one of them');
  if (names.length === 0 && !isWide && !flags.local) {
    throw new UsageError(`name the ${resource.plural}, or give --all or a selector`);
  }
  if (names.length > 0 && flags.allNamespaces)
    throw new UsageError('a name needs one namespace: -A goes with --all or a selector');
  const namespace = namespaceFrom(flags) ?? (flags.allNamespaces || flags.local ? undefined : contextNamespace);
  return { names, namespace, labelSelector: flags.selector, fieldSelector: flags.fieldSelector };
}

/** The selected objects; names that do not exist are told together. */
export async function readSelected<T extends Secret | ConfigMap>(
  kube: Kube,
  resource: Resource<T>,
  { names, namespace, labelSelector, fieldSelector }: Selected,
): Promise<{ objects: T[]; missing: string[] }> {
  if (names.length === 0) {
    const { items } = await listAll(kube, resource, { namespace, labelSelector, fieldSelector });
    return { objects: items, missing: [] };
  }
  const objects: T[] = [];
  const missing: string[] = [];
  for (const name of names) {
    try {
      objects.push(await kube.get(resource, { namespace: namespace ?? 'default', name }));
    } catch (error) {
      if (!isNotFound(error)) throw error;
      missing.push(`${resource.plural} "${name}" not found in namespace ${namespace ?? 'default'}`);
    }
  }
  return { objects, missing };
}

/** The objects of files, for `--local`, selected as the API would; names that are not there are told together. */
export function readLocal<T extends Secret | ConfigMap>(
  { kind, group, plural }: Resource<T>,
  flags: VerbFlags,
  { names, namespace, labelSelector, fieldSelector }: Selected,
): { objects: T[]; missing: string[]; warnings: readonly string[] } {
  const { matches } = selectionOf({ labelSelector, fieldSelector, selectable: selectableFields(group, plural) });
  const { objects, warnings } = loadObjects(flags.filename ?? []);
  const found = objects.filter(
    object =>
      object.kind === kind &&
      (names.length === 0 || names.includes(object.metadata.name)) &&
      (namespace === undefined || object.metadata.namespace === namespace) &&
      matches(object),
  ) as unknown as T[];
  const missing = names
    .filter(name => !found.some(({ metadata }) => metadata?.name === name))
    .map(
      name =>
        `${plural} "${name}" not found in the files${namespace === undefined ? '' : ` in namespace ${namespace}`}`,
    );
  return { objects: found, missing, warnings };
}

function selectionOf(request: SelectionRequest): Selection {
  try {
    return selection(request);
  } catch (error) {
    throw new UsageError(`--selector or --field-selector cannot be read: ${(error as Error).message}`);
  }
}
