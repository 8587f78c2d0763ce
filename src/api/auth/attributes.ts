import type { User } from './user.ts';

/** What one request wants to do: either with a resource or with a plain URL path. */
export type Attributes = ResourceAttributes | PathAttributes;

export interface ResourceAttributes {
  readonly user: User;
  /** get, list, watch, create, update, patch, delete, deletecollection, or a special one (bind, escalate, approve, ...). */
  readonly verb: string;
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  /** Plural, lower case: `pods`. */
  readonly resource: string;
  /** Empty when the request is for the object itself. */
  readonly subresource: string;
  /** Empty for cluster-scoped resources and for all namespaces. */
  readonly namespace: string;
  /** Empty for collections and for create. A list or watch with `metadata.name=x` as field selector has the name x. */
  readonly name: string;
}

export interface PathAttributes {
  readonly user: User;
  /** The HTTP method in lower case. */
  readonly verb: string;
  readonly path: string;
}

export function isPathRequest(attributes: Attributes): attributes is PathAttributes {
  return 'path' in attributes;
}

/** `pods` or `pods/log`. */
export function resourceAndSubresource(attributes: ResourceAttributes): string {
  return attributes.subresource === '' ? attributes.resource : `${attributes.resource}/${attributes.subresource}`;
}
