import type { KeyObject } from 'node:crypto';
import type { CertificateAndKey } from '../../pki/authority.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { caDigest } from '../../trust/receipts.ts';
import type { KubeadmChain, SignerName } from '../chains.ts';
import type { Published } from '../exchange.ts';
import type { BeforeCopy } from './before.ts';
import type { FileText } from './file-text.ts';
import type { KubeconfigText } from './kubeconfig-text.ts';
import type { ManifestText } from './manifest-text.ts';
import type { PairPlace, Places } from './places.ts';

/** Everything of a node that decisions are made from. It holds private keys: it is never logged and never leaves the process. */
export interface NodeSight {
  readonly nodeName: string;
  readonly places: Places;
  readonly role: 'control-plane' | 'worker';
  readonly etcd: 'stacked' | 'external';
  readonly signers: ReadonlyMap<SignerName, SignerFiles>;
  /** The pair that kube-controller-manager may sign with apart from `ca.crt`. */
  readonly signing: SignerFiles | undefined;
  readonly leaves: ReadonlyMap<string, LeafFiles>;
  readonly kubeconfigs: ReadonlyMap<string, KubeconfigFile>;
  readonly pods: ReadonlyMap<Component, StaticPod>;
  readonly kubelet: KubeletSight;
  readonly serviceAccount: ServiceAccountFiles | undefined;
  /** Key pairs that can be had, by the digest of the CA. */
  readonly keys: ReadonlyMap<string, CertificateAndKey>;
  /** Keys for tokens that can be had, as PEM, by the digest of their public half. */
  readonly tokenKeys: ReadonlyMap<string, string>;
  readonly before: ReadonlyMap<string, BeforeCopy>;
  /** What there is below our own folder: nothing at all, or copies among it. */
  readonly own: { readonly isEmpty: boolean; readonly hasBefore: boolean };
  /** What has a Secret. */
  readonly published: ReadonlySet<Published>;
  /** Pairs of files whose change was begun. */
  readonly begun: readonly BegunPair[];
  /** What cannot be read; for people. Nothing is written as long as there is any. */
  readonly faults: readonly string[];
}

/** In the order in which they are restarted: those first that others do not wait for. */
export const COMPONENTS = ['kube-controller-manager', 'kube-scheduler', 'etcd', 'kube-apiserver'] as const;
export type Component = (typeof COMPONENTS)[number];

export interface SignerFiles {
  readonly place: PairPlace;
  readonly file: FileText;
  /** Never empty. */
  readonly cas: readonly Certificate[];
  readonly keyFile: FileText | undefined;
  /** The key, where it belongs to the first CA. */
  readonly key: KeyObject | undefined;
}

export interface LeafFiles {
  readonly chain: KubeadmChain;
  readonly place: PairPlace | undefined;
  /** What the certificate is in. */
  readonly file: FileText;
  readonly keyFile: FileText | undefined;
  readonly certificate: Certificate;
  /** Certificates in the file; one is what kubeadm writes. */
  readonly count: number;
  readonly keyFits: boolean;
  /** The CA of this node that signed it. */
  readonly signedBy: Certificate | undefined;
}

export interface KubeconfigFile {
  readonly file: FileText;
  readonly config: KubeconfigText;
  /** Those in the file itself. */
  readonly authorities: readonly Certificate[];
}

export interface StaticPod {
  readonly component: Component;
  readonly file: FileText;
  readonly manifest: ManifestText;
  /** Files that it reads only when it starts. */
  readonly inputs: readonly FileText[];
  /** Over what is in them. */
  readonly digest: string;
  readonly running: RunningPod | undefined;
}

/** A static pod as the API shows it. */
export interface RunningPod {
  readonly startedAt: Date;
  readonly restart: string | undefined;
  readonly command: readonly string[];
  readonly isReady: boolean;
}

export interface KubeletSight {
  /** When its process began; undefined: no such process can be seen. */
  readonly startedAt: Date | undefined;
  /** This agent has begun to change what it reads only at its start. */
  readonly mustRestart: boolean;
  /** The key of a certificate that was asked for and has not arrived. */
  readonly askedWith: string | undefined;
}

export interface ServiceAccountFiles {
  readonly keyFile: FileText | undefined;
  readonly publicFile: FileText;
  /** By digest of the public half. */
  readonly signs: string | undefined;
  readonly accepts: readonly string[];
}

/** A certificate, and mostly its key, that lie beside their places. */
export interface BegunPair {
  readonly place: PairPlace;
  /** The key is in its place already: only the certificate is to follow. */
  readonly isKeyInPlace: boolean;
}

export function digestsOf(cas: readonly Certificate[]): string[] {
  return cas.map(caDigest);
}

export function isNewer(file: Pick<FileText, 'modifiedAt'>, startedAt: Date): boolean {
  return file.modifiedAt >= startedAt;
}

/** The files that a static pod began before, as far as one can tell. */
export function behindOf({ running, digest, inputs }: StaticPod): readonly FileText[] {
  if (running === undefined || running.restart === digest) return [];
  const newer = inputs.filter(file => isNewer(file, running.startedAt));
  // It says what it began with, and that is something else.
  return running.restart !== undefined && newer.length === 0 ? inputs : newer;
}

/** Whether what runs was started with this manifest. */
export function isOfManifest({ manifest, running }: StaticPod): boolean {
  return running?.restart === manifest.restart && running?.command.join('\0') === manifest.command.join('\0');
}

/** Whether what its manifest says runs, and is well. */
export function isAsWritten(pod: StaticPod): boolean {
  return pod.running !== undefined && pod.running.isReady && isOfManifest(pod);
}
