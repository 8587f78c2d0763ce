import type { Node } from 'kubernetes-types/core/v1.d.ts';
import type { SignerName } from './chains.ts';
import { isDigest, isFields, isMoment, isSignerName, type Reader, readJson } from './exchange.ts';

/** Annotation of a Node in which its agent says what is on the node (spec 90, HO-9). Only the agent of that node writes it. */
export const NODE_REPORT = 'rotunda.dev/kubeadm';

/** What the agent of a node has seen there; public, and small. The same sight gives the same text, so that nothing is written at rest. */
export interface NodeReport {
  readonly role: 'control-plane' | 'worker';
  /** Whether etcd runs on this node. */
  readonly etcd: 'stacked' | 'external';
  /** The round of `Wanted` that is carried out and was seen to work; absent: none yet. */
  readonly done?: string | undefined;
  /** What keeps the round that is wanted from being done, or what is wrong on the node, for people. */
  readonly problem?: string | undefined;
  readonly signers: Readonly<Partial<Record<SignerName, SignerSight>>>;
  /** What kube-controller-manager signs with, by the digest of the CA; absent: there is none on this node. */
  readonly signing?: { readonly ca: string; readonly isSeparate: boolean } | undefined;
  readonly serviceAccount?: ServiceAccountSight | undefined;
  /** The CAs that each kubeconfig trusts, by digest, by the name of the file; those that name a file of something else trust none. */
  readonly kubeconfigs?: Readonly<Record<string, readonly string[]>> | undefined;
  /** By the name of the chain; the kubelet's own certificate, wherever it keeps it, is `kubelet.conf`. */
  readonly leaves: Readonly<Record<string, LeafSight>>;
  /** By name: `kube-apiserver`, `kube-controller-manager`, `kube-scheduler`, `etcd`, `kubelet`. */
  readonly processes: Readonly<Record<string, ProcessSight>>;
}

export interface SignerSight {
  /** The CAs in the file, by digest, in its order. */
  readonly cas: readonly string[];
  /** Whether the key beside it belongs to the first of them; `none`: there is no key, somebody else signs. */
  readonly key: 'fits' | 'wrong' | 'none';
  /** When the first of them ends. */
  readonly ends?: string | undefined;
}

export interface ServiceAccountSight {
  /** By the SHA-256 of the public half (SPKI, DER) in hex. */
  readonly signs?: string | undefined;
  readonly accepts: readonly string[];
}

export interface LeafSight {
  /** By the SHA-256 of the certificate, in hex. */
  readonly digest: string;
  /** Who signed it, as `issuerKey` says; absent: it does not say. */
  readonly issuer?: string | undefined;
  readonly notBefore: string;
  readonly notAfter: string;
  /** Key, names or signer are not as they have to be; for people. */
  readonly problem?: string | undefined;
}

export interface ProcessSight {
  readonly startedAt: string;
  /** Files that it reads only when it starts, and that have changed since. */
  readonly behind: readonly string[];
  /** Of each CA that it reads only when it starts: what it is known to have read then. */
  readonly began: Readonly<Partial<Record<SignerName, readonly string[]>>>;
}

/** A Node has room for 256 KiB of annotations, and others need some. */
const LONGEST_TEXT = 64 * 1024;
const MOST_ENTRIES = 64;
const LONGEST_PROBLEM = 1024;

/** The text of the annotation. */
export function encodeReport(report: NodeReport): string {
  const { problem } = report;
  const bounded = problem === undefined ? report : { ...report, problem: problem.slice(0, LONGEST_PROBLEM) };
  return JSON.stringify(bounded, sortedKeys);
}

/** What a Node says; undefined where it says nothing, or nothing that can be understood: then nothing is known of it. */
export function reportOf(node: Node): NodeReport | undefined {
  return readJson(node.metadata?.annotations?.[NODE_REPORT], LONGEST_TEXT, isReport);
}

function sortedKeys(_key: string, value: unknown): unknown {
  return isFields(value) ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))) : value;
}

const isReport: Reader<NodeReport> = (value): value is NodeReport => {
  if (!isFields(value)) return false;
  const { role, etcd, done, problem, signers, signing, serviceAccount, kubeconfigs, leaves, processes } = value;
  return (
    (role === 'control-plane' || role === 'worker') &&
    (etcd === 'stacked' || etcd === 'external') &&
    isOptionalText(done) &&
    isOptionalText(problem) &&
    isMapOf(signers, isSignerSight) &&
    Object.keys(signers).every(isSignerName) &&
    (signing === undefined || (isFields(signing) && isDigest(signing.ca) && typeof signing.isSeparate === 'boolean')) &&
    (serviceAccount === undefined || isServiceAccountSight(serviceAccount)) &&
    (kubeconfigs === undefined || isMapOf(kubeconfigs, isDigests)) &&
    isMapOf(leaves, isLeafSight) &&
    isMapOf(processes, isProcessSight)
  );
};

function isMapOf<T>(value: unknown, isOne: (one: unknown) => one is T): value is Record<string, T> {
  return isFields(value) && Object.keys(value).length <= MOST_ENTRIES && Object.values(value).every(isOne);
}

function isSignerSight(value: unknown): value is SignerSight {
  return (
    isFields(value) &&
    isDigests(value.cas) &&
    ['fits', 'wrong', 'none'].includes(String(value.key)) &&
    isOptionalMoment(value.ends)
  );
}

function isServiceAccountSight(value: unknown): value is ServiceAccountSight {
  return isFields(value) && (value.signs === undefined || isDigest(value.signs)) && isDigests(value.accepts);
}

function isLeafSight(value: unknown): value is LeafSight {
  if (!isFields(value)) return false;
  const { digest, issuer, notBefore, notAfter, problem } = value;
  return (
    isDigest(digest) && isOptionalText(issuer) && isMoment(notBefore) && isMoment(notAfter) && isOptionalText(problem)
  );
}

function isProcessSight(value: unknown): value is ProcessSight {
  if (!isFields(value)) return false;
  const { startedAt, behind, began } = value;
  return (
    isMoment(startedAt) &&
    Array.isArray(behind) &&
    behind.length <= MOST_ENTRIES &&
    behind.every(file => typeof file === 'string') &&
    isMapOf(began, isDigests) &&
    Object.keys(began).every(isSignerName)
  );
}

function isOptionalMoment(value: unknown): value is string | undefined {
  return value === undefined || isMoment(value);
}

function isDigests(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length <= MOST_ENTRIES && value.every(isDigest);
}

function isOptionalText(value: unknown): value is string | undefined {
  return value === undefined || typeof value === 'string';
}
