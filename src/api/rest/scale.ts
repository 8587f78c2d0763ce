import type { Scale } from 'kubernetes-types/autoscaling/v1.d.ts';
import type { KubeObject } from '../../kube/resource.ts';
import type { Fields, Kind } from '../kinds/kind.ts';
import { invalid, invalidObject } from '../schema/field-error.ts';
import { isObject } from '../schema/json.ts';
import { formatLabelQuery } from '../select/label.ts';
import { labelQueryOf } from '../select/label-object.ts';

/** An object seen as something that has a number of replicas. */
export function scaleOf(kind: Kind, object: KubeObject): Scale {
  const { specReplicasPath, statusReplicasPath, labelSelectorPath } = kind.scale ?? NO_PATHS;
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata ?? {};
  const selector = labelSelectorPath === undefined ? undefined : selectorText(at(object, labelSelectorPath));
  const metadata = { name, namespace, uid, resourceVersion, creationTimestamp };
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: Object.fromEntries(Object.entries(metadata).filter(([, value]) => value !== undefined)),
    spec: { replicas: numberAt(object, specReplicasPath) },
    status: {
      replicas: numberAt(object, statusReplicasPath),
      ...(selector === undefined ? {} : { selector }),
    },
  };
}

/** The object with the number of replicas the scale asks for. */
export function scaled(kind: Kind, scale: Fields, object: Fields): Fields {
  const replicas = (scale as Scale).spec?.replicas ?? 0;
  if (replicas < 0) {
    const error = invalid('spec.replicas', replicas, 'must be greater than or equal to 0');
    throw invalidObject('autoscaling', 'Scale', object.metadata?.name ?? '', [error]);
  }
  const metadata = { ...object.metadata };
  const version = scale.metadata?.resourceVersion;
  if (version) metadata.resourceVersion = version;
  return withValue({ ...object, metadata }, fieldsOf((kind.scale ?? NO_PATHS).specReplicasPath), replicas) as Fields;
}

const NO_PATHS = {
  specReplicasPath: '.spec.replicas',
  statusReplicasPath: '.status.replicas',
  labelSelectorPath: undefined,
};

function numberAt(object: object, path: string): number {
  const value = at(object, path);
  return typeof value === 'number' ? value : 0;
}

function at(object: object, path: string): unknown {
  let value: unknown = object;
  for (const field of fieldsOf(path)) value = isObject(value) ? value[field] : undefined;
  return value;
}

function withValue(object: object, [field, ...rest]: readonly string[], value: unknown): object {
  if (field === undefined) return object;
  const child = (object as Record<string, unknown>)[field];
  return { ...object, [field]: rest.length === 0 ? value : withValue(isObject(child) ? child : {}, rest, value) };
}

function fieldsOf(path: string): string[] {
  return path.split('.').filter(field => field !== '');
}

function selectorText(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  const query = isObject(value) ? labelQueryOf(value) : undefined;
  return query === undefined ? undefined : formatLabelQuery(query);
}
