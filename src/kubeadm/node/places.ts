import { posix } from 'node:path';
import { KUBEADM_CHAINS, type KubeadmChain, type SignerName, signerNamed } from '../chains.ts';
import {
  CERTIFICATES_DIRECTORY,
  KUBELET_CLIENT_FILE,
  KUBELET_DIRECTORY,
  KUBERNETES_DIRECTORY,
  OWN_DIRECTORY,
} from '../names.ts';

/** Where everything of a node is, as paths of the host. */
export interface Places {
  readonly certificates: string;
  readonly serviceAccountKey: string;
  readonly serviceAccountPublic: string;
  /** What only this agent reads and writes; 0700. */
  readonly own: string;
  /** What kube-controller-manager signs with, once that is apart from `ca.crt` (KA-7). */
  readonly signing: PairPlace;
  /** Copies of files as they were before a hand-over changed them; below it their whole path. */
  readonly before: string;
  /** There as long as the kubelet has to be restarted. */
  readonly kubeletRestart: string;
  /** The key of a certificate that has been asked for. */
  readonly kubeletKey: string;
}

export interface PairPlace {
  readonly certificate: string;
  readonly key: string;
}

export const MANIFESTS = `${KUBERNETES_DIRECTORY}/manifests`;
export const KUBELET_CONF = 'kubelet.conf';
export const KUBELET_CLIENT = `${KUBELET_DIRECTORY}/${KUBELET_CLIENT_FILE}`;
export const KUBELET_UNIT = 'kubelet.service';
export const KEY_MODE = 0o600;
export const OWN_MODE = 0o700;

export function placesOf(certificates: string = CERTIFICATES_DIRECTORY): Places {
  const own = posix.join(certificates, OWN_DIRECTORY);
  return {
    certificates,
    serviceAccountKey: posix.join(certificates, 'sa.key'),
    serviceAccountPublic: posix.join(certificates, 'sa.pub'),
    own,
    signing: pairAt(own, 'signing-ca'),
    before: posix.join(own, 'before'),
    kubeletRestart: posix.join(own, 'kubelet-restart'),
    kubeletKey: posix.join(own, 'kubelet-client.key'),
  };
}

export function signerPlace({ certificates }: Places, name: SignerName): PairPlace {
  return pairAt(certificates, signerNamed(name).base);
}

/** Where a leaf that has files of its own is; undefined: it is inside a kubeconfig. */
export function leafPlace({ certificates }: Places, { target }: KubeadmChain): PairPlace | undefined {
  return target.kind === 'pair' ? pairAt(certificates, target.base) : undefined;
}

export function kubeconfigPlace(file: string): string {
  return posix.join(KUBERNETES_DIRECTORY, file);
}

export function manifestPlace(component: string): string {
  return posix.join(MANIFESTS, `${component}.yaml`);
}

/** The files with a client certificate inside, by name. */
export const KUBECONFIGS: readonly string[] = KUBEADM_CHAINS.flatMap(({ target }) =>
  target.kind === 'kubeconfig' ? [target.file] : [],
);

function pairAt(directory: string, base: string): PairPlace {
  return { certificate: posix.join(directory, `${base}.crt`), key: posix.join(directory, `${base}.key`) };
}
