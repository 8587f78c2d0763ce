import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { sleep } from '../kube/clock.ts';
import { seconds } from '../kube/duration.ts';
import { isAlreadyExists, isConflict, isNotFound, KubeError } from '../kube/error.ts';
import { reportDelete } from '../kube/events.ts';
import { getIfPresent } from '../kube/get.ts';
import { keyOf, type ObjectKey, SECRETS } from '../kube/resource.ts';
import type { SignerConfig } from './config.ts';
import type { Rotation } from './ensure.ts';
import { CertRotationError } from './error.ts';
import { annotationsOf, TLS_SECRET } from './secret.ts';
import { store, write } from './store.ts';

/** On a Secret that had to be made anew: the uid of the one it replaces. */
export const RECREATED = 'rotunda.dev/recreated';
/** The type of the copy that is set aside while a Secret is made anew. */
export const SET_ASIDE_TYPE = 'rotunda.dev/set-aside';
const SET_ASIDE_KEY = 'secret';

/** How often, and how far apart, the create half of a recreation is tried within one pass. */
const CREATE_ATTEMPTS = 6;
const CREATE_FIRST_PAUSE_MS = seconds(0.1);

/** Stores a signer or target; undefined when another writer was first. Writes nothing when nothing differs (W-8). */
export async function storeSecret(
  before: Secret | undefined,
  wanted: Secret,
  config: SignerConfig,
  rotation: Rotation,
): Promise<Secret | undefined> {
  const changesType = before !== undefined && before.type !== wanted.type;
  if (!changesType || config.useSecretUpdateOnly) return store(SECRETS, before, wanted, rotation);
  try {
    return await write(SECRETS, wanted, 'update', rotation, error => !isImmutable(error));
  } catch (error) {
    if (!isImmutable(error)) throw error;
    return recreateSecret(before, wanted, rotation);
  }
}

/**
 * Changes the type of a Secret where the API refuses that on update (spec 10, 8.4). Between the delete and the create nothing but
 * a copy that was set aside before holds the key, so whoever finds the Secret missing brings it back from there instead of making
 * a new one: this process after a crash, or another one that shares the signer.
 */
async function recreateSecret(before: Secret, wanted: Secret, rotation: Rotation): Promise<Secret | undefined> {
  const { uid = '', resourceVersion = '' } = before.metadata ?? {};
  const annotations = { ...annotationsOf(wanted), [RECREATED]: uid };
  const { namespace = '', name = '', labels = {}, ownerReferences = [], finalizers = [] } = wanted.metadata ?? {};
  const fresh: Secret = { ...wanted, metadata: { namespace, name, labels, annotations, ownerReferences, finalizers } };
  const copy = await setAside(fresh, rotation);
  if (copy === undefined) return undefined;
  try {
    await rotation.kube.delete(SECRETS, keyOf(before), { preconditions: { uid, resourceVersion } });
  } catch (error) {
    // Gone: another process is making it anew, and the copy may be all there is. The same where nobody knows what happened.
    if (isNotFound(error)) return undefined;
    const wasRefused = error instanceof KubeError && error.code < 500;
    if (wasRefused) await clearAside(keyOf(before), rotation, copy);
    if (isConflict(error)) return undefined;
    reportDelete(rotation.events, SECRETS, before, error);
    throw error;
  }
  reportDelete(rotation.events, SECRETS, before);
  return createFrom(fresh, rotation);
}

/** Creates a Secret from the copy that was set aside, where whoever made it anew was stopped in the middle. */
export async function bringBack(key: ObjectKey, rotation: Rotation): Promise<Secret | 'never set aside' | 'lost'> {
  const aside = await getIfPresent(rotation.kube, SECRETS, asideKey(key));
  if (aside === undefined) return 'never set aside';
  return (await createFrom(readAside(aside), rotation)) ?? 'lost';
}

/** Removes the copy of a Secret that was made anew, where whoever made it was stopped before that. */
export async function clearLeftAside(secret: Secret, rotation: Rotation): Promise<void> {
  const { annotations, deletionTimestamp } = secret.metadata ?? {};
  if (annotations?.[RECREATED] === undefined || deletionTimestamp !== undefined || secret.type !== TLS_SECRET) return;
  const key = keyOf(secret);
  if ((await rotation.objects.read(SECRETS, asideKey(key))) === undefined) return;
  // The copy may be needed by another process that has just deleted the Secret: what is in the API counts, not a cache.
  const live = await getIfPresent(rotation.kube, SECRETS, key);
  if (live?.metadata?.uid === secret.metadata?.uid) await clearAside(key, rotation);
}

async function createFrom(fresh: Secret, rotation: Rotation): Promise<Secret | undefined> {
  for (let attempt = 1; ; attempt++) {
    try {
      const created = await write(SECRETS, fresh, 'create', rotation);
      if (created !== undefined) await clearAside(keyOf(fresh), rotation);
      return created;
    } catch (error) {
      if (attempt === CREATE_ATTEMPTS) throw error;
      await sleep(rotation.clock, CREATE_FIRST_PAUSE_MS * 2 ** (attempt - 1));
    }
  }
}

/** The copy as it is stored; undefined when another writer was first. */
async function setAside(secret: Secret, { kube }: Rotation): Promise<Secret | undefined> {
  const key = asideKey(keyOf(secret));
  const earlier = await getIfPresent(kube, SECRETS, key);
  const copy: Secret = {
    metadata: earlier?.metadata ?? key,
    type: SET_ASIDE_TYPE,
    data: { [SET_ASIDE_KEY]: Buffer.from(JSON.stringify(secret)).toString('base64') },
  };
  try {
    return await (earlier === undefined ? kube.create(SECRETS, copy) : kube.update(SECRETS, copy));
  } catch (error) {
    if (isAlreadyExists(error) || isConflict(error) || isNotFound(error)) return undefined;
    throw error;
  }
}

function readAside(aside: Secret): Secret {
  const text = Buffer.from(aside.data?.[SET_ASIDE_KEY] ?? '', 'base64').toString('utf8');
  try {
    return JSON.parse(text) as Secret;
  } catch {
    // The parser's own message would quote the key.
    const { namespace, name } = keyOf(aside);
    const message = `Secret ${namespace}/${name} should hold another Secret as JSON, and does not: mend or delete it`;
    throw new CertRotationError('SET_ASIDE_UNREADABLE', message);
  }
}

/** Removes the copy, or only `exactly` this version of it. One that stays does no harm: a later pass clears it. */
async function clearAside(key: ObjectKey, { kube, log }: Rotation, exactly?: Secret): Promise<void> {
  const { uid, resourceVersion } = exactly?.metadata ?? {};
  try {
    await kube.delete(SECRETS, asideKey(key), { preconditions: { uid, resourceVersion } });
  } catch (error) {
    if (!isNotFound(error)) log?.warn({ secret: key, error: (error as Error).message }, 'the copy set aside stays');
  }
}

function asideKey({ namespace = '', name }: ObjectKey) {
  return { namespace, name: `${name}.set-aside.rotunda.dev` };
}

function isImmutable(error: unknown): boolean {
  return error instanceof KubeError && error.message.includes('field is immutable');
}
