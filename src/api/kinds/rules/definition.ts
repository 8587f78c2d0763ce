import type {
  CustomResourceDefinition,
  CustomResourceDefinitionCondition,
} from 'kubernetes-types/apiextensions/v1.d.ts';
import { formatRfc3339 } from '../../../kube/time.ts';
import { unappliedRules } from '../../schema/cel/rules.ts';
import { defaultCrd, validateCrd } from '../../schema/crd.ts';
import type { Schema } from '../../schema/schema.ts';
import { quote } from '../../status.ts';
import type { Fields, Rules } from '../kind.ts';

/** Where definitions are stored. */
export const DEFINITION_BUCKET = 'apiextensions.k8s.io/customresourcedefinitions';

/** CustomResourceDefinitions. Their status is kept by the controller that puts them into service. */
export const definitionRules: Rules = {
  generation: true,
  needsResourceVersion: true,
  statusWritesMetadata: true,
  prepareCreate: object =>
    completed({
      ...object,
      status: { conditions: [], acceptedNames: NO_NAMES, storedVersions: storageVersions(object) },
    }),
  prepareUpdate: (object, old) => withStoredVersions(completed(object), old),
  beginDelete: (object, { now }) => terminating(object, now),
  checkCreate: object => validateCrd(definitionOf(object)),
  checkUpdate: (object, old) => validateCrd(definitionOf(object), definitionOf(old)),
  warnings: ruleWarnings,
};

/** Whoever relies on a rule must know that it is not applied here. */
function ruleWarnings(object: Fields): string[] {
  return (definitionOf(object).spec?.versions ?? []).flatMap(({ name, schema }) =>
    unappliedRules((schema?.openAPIV3Schema ?? {}) as Schema).map(
      ({ rule, functions }) =>
        `version ${quote(name)}: the validation rule ${quote(rule)} is not enforced here: unknown function ${functions.join(', ')}`,
    ),
  );
}

/** Keeps a definition until the last of its objects is gone. */
export const CLEANUP_FINALIZER = 'customresourcecleanup.apiextensions.k8s.io';

function terminating(object: Fields, now: Date): Fields {
  const finalizers = [...new Set([...(object.metadata?.finalizers ?? []), CLEANUP_FINALIZER])];
  const marked = withDefinitionCondition(definitionOf(object), now, {
    type: 'Terminating',
    status: 'True',
    reason: 'InstanceDeletionPending',
    message: 'CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon',
  });
  return { ...(marked as unknown as Fields), metadata: { ...object.metadata, finalizers } };
}

/** The definition with a condition set; its transition time changes only with its status. */
export function withDefinitionCondition(
  definition: CustomResourceDefinition,
  now: Date,
  condition: Omit<CustomResourceDefinitionCondition, 'lastTransitionTime'>,
): CustomResourceDefinition {
  const conditions = definition.status?.conditions ?? [];
  const before = conditions.find(({ type }) => type === condition.type);
  const since = before?.status === condition.status ? before.lastTransitionTime : undefined;
  const next = { ...condition, lastTransitionTime: since ?? formatRfc3339(now) };
  const others = conditions.filter(({ type }) => type !== condition.type);
  return { ...definition, status: { ...definition.status, conditions: [...others, next] } };
}

const NO_NAMES = { plural: '', kind: '' };

function completed(object: Fields): Fields {
  return defaultCrd(definitionOf(object)) as unknown as Fields;
}

/** A version that objects have ever been stored in stays listed until somebody says that none are left. */
function withStoredVersions(object: Fields, old: Fields): Fields {
  const listed = definitionOf(old).status?.storedVersions ?? [];
  const all = [...new Set([...listed, ...storageVersions(object)])];
  if (all.length === listed.length) return object;
  return { ...object, status: { ...(object.status as object | undefined), storedVersions: all } };
}

function storageVersions(object: Fields): string[] {
  return (definitionOf(object).spec?.versions ?? []).filter(version => version.storage).map(version => version.name);
}

function definitionOf(object: Fields): CustomResourceDefinition {
  return object as unknown as CustomResourceDefinition;
}
