import type { ObjectRef } from '../trust/object.ts';

/**
 * What a person wants to know of a cluster's certificates, as plain data: printing, the plan and the web console start from here. Never
 * holds key material. Times are RFC 3339 texts.
 */
export interface Inventory {
  readonly now: string;
  readonly certificates: readonly CertificateItem[];
  readonly bundles: readonly BundleItem[];
  readonly nodes: readonly NodeItem[];
  readonly revisions: readonly RevisionItem[];
  readonly pools: readonly PoolItem[];
  /** Only where they were asked for. */
  readonly handOvers?: readonly HandOverItem[] | undefined;
}

export interface ItemMetadata {
  readonly namespace?: string | undefined;
  readonly name: string;
  readonly creationTimestamp?: string | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
}

/**
 * `Expired`: over; `Unusable`: cannot be read, or key and certificate do not fit; `NeedsAttention`: the rules give up and a person
 * has to look; `Due`: its rule has fired; `Expiring`: nobody rotates it and the end is near; `Missing`: it ought to be there and is not;
 * `Good`: none of these.
 */
export type CertificateState = 'Good' | 'Expiring' | 'Due' | 'NeedsAttention' | 'Unusable' | 'Expired' | 'Missing';

/** A Secret that holds a certificate, or one that was seen elsewhere. */
export interface CertificateItem {
  readonly metadata: ItemMetadata;
  readonly role: 'signer' | 'target' | 'unmanaged';
  readonly state: CertificateState;
  /** Why the state is not `Good`. */
  readonly problem?: string | undefined;
  readonly certificate?: CertificateFacts | undefined;
  /** Further certificates in the same file: the way up to the root. */
  readonly chainLength: number;
  /** The keys of the Secret it is in, where those are kubeconfigs. */
  readonly kubeconfigs?: readonly string[] | undefined;
  readonly component?: string | undefined;
  readonly description?: string | undefined;
  readonly purpose?: string | undefined;
  readonly next?: NextDecision | undefined;
  /** Whose key signed it, where that is an object we see. */
  readonly signedBy?: ObjectRef | undefined;
  /** Bundles that let a verifier accept it. */
  readonly trustedBy: readonly ObjectRef[];
  readonly notes: readonly string[];
  /** Of one that is in no Secret: where it was seen, and who looks after it (spec 80, 10). */
  readonly seen?: SeenCertificate | undefined;
}

/** A certificate in a file, shown by a server, or inside an object that is no TLS Secret. */
export interface SeenCertificate {
  /** Paths of files, addresses of servers, objects; a missing one's is where it ought to be. */
  readonly places: readonly string[];
  /** What it is called in the layout it belongs to; absent: in none that is known. */
  readonly knownAs?: string | undefined;
  /** The CA it belongs to, as its layout calls it; absent for a CA. */
  readonly authority?: string | undefined;
  /**
   * Who makes the next one: `rotunda`: in an adopted cluster; `kubelet`: the process that shows it, by itself; `by-hand`: somebody who runs `renewWith`; `owner`: whoever
   * brought it, since its CA has no key here; `nobody`: there is no way but a new CA, or nobody is known.
   */
  readonly renewal: 'rotunda' | 'kubelet' | 'by-hand' | 'owner' | 'nobody';
  /** When that is, where it is known. */
  readonly renewsAt?: string | undefined;
  /** The node whose files it is in, where an agent reports it. */
  readonly node?: string | undefined;
  readonly renewWith?: string | undefined;
  /** Its CA's key is not here: nothing on this machine can sign it. */
  readonly isExternal: boolean;
  readonly isMissing: boolean;
  /** It is missing where most do without. */
  readonly isNormal?: boolean | undefined;
  /** What ends with it. */
  readonly atItsEnd?: string | undefined;
}

export interface CertificateFacts {
  readonly subject: string;
  readonly issuer: string;
  readonly isSelfSigned: boolean;
  readonly isCA: boolean;
  readonly serial: string;
  readonly notBefore: string;
  readonly notAfter: string;
  /** `RSA-2048`, `P-256`, ... */
  readonly key: string;
  readonly signatureAlgorithm: string;
  /** `client`, `serving`, or an object identifier. */
  readonly usages: readonly string[];
  readonly hostnames: readonly string[];
  readonly groups: readonly string[];
  /** Of the certificate, in hexadecimal. */
  readonly sha256: string;
  /** Of its public key: equal for certificates of one key. */
  readonly keySha256: string;
}

/** What the rules say. Without `at` it is due now. */
export interface NextDecision {
  readonly action: 'keep' | 'regenerate' | 'rewrite' | 'fail';
  readonly at?: string | undefined;
  readonly rule: string;
  readonly reason: string;
}

