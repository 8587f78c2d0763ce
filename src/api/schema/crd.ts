import type { CustomResourceDefinition } from 'kubernetes-types/apiextensions/v1.d.ts';
import { Budget } from './budget.ts';
import { MAX_COMPILED_STEPS } from './crd-patterns.ts';
import { schemaErrors } from './crd-schema.ts';
import { type CrdVersionInput, columnErrors, scaleErrors, selectableFieldErrors } from './crd-version-rules.ts';
import { type FieldError, forbidden, invalid, required, unsupported } from './field-error.ts';
import { isObject, sameJson } from './json.ts';
import { dns1035Label, dnsSubdomain } from './name.ts';
import type { JsonObject } from './schema.ts';

/** A definition with the names and the conversion that the server fills in. Call before `validateCrd`. */
export function defaultCrd<T extends CustomResourceDefinition>(crd: T): T {
  if (!isObject(crd.spec)) return crd;
  const names = crd.spec.names ?? {};
  const kind = names.kind ?? '';
  const storage = (crd.spec.versions ?? []).find(version => version.storage)?.name;
  const stored = crd.status?.storedVersions ?? [];
  return {
    ...crd,
    spec: {
      ...crd.spec,
      conversion: crd.spec.conversion ?? { strategy: 'None' },
      names: {
        ...names,
        ...(kind === ''
          ? {}
          : { singular: names.singular || kind.toLowerCase(), listKind: names.listKind || `${kind}List` }),
      },
    },
    ...(stored.length > 0 || storage === undefined ? {} : { status: { ...crd.status, storedVersions: [storage] } }),
  };
}

/** Everything wrong with a CustomResourceDefinition; with the old one, also what an update may not change. */
export function validateCrd(crd: CustomResourceDefinition, old?: CustomResourceDefinition): FieldError[] {
  const spec = (isObject(crd.spec) ? crd.spec : {}) as Spec;
  const errors = [
    ...nameErrors(crd, spec),
    ...groupErrors(spec.group ?? ''),
    ...scopeErrors(spec.scope ?? ''),
    ...namesErrors(spec.names ?? {}),
    ...versionsErrors(spec),
    ...conversionErrors(spec.conversion),
    ...approvalErrors(crd, spec.group ?? '', old),
  ];
  if (spec.preserveUnknownFields === true) {
    errors.push(
      invalid(
        'spec.preserveUnknownFields',
        true,
        'cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead',
      ),
    );
  }
  if (old === undefined) return errors;
  return [...errors, ...updateErrors(spec, old), ...storedVersionErrors(spec, old.status?.storedVersions ?? [])];
}

/** Decoded, so types are right, but anything may be missing. */
interface Spec {
  readonly group?: string;
  readonly scope?: string;
  readonly names?: Names;
  readonly versions?: readonly CrdVersionInput[];
  readonly conversion?: JsonObject;
  readonly preserveUnknownFields?: boolean;
}

interface Names {
  readonly plural?: string;
  readonly singular?: string;
  readonly kind?: string;
  readonly listKind?: string;
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
}

function nameErrors(crd: CustomResourceDefinition, { names, group }: Spec): FieldError[] {
  const name = crd.metadata?.name ?? '';
  if (name === `${names?.plural ?? ''}.${group ?? ''}`) return [];
  return [invalid('metadata.name', name, 'must be spec.names.plural+"."+spec.group')];
}

function groupErrors(group: string): FieldError[] {
  if (group === '') return [required('spec.group')];
  const faults = dnsSubdomain(group);
  if (faults.length > 0) return [invalid('spec.group', group, faults.join(','))];
  return group.includes('.') ? [] : [invalid('spec.group', group, 'should be a domain with at least one dot')];
}

function scopeErrors(scope: string): FieldError[] {
  if (scope === '') return [required('spec.scope')];
  const scopes = ['Cluster', 'Namespaced'];
  return scopes.includes(scope) ? [] : [unsupported('spec.scope', scope, scopes)];
}

function namesErrors(names: Names): FieldError[] {
  const { kind = '', listKind = '', shortNames = [], categories = [] } = names;
  const errors: FieldError[] = [];
  for (const field of ['plural', 'singular', 'kind', 'listKind'] as const) {
    const name = names[field] ?? '';
    const mixed = field === 'kind' || field === 'listKind';
    if (name === '') errors.push(required(`spec.names.${field}`));
    else errors.push(...labelErrors(name, `spec.names.${field}`, mixed));
  }
  shortNames.forEach((name, index) => errors.push(...labelErrors(name, `spec.names.shortNames[${index}]`, false)));
  categories.forEach((name, index) => errors.push(...labelErrors(name, `spec.names.categories[${index}]`, false)));
  if (kind !== '' && kind === listKind) {
    errors.push(invalid('spec.names.listKind', listKind, 'kind and listKind may not be the same'));
  }
  return errors;
}

function labelErrors(name: string, path: string, mixedCase: boolean): FieldError[] {
  const faults = dns1035Label(mixedCase ? name.toLowerCase() : name);
  if (faults.length === 0) return [];
  const prefix = mixedCase ? 'may have mixed case, but should otherwise match: ' : '';
  return [invalid(path, name, prefix + faults.join(','))];
}

