import { parseRfc3339 } from '../kube/time.ts';
import { KUBEADM_SIGNERS, type SignerName } from './chains.ts';
import { SERVICE_ACCOUNT } from './service-account-keys.ts';

/** Says whether something that was read is what it ought to be. */
export type Reader<T> = (value: unknown) => value is T;

/** Reads what operator and agents write for each other; undefined: nothing is there, it is too long, or it is something else. */
export function readJson<T>(text: string | undefined, longest: number, isWhatIsMeant: Reader<T>): T | undefined {
  if (text === undefined || text.length > longest) return undefined;
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch {
    return undefined;
  }
  return isWhatIsMeant(found) ? found : undefined;
}

export function isFields(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A SHA-256 in hex. */
export function isDigest(value: unknown): value is string {
  return typeof value === 'string' && /^[0-9a-f]{64}$/.test(value);
}

/** A moment as RFC 3339 has it. */
export function isMoment(value: unknown): value is string {
  return typeof value === 'string' && value.length <= 64 && parseRfc3339(value) !== undefined;
}

/** What the agent of a control-plane node copies into Secrets: a CA, or the keys of service accounts (KA-2). */
export type Published = SignerName | typeof SERVICE_ACCOUNT;

export function isPublished(value: unknown): value is Published {
  return value === SERVICE_ACCOUNT || isSignerName(value);
}

export function isSignerName(value: unknown): value is SignerName {
  return KUBEADM_SIGNERS.some(({ name }) => name === value);
}
