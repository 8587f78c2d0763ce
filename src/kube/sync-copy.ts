import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import type { ObjectMeta, OwnerReference } from 'kubernetes-types/meta/v1.d.ts';
import { type ApplyContext, applyConfigMap, applySecret } from './apply.ts';
import { isNotFound } from './error.ts';
import { getIfPresent } from './get.ts';
import { CONFIG_MAPS, type KubeObject, type ObjectKey, type Resource, SECRETS } from './resource.ts';

/** What a copy ended with: no object when there is no source and hence no target. */
export interface Copied<T extends KubeObject> {
  readonly object: T | undefined;
  readonly changed: boolean;
}

export interface CopyOptions {
  /** Only these keys are copied; when none of them is there, the source counts as missing. */
  readonly keys?: readonly string[] | undefined;
  readonly ownerReferences?: readonly OwnerReference[] | undefined;
}

/** Makes the target ConfigMap a copy of the source, or removes it with the source (spec 30, 6.5). */
export async function syncConfigMap(
  context: ApplyContext,
  source: ObjectKey,
  target: ObjectKey,
  options: CopyOptions = {},
): Promise<Copied<ConfigMap>> {
  const { kube, signal } = context;
  const found = await getIfPresent(kube, CONFIG_MAPS, source, { signal });
  const [data, binaryData] = [chosen(found?.data, options.keys), chosen(found?.binaryData, options.keys)];
  const isEmptied = options.keys !== undefined && data === undefined && binaryData === undefined;
  if (found === undefined || isEmptied) {
    const isThere = (await getIfPresent(kube, CONFIG_MAPS, target, { signal })) !== undefined;
    return { object: undefined, changed: isThere && (await removeTarget(context, CONFIG_MAPS, target)) };
  }
  return applyConfigMap(context, {
    metadata: metadataOfCopy(found.metadata, target, options.ownerReferences),
    ...(data === undefined ? {} : { data }),
    ...(binaryData === undefined ? {} : { binaryData }),
  });
}

/** Makes the target Secret a copy of the source, or removes it with the source (spec 30, 6.5). */
export async function syncSecret(
  context: ApplyContext,
  source: ObjectKey,
  target: ObjectKey,
  options: CopyOptions = {},
): Promise<Copied<Secret>> {
  const { kube, signal } = context;
  const found = await getIfPresent(kube, SECRETS, source, { signal });
  if (found === undefined) return { object: undefined, changed: await removeTarget(context, SECRETS, target) };
  // First: a token that is still to come is no reason to remove the copy of the one before.
  const { type, annotations } = withoutTokenMarks(found, source);
  const data = chosen(found.data, options.keys);
  if (options.keys !== undefined && data === undefined) {
    return { object: undefined, changed: await removeTarget(context, SECRETS, target) };
  }
  return applySecret(context, {
    metadata: metadataOfCopy({ ...found.metadata, annotations }, target, options.ownerReferences),
    type,
    ...(data === undefined ? {} : { data }),
  });
}

const TOKEN_SECRET = 'kubernetes.io/service-account-token';
/** With these the token controller would take the copy for its own and delete it. */
const TOKEN_MARKS = ['kubernetes.io/service-account.name', 'kubernetes.io/service-account.uid'];

function withoutTokenMarks(secret: Secret, key: ObjectKey): { type: string; annotations: Record<string, string> } {
  const annotations = { ...secret.metadata?.annotations };
  if (secret.type !== TOKEN_SECRET) return { type: secret.type ?? 'Opaque', annotations };
  if (!secret.data?.token) throw new Error(`secret ${key.namespace}/${key.name} doesn't have a token yet`);
  for (const mark of TOKEN_MARKS) delete annotations[mark];
  return { type: 'Opaque', annotations };
}

/** Labels and annotations of the source, name of the target, and the owners that were given instead of the source's own. */
function metadataOfCopy(
  source: ObjectMeta = {},
  target: ObjectKey,
  ownerReferences: readonly OwnerReference[] = [],
): ObjectMeta {
  const { labels = {}, annotations = {} } = source;
  return {
    ...(target.namespace === undefined ? {} : { namespace: target.namespace }),
    name: target.name,
    ...(Object.keys(labels).length === 0 ? {} : { labels }),
    ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
    ...(ownerReferences.length === 0 ? {} : { ownerReferences: [...ownerReferences] }),
  };
}

/** The wanted keys of a map; undefined when nothing is left. */
function chosen(
  data: Record<string, string> | undefined,
  keys: readonly string[] | undefined,
): Record<string, string> | undefined {
  const entries = Object.entries(data ?? {}).filter(([key]) => keys === undefined || keys.includes(key));
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

async function removeTarget(
  { kube, events, signal }: ApplyContext,
  resource: Resource,
  target: ObjectKey,
): Promise<boolean> {
  try {
    await kube.delete(resource, target, { signal });
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
  const [reason, kind] =
    resource.kind === 'Secret' ? ['TargetSecretDeleted', 'secret'] : ['TargetConfigDeleted', 'configmap'];
  const name = `${target.namespace}/${target.name}`;
  events.event('Normal', reason, `Deleted target ${kind} ${name} because source config does not exist`);
  return true;
}
