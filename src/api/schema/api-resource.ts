import type { Schema } from './schema.ts';

/** A resource as the OpenAPI documents need to know it. */
export interface ApiResource {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
  /** get, list, watch, create, update, patch, delete, deletecollection. */
  readonly verbs: readonly string[];
  readonly schema: Schema;
  readonly subresources?: readonly ApiSubresource[] | undefined;
}

/** Something below one object, such as `status`. Its kind is that of the resource unless it says otherwise. */
export interface ApiSubresource {
  readonly name: string;
  readonly verbs: readonly string[];
  readonly group?: string | undefined;
  readonly version?: string | undefined;
  readonly kind?: string | undefined;
  /** Given when the kind is another than the resource's. */
  readonly schema?: Schema | undefined;
}

/** A group and version with what is served in it. */
export interface GroupVersion {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
}

/** `api/v1` or `apis/apps/v1`: where the group version is served, and its key in the OpenAPI v3 index. */
export function groupVersionPath({ group, version }: GroupVersion): string {
  return group === '' ? `api/${version}` : `apis/${group}/${version}`;
}
