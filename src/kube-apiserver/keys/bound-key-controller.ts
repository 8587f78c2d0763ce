import { throwIfAny } from '../../controller/aggregate-error.ts';
import type { Reconcile, ReconcileContext } from '../../controller/reconcile.ts';
import { applyConfigMap, applySecret } from '../../kube/apply.ts';
import { getIfPresent } from '../../kube/get.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, SECRETS } from '../../kube/resource.ts';
import { syncSecret } from '../../kube/sync-copy.ts';
import type { Keys } from '../../pki/keys.ts';
import { readNodeStatus } from '../../staticpod/node-status.ts';
import { liveObjects } from '../../staticpod/objects.ts';
import type { StaticPodOperator } from '../../staticpod/operator.ts';
import {
  ACTIVE_SIGNING_KEY,
  decidePromotion,
  NEXT_SIGNING_KEY,
  needsSigningKey,
  newSigningKey,
  PUBLIC_KEYS,
  publicKeyOf,
  withPublicKey,
} from './bound-keys.ts';

export interface BoundKeyOptions {
  readonly kube: Kube;
  readonly operator: StaticPodOperator;
  readonly keys: Keys;
}

/** Keeps the key that signs bound service-account tokens, its public halves and its promotion (spec 20, 8.2). */
export function boundKeyReconcile(options: BoundKeyOptions): Reconcile {
  return async (_key, context) => {
    const errors: unknown[] = [];
    for (const step of [ensureNextKey, ensurePublicKey, promote]) {
      // Each is tried, also when another one failed.
      await step(options, context).catch((error: unknown) => errors.push(error));
    }
    throwIfAny(errors);
  };
}

async function ensureNextKey(
  { kube, keys }: BoundKeyOptions,
  { events, signal, log }: ReconcileContext,
): Promise<void> {
  const next = await getIfPresent(kube, SECRETS, NEXT_SIGNING_KEY, { signal });
  if (!needsSigningKey(next)) return;
  log.info(NEXT_SIGNING_KEY, 'making a new key for service-account tokens');
  await applySecret({ kube, events, signal }, await newSigningKey(keys));
}

async function ensurePublicKey({ kube }: BoundKeyOptions, { events, signal }: ReconcileContext): Promise<void> {
  const publicKey = publicKeyOf(await kube.get(SECRETS, NEXT_SIGNING_KEY, { signal }));
  if (publicKey === undefined) throw new Error(`secret ${NEXT_SIGNING_KEY.name} has no public key`);
  const stored = await getIfPresent(kube, CONFIG_MAPS, PUBLIC_KEYS, { signal });
  const before = stored?.data ?? {};
  const data = withPublicKey(before, publicKey);
  if (stored !== undefined && data === before) return;
  await applyConfigMap({ kube, events, signal }, { metadata: PUBLIC_KEYS, data: { ...data } });
}

async function promote({ kube, operator }: BoundKeyOptions, { events, signal, log }: ReconcileContext): Promise<void> {
  const objects = liveObjects(kube, signal);
  const next = await kube.get(SECRETS, NEXT_SIGNING_KEY, { signal });
  const { status = {} } = await operator.readLive(signal);
  const nodeRevisions = (status.nodeStatuses ?? []).map(entry => readNodeStatus(entry).currentRevision);
  const copies = new Map(
    await Promise.all(
      [...new Set(nodeRevisions)].map(async revision => {
        const key = { ...PUBLIC_KEYS, name: `${PUBLIC_KEYS.name}-${revision}` };
        return [revision, await objects.get(CONFIG_MAPS, key)] as const;
      }),
    ),
  );
  const decision = decidePromotion({
    next,
    active: await objects.get(SECRETS, ACTIVE_SIGNING_KEY),
    publicKeys: await objects.get(CONFIG_MAPS, PUBLIC_KEYS),
    nodeRevisions,
    revisioned: revision => copies.get(revision),
  });
  switch (decision.action) {
    case 'done':
      return;
    case 'fail':
      throw new Error(decision.error);
    case 'wait':
      log.info({ why: decision.reason }, 'the new key for service-account tokens is not promoted yet');
      return;
    case 'promote':
      log.info(ACTIVE_SIGNING_KEY, 'promoting the key for service-account tokens');
      await syncSecret({ kube, events, signal }, NEXT_SIGNING_KEY, ACTIVE_SIGNING_KEY);
  }
}
