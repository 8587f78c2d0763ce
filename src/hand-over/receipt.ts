import type { Certificate } from '../pki/certificate.ts';
import type { ObjectRef } from '../trust/object.ts';

/**
 * What is known of one verifier and one CA, or of one presenter and what it shows (spec 90, section 3): whoever is waited for, and why.
 */
export interface Receipt {
  /** `kubelet on worker-0`; a presenter with what it shows: `kube-apiserver on master-0 (kubelet-client)`. */
  readonly verifier: string;
  /** Where it runs; undefined: not on a node. */
  readonly node: string | undefined;
  /** How it is known, or would be. */
  readonly kind: ReceiptKind;
  /** It has loaded the CA; a presenter: it shows nothing of an older one. */
  readonly isLoaded: boolean;
  /** What it said, or why it says nothing; for people. */
  readonly evidence: string;
  /** Somebody has said that nobody should wait for it (HO-7). */
  readonly isWaived: boolean;
}

/**
 * `asked`: the server names its CAs in a handshake; `started`: the process began with a file, or a revision, that holds the CA;
 * `reloaded`: it reads again by itself, and has had the time it is known to need; `reported`: the agent of the node has seen it.
 */
export type ReceiptKind = 'asked' | 'started' | 'reloaded' | 'reported';

/** Asks everybody who verifies, and looks at everybody who shows. */
export interface Receipts {
  /** Everybody who verifies what this signer signs, and whether they have loaded this CA. Nobody is left out for not answering. */
  of(signer: ObjectRef, ca: Certificate): Promise<readonly Receipt[]>;
  /** Everybody who shows what this signer signs, and whether they still show something of an older one. */
  shown(signer: ObjectRef, family: ShownOf): Promise<readonly Receipt[]>;
}

/** The CAs of a family, as far as somebody may show what they have signed. */
export interface ShownOf {
  readonly current: Certificate;
  readonly retiring: readonly Certificate[];
}

/** What is noted on a Secret, for people. */
export function noteOf(receipts: readonly Receipt[]): string {
  return JSON.stringify(
    receipts.map(({ verifier, node, kind, evidence, isLoaded, isWaived }) => ({
      verifier,
      node,
      kind,
      evidence,
      isLoaded,
      ...(isWaived && { isWaived }),
    })),
  );
}

/** More than this nobody has noted. */
const LONGEST_TEXT = 256 * 1024;

/** What stands on a Secret, as the operator of its signer noted it; undefined: nothing, or nothing that can be understood. */
export function notedReceipts(text: string | undefined): Receipt[] | undefined {
  if (text === undefined || text.length > LONGEST_TEXT) return undefined;
  try {
    const found: unknown = JSON.parse(text);
    return Array.isArray(found) ? found.map(receiptFrom) : undefined;
  } catch {
    return undefined;
  }
}

function receiptFrom(value: unknown): Receipt {
  const { verifier, node, kind, isLoaded, evidence, isWaived } = (value ?? {}) as Record<string, unknown>;
  if (typeof verifier !== 'string' || typeof evidence !== 'string' || !KINDS.some(known => known === kind))
    throw new TypeError('expected a verifier with its evidence');
  return {
    verifier,
    node: typeof node === 'string' ? node : undefined,
    kind: kind as ReceiptKind,
    isLoaded: isLoaded === true,
    evidence,
    isWaived: isWaived === true,
  };
}

const KINDS: readonly ReceiptKind[] = ['asked', 'started', 'reloaded', 'reported'];
