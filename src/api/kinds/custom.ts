import type { CustomResourceDefinition } from 'kubernetes-types/apiextensions/v1.d.ts';
import type { KubeObject } from '../../kube/resource.ts';
import { customPrinter } from '../print/custom.ts';
import { type CrdVersion, crdVersions } from '../schema/crd-version.ts';
import { customSelectableFields } from '../select/selectable.ts';
import { standardSubresources } from './builtin.ts';
import { ALL_VERBS, type Conversion, type Kind } from './kind.ts';
import { compareVersions } from './version-order.ts';

/** The kinds a CustomResourceDefinition brings, one for each served version. */
export function customKinds(definition: CustomResourceDefinition, definedAt: number): Kind[] {
  const versions = crdVersions(definition);
  const storage = versions.find(version => version.storage);
  if (storage === undefined) throw new Error(`${definition.metadata?.name} has no storage version`);
  return versions.filter(version => version.served).map(version => customKind(definition, version, storage, definedAt));
}

function customKind(
  definition: CustomResourceDefinition,
  version: CrdVersion,
  storage: CrdVersion,
  definedAt: number,
): Kind {
  const { group, names, scope } = definition.spec;
  const accepted = definition.status?.acceptedNames ?? names;
  return {
    group,
    version: version.name,
    kind: names.kind,
    listKind: names.listKind ?? `${names.kind}List`,
    plural: names.plural,
    singular: accepted.singular ?? names.kind.toLowerCase(),
    shortNames: accepted.shortNames ?? [],
    categories: accepted.categories ?? [],
    namespaced: scope === 'Namespaced',
    verbs: ALL_VERBS,
    bucket: `${group}/${names.plural}`,
    schema: version.schema,
    rules: { generation: true, needsResourceVersion: true },
    status: version.status,
    scale: version.scale,
    subresources: standardSubresources(version.status, version.scale),
    printer: customPrinter(
      definition.spec.versions.find(({ name }) => name === version.name)?.additionalPrinterColumns,
    ),
    selectable: customSelectableFields(version.selectableFields),
    conversion: version.name === storage.name ? undefined : relabelled(group, version.name, storage.name),
    custom: {
      definitionUid: definition.metadata?.uid ?? '',
      storageVersion: storage.name,
      definedAt,
      deprecationWarning: version.deprecated ? deprecationWarning(definition, version) : undefined,
    },
  };
}

function deprecationWarning({ spec }: CustomResourceDefinition, version: CrdVersion): string {
  if (version.deprecationWarning !== undefined) return version.deprecationWarning;
  const { group, names } = spec;
  const better = spec.versions
    .filter(other => other.served && other.deprecated !== true)
    .map(({ name }) => name)
    .filter(name => compareVersions(name, version.name) < 0)
    .sort(compareVersions)[0];
  const instead = better === undefined ? '' : `; use ${group}/${better} ${names.kind}`;
  return `${group}/${version.name} ${names.kind} is deprecated${instead}`;
}

/** Versions differ in what they say of themselves and in their schema; there are no conversion webhooks. */
function relabelled(group: string, version: string, storage: string): Conversion {
  const as = (apiVersion: string) => (object: KubeObject) => ({ ...object, apiVersion });
  return { toStored: as(`${group}/${storage}`), fromStored: as(`${group}/${version}`) };
}