/** A ConfigMap that holds CA certificates. */
export interface BundleItem {
  readonly metadata: ItemMetadata;
  readonly role: 'ca-bundle' | 'unmanaged';
  /** The keys of the ConfigMap that hold certificates. */
  readonly keys: readonly string[];
  readonly state: CertificateState;
  readonly problem?: string | undefined;
  readonly certificates: readonly (CertificateFacts & { readonly isExpired: boolean })[];
  readonly component?: string | undefined;
  readonly description?: string | undefined;
  readonly next?: NextDecision | undefined;
  readonly signer?: ObjectRef | undefined;
  readonly notes: readonly string[];
}

export interface NodeItem {
  readonly metadata: ItemMetadata;
  readonly roles: readonly string[];
  readonly ready: boolean | undefined;
  readonly unschedulable: boolean;
  /** Hand-overs of signers do not wait for it. */
  readonly isWaived?: boolean | undefined;
  readonly version?: string | undefined;
  readonly addresses: readonly string[];
  /** By static pod, on control-plane nodes. */
  readonly revisions: Readonly<Record<string, { readonly current: number; readonly target: number }>>;
  readonly machineConfig?: MachineConfigState | undefined;
}

export interface MachineConfigState {
  readonly current: string;
  readonly desired: string;
  readonly state: string;
  readonly reason?: string | undefined;
}

export interface RevisionItem {
  readonly metadata: ItemMetadata;
  /** The static pod it belongs to. */
  readonly operand: string;
  readonly revision: number;
  readonly reason: string;
  readonly state: 'Building' | 'RollingOut' | 'Current' | 'Kept';
  readonly nodes: readonly string[];
  readonly rollingOutTo: readonly string[];
}

export interface PoolItem {
  readonly metadata: ItemMetadata;
  readonly configuration: string;
  readonly updated: boolean;
  readonly updating: boolean;
  readonly degraded: boolean;
  readonly paused: boolean;
  readonly machineCount: number;
  readonly readyCount: number;
  readonly updatedCount: number;
  readonly unavailableCount: number;
  readonly degradedCount: number;
  readonly message?: string | undefined;
}

/** Spelt out, as everything here, so that the web page needs nothing of the operators. */
export type HandOverPhase = 'Steady' | 'Distributing' | 'Signing' | 'Retiring';

/** A signer and where its hand-over stands (spec 90), as `decide` says. */
export interface HandOverItem {
  /** Of the Secret that is asked for a new signer. */
  readonly metadata: ItemMetadata;
  /** Who hands over; that of the machine-config server is carried out by the command that begins it. */
  readonly operator: 'kube-apiserver' | 'etcd' | 'machine-config-server';
  readonly phase: HandOverPhase;
  /** Its operator says that it waits for receipts; otherwise it may go by the clock. */
  readonly isByReceipts: boolean;
  /** What its operator does next. */
  readonly write: 'nothing' | 'replace' | 'begin' | 'begin-again' | 'promote' | 'discard' | 'clear' | 'retire';
  /** Why it stands where it does. */
  readonly because: string;
  /** Why it began. */
  readonly begunBecause?: string | undefined;
  /** Since when the next one is known; in `Signing`, since when there is something new to show. */
  readonly since?: string | undefined;
  /** The names of the certificates. */
  readonly current?: string | undefined;
  readonly next?: string | undefined;
  readonly retiring: readonly string[];
  readonly leaves: readonly { readonly name: string; readonly isOfCurrent: boolean }[];
  /** Leaves that are not of the signer in use wait: somebody would refuse them. */
  readonly holdsLeaves: boolean;
  /** What verifiers said, where anybody had to be asked. */
  readonly receipts: readonly ReceiptItem[];
  /** Who asked them, or looked: the operator, whoever shows this, or nobody yet. */
  readonly receiptsFrom?: 'operator' | 'here' | undefined;
  /** What those show who show its leaves, where that decides; the same shape. */
  readonly presenters: readonly ReceiptItem[];
  readonly waitingFor: readonly string[];
  readonly leftBehind: readonly string[];
  /** From then on nobody is waited for any more (HO-7). */
  readonly waitsUntil?: string | undefined;
  /** Whoever has to have loaded a new signer before it signs. */
  readonly asks: readonly { readonly process: string; readonly nodes: string; readonly how: string }[];
  /** They verify too, and nobody can know what they have loaded. */
  readonly notCounted: readonly { readonly process: string; readonly why: string }[];
}

export interface ReceiptItem {
  readonly verifier: string;
  readonly node?: string | undefined;
  readonly kind: 'asked' | 'started' | 'reloaded' | 'reported';
  readonly isLoaded: boolean;
  readonly isWaived: boolean;
  readonly evidence: string;
}
