import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import type { ObjectMeta } from 'kubernetes-types/meta/v1.d.ts';
import { isAlreadyExists, isNotFound } from '../kube/error.ts';
import { getIfPresent } from '../kube/get.ts';
import type { Kube } from '../kube/port.ts';
import { PODS } from '../kube/resource.ts';
import { formatRfc3339 } from '../kube/time.ts';
import { CONFIG_HASH, CONFIG_MIRROR, CONFIG_SEEN, type StaticPod } from './static-pods.ts';

/** Says that what runs only stands in for the real program. */
export const STAND_IN = 'rotunda.dev/stand-in';

export interface MirrorOptions {
  readonly node: { readonly name: string; readonly uid: string };
  readonly now: Date;
  readonly isStandIn: boolean;
}

/** The pod in the API that shows what runs from a manifest: created when it is missing, replaced when it shows another one. */
export async function ensureMirror(kube: Kube, wanted: StaticPod, options: MirrorOptions): Promise<Pod> {
  const { name = '', namespace = '' } = wanted.pod.metadata ?? {};
  const key = { name, namespace };
  const existing = await getIfPresent(kube, PODS, key);
  if (existing !== undefined) {
    if (isMirrorOf(existing, wanted.hash)) return existing;
    if (existing.metadata?.annotations?.[CONFIG_MIRROR] === undefined) {
      throw new Error(
        `the pod ${namespace}/${name} is in the place where the pod of manifest ${wanted.file} should show`,
      );
    }
    await removeMirror(kube, existing);
  }
  try {
    return await kube.create(PODS, mirrorPod(wanted, options));
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    return kube.get(PODS, key);
  }
}

/** Removes the pod that shows a manifest which is gone. */
export async function removeMirror(kube: Kube, { metadata }: Pod): Promise<void> {
  const { name = '', namespace = '', uid } = metadata ?? {};
  try {
    await kube.delete(PODS, { name, namespace }, { gracePeriodSeconds: 0, preconditions: { uid } });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

export function isMirror({ metadata }: Pod): boolean {
  return metadata?.annotations?.[CONFIG_MIRROR] !== undefined;
}

function isMirrorOf({ metadata }: Pod, hash: string): boolean {
  return metadata?.deletionTimestamp === undefined && metadata?.annotations?.[CONFIG_MIRROR] === hash;
}

function mirrorPod({ pod, hash }: StaticPod, { node, now, isStandIn }: MirrorOptions): Pod {
  const { uid: _, ...metadata }: ObjectMeta = pod.metadata ?? {};
  return {
    ...pod,
    metadata: {
      ...metadata,
      annotations: {
        ...metadata.annotations,
        [CONFIG_HASH]: hash,
        [CONFIG_MIRROR]: hash,
        [CONFIG_SEEN]: formatRfc3339(now),
        ...(isStandIn ? { [STAND_IN]: 'true' } : {}),
      },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: node.name, uid: node.uid, controller: true }],
    },
  };
}
