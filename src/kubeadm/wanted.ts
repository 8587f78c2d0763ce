import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import type { SignerName } from './chains.ts';
import {
  isDigest,
  isFields,
  isMoment,
  isPublished,
  isSignerName,
  type Published,
  type Reader,
  readJson,
} from './exchange.ts';
import { PKI_NAMESPACE } from './names.ts';

/**
 * What the files and processes of one node are to be like. The operator alone writes it, one ConfigMap a node, and changes it for one node
 * at a time (spec 80, KA-6); the agent of the node makes it so, and says in its report when it is done. There are no private keys in it.
 */
export interface Wanted {
  /** One thing that is asked of the node, as a whole; the report repeats it when it is done. */
  readonly round: string;
  /** What this node copies with its keys into Secrets, where that is not there yet (KA-2). */
  readonly publishes: readonly Published[];
  /** A CA that is not named stays as it is. */
  readonly signers: Readonly<Partial<Record<SignerName, WantedSigner>>>;
  /** kube-controller-manager signs with files of its own (KA-7); else with those that kubeadm names. */
  readonly isSeparate: boolean;
  /** A leaf, by the name of its chain, has to begin at this moment or later, or is made anew; `kubelet.conf` is the kubelet's own. */
  readonly leaves: Readonly<Record<string, string>>;
  /** Absent: the keys of service accounts stay as they are. */
  readonly serviceAccount?: WantedServiceAccount | undefined;
}

export interface WantedSigner {
  /** The certificates of the file, one after the other; the one that `signs` stands first (KA-8). */
  readonly bundle: string;
  /** Which of them signs leaves on this node, by its digest; its key belongs into the key file. */
  readonly signs: string;
}

export interface WantedServiceAccount {
  /** The public keys in `sa.pub`, as PEM blocks one after the other; that of `signs` first. */
  readonly publicKeys: string;
  /** The key in `sa.key`, by the SHA-256 of its public half (SPKI, DER) in hex. */
  readonly signs: string;
}

const WANTED_KEY = 'wanted.json';
/** A node has three CAs of at most two generations; more is no order of ours. */
const LONGEST_TEXT = 256 * 1024;
const MOST_LEAVES = 64;
const LONGEST_ROUND = 128;

/** The ConfigMap in which the agent of a node finds what is wanted. */
export function wantedKey(nodeName: string): { readonly namespace: string; readonly name: string } {
  return { namespace: PKI_NAMESPACE, name: `node-${nodeName}` };
}

/** The data of that ConfigMap. */
export function encodeWanted(wanted: Wanted): Record<string, string> {
  return { [WANTED_KEY]: JSON.stringify(wanted) };
}

/** What is wanted; undefined: nothing, or nothing that can be understood, which is nothing to act on. */
export function decodeWanted(configMap: Pick<ConfigMap, 'data'> | undefined): Wanted | undefined {
  return readJson(configMap?.data?.[WANTED_KEY], LONGEST_TEXT, isWanted);
}

const isWanted: Reader<Wanted> = (value): value is Wanted => {
  if (!isFields(value)) return false;
  const { round, publishes, signers, isSeparate, leaves, serviceAccount } = value;
  return (
    typeof round === 'string' &&
    round !== '' &&
    round.length <= LONGEST_ROUND &&
    Array.isArray(publishes) &&
    publishes.every(isPublished) &&
    isFields(signers) &&
    Object.entries(signers).every(([name, signer]) => isSignerName(name) && isWantedSigner(signer)) &&
    typeof isSeparate === 'boolean' &&
    isFields(leaves) &&
    Object.keys(leaves).length <= MOST_LEAVES &&
    Object.values(leaves).every(isMoment) &&
    (serviceAccount === undefined || isServiceAccount(serviceAccount))
  );
};

function isWantedSigner(value: unknown): value is WantedSigner {
  return isFields(value) && typeof value.bundle === 'string' && value.bundle !== '' && isDigest(value.signs);
}

function isServiceAccount(value: unknown): value is WantedServiceAccount {
  return isFields(value) && typeof value.publicKeys === 'string' && isDigest(value.signs);
}