function versionsErrors({ versions = [] }: Spec): FieldError[] {
  const budget = new Budget(MAX_COMPILED_STEPS);
  const errors = versions.flatMap((version, index) => versionErrors(version, index, versions.length === 1, budget));
  const names = versions.map(version => version.name ?? '');
  if (new Set(names).size < names.length)
    errors.push(invalid('spec.versions', names, 'must contain unique version names'));
  if (versions.filter(version => version.storage === true).length !== 1) {
    errors.push(invalid('spec.versions', names, 'must have exactly one version marked as storage version'));
  }
  return errors;
}

/** A single version is reported as if its fields stood at the top, where they are in the server's own form. */
function versionErrors(version: CrdVersionInput, index: number, single: boolean, budget: Budget): FieldError[] {
  const path = `spec.versions[${index}]`;
  const base = single ? 'spec' : path;
  const { name = '', schema, subresources, additionalPrinterColumns = [], selectableFields = [] } = version;
  const errors = dns1035Label(name).map(fault => invalid(`${path}.name`, name, fault));
  errors.push(...deprecationErrors(version, path));
  const openApi = schema?.openAPIV3Schema;
  if (openApi === undefined) {
    errors.push(required(`${path}.schema.openAPIV3Schema`, 'schemas are required'));
  } else {
    errors.push(...schemaErrors(openApi, `${base}.${single ? 'validation' : 'schema'}.openAPIV3Schema`, budget));
  }
  errors.push(...scaleErrors(subresources?.scale, `${base}.subresources`));
  additionalPrinterColumns.forEach((column, at) => {
    errors.push(...columnErrors(column, `${base}.additionalPrinterColumns[${at}]`));
  });
  errors.push(...selectableFieldErrors(selectableFields, openApi, `${base}.selectableFields`));
  return errors;
}

const LONGEST_WARNING = 256;

function deprecationErrors({ deprecated = false, deprecationWarning }: CrdVersionInput, path: string): FieldError[] {
  if (deprecationWarning === undefined) return [];
  const wrong = (detail: string) => [invalid(`${path}.deprecationWarning`, deprecationWarning, detail)];
  if (!deprecated) return wrong('can only be set for deprecated versions');
  if (deprecationWarning === '') return wrong('must not be an empty string');
  if (deprecationWarning.length > LONGEST_WARNING) return wrong(`must be <= ${LONGEST_WARNING} characters long`);
  const index = deprecationWarning.search(/\p{C}/u);
  return index < 0
    ? []
    : wrong(`must only contain printable UTF-8 characters; non-printable character found at index ${index}`);
}

/** Webhooks are part of what a definition may say, although no embedded server calls them. */
function conversionErrors(conversion: JsonObject | undefined): FieldError[] {
  const { strategy, webhook } = conversion ?? {};
  if (strategy === 'Webhook' && webhook === undefined) {
    return [required('spec.conversion.webhookClientConfig', 'required when strategy is set to Webhook')];
  }
  if (strategy === 'None' && webhook !== undefined) {
    return [forbidden('spec.conversion.webhookClientConfig', 'should not be set when strategy is not set to Webhook')];
  }
  return [];
}

const APPROVAL = 'api-approved.kubernetes.io';

/** Groups of the Kubernetes community need a word that somebody reviewed the definition. */
function approvalErrors(
  crd: CustomResourceDefinition,
  group: string,
  old: CustomResourceDefinition | undefined,
): FieldError[] {
  if (!/(^|\.)(k8s|kubernetes)\.io$/.test(group)) return [];
  const approval = crd.metadata?.annotations?.[APPROVAL] ?? '';
  if (old !== undefined && approval === (old.metadata?.annotations?.[APPROVAL] ?? '')) return [];
  const path = `metadata.annotations[${APPROVAL}]`;
  if (approval === '') {
    const detail = `protected groups must have approval annotation "${APPROVAL}", see https://github.com/kubernetes/enhancements/pull/1111`;
    return [required(path, detail)];
  }
  if (approval.startsWith('unapproved') || URL.canParse(approval)) return [];
  const detail = `protected groups must have approval annotation "${APPROVAL}" with either a URL or a reason starting with "unapproved", see https://github.com/kubernetes/enhancements/pull/1111`;
  return [invalid(path, approval, detail)];
}

function updateErrors(spec: Spec, old: CustomResourceDefinition): FieldError[] {
  const established =
    old.status?.conditions?.some(({ type, status }) => type === 'Established' && status === 'True') ?? false;
  const fixed: [path: string, now: unknown, before: unknown][] = [
    ['spec.group', spec.group, old.spec.group],
    ['spec.names.plural', spec.names?.plural, old.spec.names.plural],
  ];
  if (established) {
    fixed.push(['spec.scope', spec.scope, old.spec.scope], ['spec.names.kind', spec.names?.kind, old.spec.names.kind]);
  }
  return fixed.flatMap(([path, now, before]) =>
    sameJson(now, before) ? [] : [invalid(path, now, 'field is immutable')],
  );
}

function storedVersionErrors({ versions = [] }: Spec, stored: readonly string[]): FieldError[] {
  const names = new Set(versions.map(version => version.name));
  return stored.flatMap((name, index) => {
    if (names.has(name)) return [];
    const detail = `missing from spec.versions; ${name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${name} and removes ${name} from status.storedVersions`;
    return [invalid(`status.storedVersions[${index}]`, name, detail)];
  });
}
