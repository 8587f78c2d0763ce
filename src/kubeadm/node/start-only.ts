import { createHash } from 'node:crypto';
import { certificatesIn } from '../../pki/pem.ts';
import { caDigest } from '../../trust/receipts.ts';
import { digestOf, type FileText } from './file-text.ts';
import type { ManifestText } from './manifest-text.ts';
import type { Component } from './sight.ts';

/** Flags that name files which the program reads only when it starts (spec 80, section 2). */
const START_ONLY: Readonly<Record<Component, readonly string[]>> = {
  'kube-apiserver': ['etcd-cafile', 'service-account-key-file', 'service-account-signing-key-file'],
  'kube-controller-manager': [
    'root-ca-file',
    'service-account-private-key-file',
    'kubeconfig',
    'authentication-kubeconfig',
    'authorization-kubeconfig',
  ],
  'kube-scheduler': ['kubeconfig', 'authentication-kubeconfig', 'authorization-kubeconfig'],
  etcd: ['trusted-ca-file', 'peer-trusted-ca-file'],
};

/** The files that a static pod reads only when it starts, as its manifest names them; each once. */
export function startOnlyFiles(component: Component, { flags }: ManifestText): string[] {
  const files = START_ONLY[component].map(flag => flags.get(flag)).filter(file => file !== undefined);
  return [...new Set(files)].filter(file => file.startsWith('/')).sort();
}

/** Over everything in these files: what the annotation of a manifest says. */
export function restartDigest(files: readonly FileText[]): string {
  const hash = createHash('sha256');
  for (const { path, text } of files) hash.update(`${path}\0${contentDigest(text)}\n`);
  return hash.digest('hex').slice(0, DIGEST_CHARACTERS);
}

/** For whoever trusts CAs their order means nothing. */
function contentDigest(text: string): string {
  const cas = certificatesIn(text);
  return cas.length === 0 ? digestOf(text) : cas.map(caDigest).toSorted().join();
}

const DIGEST_CHARACTERS = 32;
