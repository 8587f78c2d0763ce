import { posix } from 'node:path';
import type { Certificate } from '../pki/certificate.ts';
import { KUBEADM_CHAINS, KUBEADM_SIGNERS, type KubeadmChain, type KubeadmSigner, signerNamed } from './chains.ts';

/** Tells by its names what a certificate is in kubeadm's layout, wherever it lies; undefined: none of kubeadm's. */
export function recognise(certificate: Certificate, path: string): KubeadmChain | KubeadmSigner | undefined {
  const { subject, issuer, isCA } = certificate;
  if (isCA) return KUBEADM_SIGNERS.find(({ commonName }) => commonName === subject.commonName);
  const fitting = KUBEADM_CHAINS.filter(
    ({ signer, creator }) =>
      // The next CA is called `<old common name>@<seconds>` (KA-8).
      issuer.commonName.replace(/@\d+$/, '') === signerNamed(signer).commonName &&
      fits(subject.commonName, creator.kind === 'client' ? creator.user.name : creator.commonName),
  );
  // What a member of etcd shows to clients and to other members has the same names: the file tells.
  return fitting.length > 1 ? fitting.find(chain => baseOf(chain) === posix.basename(path, '.crt')) : fitting[0];
}

function fits(name: string, pattern: string): boolean {
  const at = pattern.indexOf('<node>');
  return at < 0 ? name === pattern : name.length > at && name.startsWith(pattern.slice(0, at));
}

function baseOf({ target }: KubeadmChain): string {
  return posix.basename(target.kind === 'pair' ? target.base : target.file);
}
