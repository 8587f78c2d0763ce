import * as access from './builtin/access.ts';
import * as apps from './builtin/apps.ts';
import * as batch from './builtin/batch.ts';
import { PersistentVolumeClaim } from './builtin/claim.ts';
import * as config from './builtin/config.ts';
import { CustomResourceDefinition } from './builtin/custom-resource-definition.ts';
import { CoreEvent, Event } from './builtin/event.ts';
import { DeleteOptions, Status } from './builtin/meta.ts';
import { Node } from './builtin/node.ts';
import { Binding, Pod, PodTemplate } from './builtin/pod.ts';
import * as policy from './builtin/policy.ts';
import * as review from './builtin/review.ts';
import { PriorityClass } from './builtin/scheduling.ts';
import * as service from './builtin/service.ts';
import type { Schema } from './schema.ts';

export { LabelSelector, ObjectMeta } from './builtin/meta.ts';

/** The schema of a built-in kind: `builtinSchema('apps/v1', 'Deployment')`. */
export function builtinSchema(apiVersion: string, kind: string): Schema | undefined {
  return BY_KIND.get(`${apiVersion}/${kind}`);
}

/** Every built-in kind that has a schema. */
export function builtinKinds(): { apiVersion: string; kind: string }[] {
  return [...BY_KIND.keys()].map(key => {
    const slash = key.lastIndexOf('/');
    return { apiVersion: key.slice(0, slash), kind: key.slice(slash + 1) };
  });
}

const KINDS: readonly Schema[] = [
  Pod,
  PodTemplate,
  Binding,
  Node,
  PersistentVolumeClaim,
  CoreEvent,
  Event,
  PriorityClass,
  CustomResourceDefinition,
  DeleteOptions,
  Status,
  ...Object.values(config),
  ...Object.values(service),
  ...Object.values(apps),
  ...Object.values(batch),
  ...Object.values(policy),
  ...Object.values(access),
  ...Object.values(review),
];

const BY_KIND: ReadonlyMap<string, Schema> = new Map(
  KINDS.flatMap(schema =>
    (schema['x-kubernetes-group-version-kind'] ?? []).map(({ group, version, kind }) => [
      `${group === '' ? version : `${group}/${version}`}/${kind}`,
      schema,
    ]),
  ),
);
