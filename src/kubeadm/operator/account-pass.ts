import { createPublicKey } from 'node:crypto';
import type { ConfigMap, Pod, Secret } from 'kubernetes-types/core/v1.d.ts';
import { REQUESTED_AT } from '../../certrotation/annotations.ts';
import type { Rotation } from '../../certrotation/ensure.ts';
import { annotationsOf, dataText, withAnnotations } from '../../certrotation/secret.ts';
import { store } from '../../certrotation/store.ts';
import { BECAUSE, SHOWN, SINCE } from '../../hand-over/names.ts';
import { CONFIG_MAPS, SECRETS } from '../../kube/resource.ts';
import { formatRfc3339 } from '../../kube/time.ts';
import { keyAlgorithmOf } from '../../pki/keys.ts';
import { encodePrivateKey, readPrivateKey } from '../../pki/pem.ts';
import type { ClusterSettings } from '../cluster-record.ts';
import { CURRENT_SLOT, keyDigest, SERVICE_ACCOUNT } from '../service-account-keys.ts';
import { tokenLife } from '../token-flags.ts';
import { controlPlane } from './account-evidence.ts';
import { type AccountEvent, type AccountPlan, planOfKeys, withNext } from './account-hand-over.ts';
import { type AccountKeys, accountKeysIn } from './account-keys.ts';
import { accountProblems } from './account-problems.ts';
import type { Cluster, NodeSight } from './cluster.ts';
import { KEYS_REQUESTED_AT, TOKENS_END, TOKENS_SINCE } from './names.ts';
import type { AccountSight } from './status.ts';

/** What is known of an adopted cluster, as far as the keys of service accounts go. */
export interface AccountScene {
  /** Where the request is. */
  readonly record: ConfigMap;
  readonly settings: Pick<ClusterSettings, 'keysOnNodes' | 'certificatesDirectory' | 'publishFrom'>;
  readonly nodes: readonly NodeSight[];
  readonly secrets: readonly Secret[];
  /** Mirror pods of the control plane. */
  readonly staticPods: readonly Pod[];
  /** Of all namespaces. */
  pods(): Promise<readonly Pod[]>;
  /** A CA whose hand-over goes first. */
  readonly busy: string | undefined;
  readonly now: Date;
}

export interface AccountOutcome extends Pick<AccountPlan, 'goal' | 'againAt'> {
  /** Everything has to be looked at again. */
  readonly wrote: boolean;
  readonly publish: Cluster['publish'];
  /** Undefined: nobody has ever asked for other keys. */
  readonly sight: AccountSight | undefined;
}

/** One look at the keys of service accounts, and the one write that follows. */
export async function passAccountKeys(scene: AccountScene, rotation: Rotation): Promise<AccountOutcome> {
  const { record, settings, nodes, secrets, staticPods, busy, now } = scene;
  const keys = accountKeysIn(secrets);
  const requestedAt = record.metadata?.annotations?.[KEYS_REQUESTED_AT];
  const { certificatesDirectory, keysOnNodes } = settings;
  const problems = accountProblems({ nodes, staticPods, certificatesDirectory, isKnown: keys !== undefined });
  const question = { keys, requestedAt, keysOnNodes, busy, problems, nodes, now };
  const plan = planOfKeys(question);
  if (plan.step.do === 'answered') await answered(record, rotation);
  else if (keys !== undefined && keys !== 'unusable') await carryOut(plan, keys, scene, rotation);
  const since = keys === undefined || keys === 'unusable' ? undefined : annotationsOf(keys.secret)[SINCE];
  return {
    goal: plan.goal,
    againAt: plan.againAt,
    wrote: plan.step.do !== 'nothing',
    publish: plan.phase === 'Publishing' ? { node: publisherIn(scene), what: SERVICE_ACCOUNT } : undefined,
    sight: keys === undefined && requestedAt === undefined ? undefined : { ...plan, since },
  };
}

/** All control-plane nodes have the same keys: whoever tells of them can copy them. */
function publisherIn({ nodes, settings: { publishFrom } }: AccountScene): string {
  const able = controlPlane(nodes).filter(({ report }) => report?.serviceAccount?.signs !== undefined);
  return (able.find(({ name }) => name === publishFrom) ?? able[0])?.name ?? publishFrom;
}

async function carryOut(
  { step }: AccountPlan,
  keys: AccountKeys,
  scene: AccountScene,
  rotation: Rotation,
): Promise<void> {
  const { secret } = keys;
  const put = async (wanted: Secret, event?: AccountEvent) => {
    const written = await store(SECRETS, secret, wanted, rotation);
    if (written !== undefined && event !== undefined) rotation.events.event('Normal', event.reason, event.text);
  };
  switch (step.do) {
    case 'begin':
      return begin(keys, scene, rotation);
    case 'keys':
      return put(step.secret, step.event);
    case 'note-shown': {
      const { ms } = tokenLife(scene.staticPods, await scene.pods());
      const end = new Date(Math.ceil((scene.now.getTime() + ms) / 1000) * 1000);
      return put(
        withAnnotations(secret, {
          [SHOWN]: keys.current.digest,
          [TOKENS_SINCE]: formatRfc3339(scene.now),
          [TOKENS_END]: formatRfc3339(end),
        }),
      );
    }
    case 'answered':
    case 'nothing':
      return;
  }
}

async function answered(record: ConfigMap, rotation: Rotation): Promise<void> {
  const { [KEYS_REQUESTED_AT]: _, ...annotations } = record.metadata?.annotations ?? {};
  await store(CONFIG_MAPS, record, { ...record, metadata: { ...record.metadata, annotations } }, rotation);
}

/** A key of the same kind beside the one in use; the request it answers is noted in the same write, so that nobody answers it again. */
async function begin(keys: AccountKeys, { record, now }: AccountScene, rotation: Rotation): Promise<void> {
  const inUse = readPrivateKey(dataText(keys.secret, CURRENT_SLOT.key) ?? '');
  const key = await rotation.keys.generate(tokenAlgorithm(keyAlgorithmOf(inUse)));
  const pub = createPublicKey(key).export({ format: 'pem', type: 'spki' }).toString();
  const digest = keyDigest(key).slice(0, 12);
  const because = 'somebody asked for it';
  const notes = {
    [SINCE]: formatRfc3339(now),
    [BECAUSE]: because,
    [REQUESTED_AT]: record.metadata?.annotations?.[KEYS_REQUESTED_AT],
  };
  const wanted: Secret = withNext(keys, { key: encodePrivateKey(key), pub }, notes);
  if ((await store(SECRETS, keys.secret, wanted, rotation)) === undefined) return;
  const text = `another key of service accounts (${digest}) is made known to every kube-apiserver: ${because}`;
  rotation.events.event('Normal', 'AccountKeysBegun', text);
}

/** Kubernetes signs tokens with RSA and with keys on curves. */
function tokenAlgorithm(found: ReturnType<typeof keyAlgorithmOf>) {
  return found === undefined || found === 'Ed25519' ? 'RSA-2048' : found;
}
