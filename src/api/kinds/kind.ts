import type { KubeObject } from '../../kube/resource.ts';
import type { User } from '../auth/user.ts';
import type { Printer } from '../print/table.ts';
import type { FieldError } from '../schema/field-error.ts';
import type { Schema } from '../schema/schema.ts';
import type { SelectableFields } from '../select/selectable.ts';

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete' | 'deletecollection';

export const ALL_VERBS: readonly Verb[] = [
  'create',
  'delete',
  'deletecollection',
  'get',
  'list',
  'patch',
  'update',
  'watch',
];

/** An object whose fields beyond the metadata are looked at by rules. */
export type Fields = KubeObject & { spec?: unknown; status?: unknown; [field: string]: unknown };

/** One resource in one version: what is served below `/apis/<group>/<version>/.../<plural>`. */
export interface Kind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly listKind: string;
  readonly plural: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly namespaced: boolean;
  readonly verbs: readonly Verb[];
  /** Where objects are stored; shared by all versions of a resource. Empty when nothing is stored (reviews). */
  readonly bucket: string;
  readonly schema: Schema;
  readonly rules: Rules;
  /** Has a `status` that only its own subresource changes. */
  readonly status: boolean;
  readonly scale: ScalePaths | undefined;
  /** All of them, `status` and `scale` included, as discovery lists them. */
  readonly subresources: readonly Subresource[];
  readonly printer: Printer;
  readonly selectable: SelectableFields;
  /** How this version differs from the stored one; absent when they are the same. */
  readonly conversion?: Conversion | undefined;
  readonly custom?: CustomKind | undefined;
}

/** What only kinds of CustomResourceDefinitions have. */
export interface CustomKind {
  readonly definitionUid: string;
  readonly storageVersion: string;
  /** Objects written before this revision may lack defaults or have fields the schema no longer knows. */
  readonly definedAt: number;
  readonly deprecationWarning: string | undefined;
}

export interface Conversion {
  toStored(object: KubeObject): KubeObject;
  fromStored(object: KubeObject): KubeObject;
}

export interface Subresource {
  readonly name: string;
  readonly verbs: readonly Verb[];
  /** The kind of what is sent and answered, when it is not the parent's. */
  readonly kind?: { readonly group: string; readonly version: string; readonly kind: string } | undefined;
  readonly schema?: Schema | undefined;
}

/** Dotted paths as a CustomResourceDefinition writes them: `.spec.replicas`. */
export interface ScalePaths {
  readonly specReplicasPath: string;
  readonly statusReplicasPath: string;
  readonly labelSelectorPath?: string | undefined;
}

/** When and by whom something is written. */
export interface Occasion {
  readonly now: Date;
  readonly user: User;
}

/** What a kind does beyond what its schema says. All functions return new objects and leave their arguments alone. */
export interface Rules {
  /** PUT to a name that does not exist creates it. */
  readonly createsOnUpdate?: boolean;
  /** PUT without a resource version is refused. */
  readonly needsResourceVersion?: boolean;
  /** Counts changes of everything but metadata and status in `metadata.generation`. */
  readonly generation?: boolean;
  /** What else the generation counts the changes of. */
  readonly alsoCounted?: (object: Fields) => unknown;
  /** `status` may be given at creation. */
  readonly keepsStatusOnCreate?: boolean;
  /** A write to `status` may change labels and annotations as well. */
  readonly statusWritesMetadata?: boolean;
  /** Dependents are kept unless the request says otherwise. */
  readonly orphansByDefault?: boolean;
  readonly prepareCreate?: (object: Fields, occasion: Occasion) => Fields;
  readonly prepareUpdate?: (object: Fields, old: Fields, occasion: Occasion) => Fields;
  readonly prepareStatus?: (object: Fields, old: Fields, occasion: Occasion) => Fields;
  readonly checkCreate?: (object: Fields) => FieldError[];
  readonly checkUpdate?: (object: Fields, old: Fields, subresource: string) => FieldError[];
  /**
   * How many seconds the deletion of this object takes at least; undefined: it is not graceful. `asked` is what the request
   * says.
   */
  readonly gracePeriod?: (object: Fields, asked: number | undefined) => number | undefined;
  /** How the object looks when its deletion begins; its metadata is taken care of elsewhere. */
  readonly beginDelete?: (object: Fields, occasion: Occasion) => Fields;
  /** Whether something other than its finalizers keeps an object that is being deleted. */
  readonly isHeld?: (object: Fields) => boolean;
  /** Warnings for whoever writes it. */
  readonly warnings?: (object: Fields) => string[];
}

export function apiVersionOfKind({ group, version }: { group: string; version: string }): string {
  return group === '' ? version : `${group}/${version}`;
}

/** The path of an object in its bucket. */
export function pathOf(namespace: string, name: string): string {
  return namespace === '' ? name : `${namespace}/${name}`;
}
