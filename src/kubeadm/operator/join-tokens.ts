import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { annotationsOf } from '../../certrotation/secret.ts';
import { hours, minutes } from '../../kube/duration.ts';
import { floorToMs, formatRfc3339, parseRfc3339 } from '../../kube/time.ts';
import { JOIN_TOKENS, JOINS_END, UNSIGNED } from './names.ts';

/** The signature of a join token is under this key in `cluster-info`, as long as the token is good. */
const SIGNATURE = 'jws-kubeconfig-';
/** A join that has begun may go on for so long after the end of its token (KA-11). */
const JOINING_MS = hours(2);
const MOST_TOKENS = 100;

/** kube-controller-manager signs a changed text within seconds, once it leads again. Tokens that have no signature by then have ended. */
const SIGNED_AGAIN_MS = minutes(10);

/** The tokens with which nodes can join now, by id. Everybody may know them; the secret part is elsewhere. */
export function joinTokens(clusterInfo: ConfigMap | undefined, now: Date): readonly string[] {
  const signed = signedTokens(clusterInfo);
  // All are signed at once.
  return signed.length > 0 ? signed : unsignedTokens(clusterInfo, now);
}

/**
 * Another text without the signatures of the one before. A node that finds none waits for its own; one that finds one over another text
 * gives up, as if somebody had forged it.
 */
export function withoutSignatures(clusterInfo: ConfigMap, now: Date): ConfigMap {
  const data = Object.entries(clusterInfo.data ?? {}).filter(([key]) => !key.startsWith(SIGNATURE));
  const ids = joinTokens(clusterInfo, now);
  const annotations = { ...clusterInfo.metadata?.annotations, [UNSIGNED]: `${formatRfc3339(now)} ${ids.join()}` };
  return { ...clusterInfo, metadata: { ...clusterInfo.metadata, annotations }, data: Object.fromEntries(data) };
}

/** Without the note about tokens whose signatures are there again: whatever goes from now on has ended. The same one where there is none. */
export function withoutNote(clusterInfo: ConfigMap): ConfigMap {
  const { [UNSIGNED]: note, ...annotations } = clusterInfo.metadata?.annotations ?? {};
  if (note === undefined || signedTokens(clusterInfo).length === 0) return clusterInfo;
  return { ...clusterInfo, metadata: { ...clusterInfo.metadata, annotations } };
}

function signedTokens(clusterInfo: ConfigMap | undefined): readonly string[] {
  const keys = Object.keys(clusterInfo?.data ?? {}).filter(key => key.startsWith(SIGNATURE));
  return tokenIds(keys.map(key => key.slice(SIGNATURE.length)));
}

function unsignedTokens(clusterInfo: ConfigMap | undefined, now: Date): readonly string[] {
  const [time = '', ids = ''] = clusterInfo?.metadata?.annotations?.[UNSIGNED]?.split(' ') ?? [];
  const since = parseRfc3339(time);
  const isOver = since === undefined || now.getTime() - floorToMs(since).getTime() >= SIGNED_AGAIN_MS;
  return isOver ? [] : tokenIds(ids.split(','));
}

function tokenIds(names: readonly string[]): readonly string[] {
  return names
    .filter(id => /^[a-z0-9]{6}$/.test(id))
    .toSorted()
    .slice(0, MOST_TOKENS);
}

/** What is noted when a new CA begins to sign: join commands with tokens of now may pin none but the one before it. */
export function notedTokens(clusterInfo: ConfigMap | undefined, now: Date): string | undefined {
  const ids = joinTokens(clusterInfo, now);
  return ids.length === 0 ? undefined : ids.join();
}

/** The notes about join commands as they have to be now; once the last token is gone, its last join gets its time. */
export function joinNotes(
  signer: Secret,
  clusterInfo: ConfigMap | undefined,
  now: Date,
): Readonly<Record<string, string | undefined>> {
  const noted = annotationsOf(signer)[JOIN_TOKENS];
  if (noted === undefined || remaining(noted, clusterInfo, now).length > 0) return {};
  return { [JOIN_TOKENS]: undefined, [JOINS_END]: formatRfc3339(new Date(now.getTime() + JOINING_MS)) };
}

/** Which join commands from before the CA in use may still be about; undefined: none. */
export function joinsHoldUp(signer: Secret, clusterInfo: ConfigMap | undefined, now: Date): string | undefined {
  const { [JOIN_TOKENS]: noted, [JOINS_END]: end } = annotationsOf(signer);
  const ids = noted === undefined ? [] : remaining(noted, clusterInfo, now);
  if (ids.length > 0)
    return `join tokens from before it are good: ${ids.join(', ')}; they end by themselves, or with kubeadm token delete`;
  if (noted !== undefined) return 'join commands from before it may be about';
  const at = parseRfc3339(end ?? '');
  if (at === undefined || floorToMs(at) <= now) return undefined;
  return `join commands from before it may be about until ${end}`;
}

function remaining(noted: string, clusterInfo: ConfigMap | undefined, now: Date): readonly string[] {
  const known = new Set(joinTokens(clusterInfo, now));
  return noted.split(',').filter(id => known.has(id));
}
