import type { Certificate } from '../pki/certificate.ts';
import type { ObjectRef } from '../trust/object.ts';

/** What is known of one verifier and one CA (spec 90, section 3). */
export interface Receipt {
  /** `kubelet on worker-0`. */
  readonly verifier: string;
  /** Where it runs; undefined: not on a node. */
  readonly node: string | undefined;
  /** How it is known, or would be. */
  readonly kind: ReceiptKind;
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

/** Asks everybody who verifies. */
export interface Receipts {
  /** Everybody who verifies what this signer signs, and whether they have loaded this CA. Nobody is left out for not answering. */
  of(signer: ObjectRef, ca: Certificate): Promise<readonly Receipt[]>;
}
