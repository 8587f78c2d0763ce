import { posix } from 'node:path';
import { KUBEADM_CHAINS, KUBEADM_SIGNERS, type KubeadmChain, type KubeadmSigner } from './chains.ts';

/** The files of one node in a folder: where they are, and which of them it ought to have. Paths are relative, with slashes. */
export interface NodeFolder {
  /** The folder of certificates; empty: the folder itself. */
  readonly certificates: string;
  /** The folder of kubeconfigs; undefined: it is not part of what is looked at. */
  readonly kubeconfigs: string | undefined;
  readonly role: 'control-plane' | 'worker';
  readonly etcd: 'stacked' | 'external';
}

/** A file that has a place in the layout. */
export type KnownFile =
  | { readonly path: string; readonly signer: KubeadmSigner; readonly isExpected: boolean }
  | { readonly path: string; readonly chain: KubeadmChain; readonly isExpected: boolean };

/** Only a folder that kubeadm has filled has any of these. */
const SIGNS_OF_CONTROL_PLANE = [
  'apiserver.crt',
  'apiserver-kubelet-client.crt',
  'front-proxy-ca.crt',
  'front-proxy-client.crt',
  'sa.pub',
  'sa.key',
] as const;

/** Only members of a stacked etcd have any of these; with an external one there may be a CA and a client's pair. */
const SIGNS_OF_MEMBER = ['etcd/server.crt', 'etcd/peer.crt', 'etcd/healthcheck-client.crt', 'etcd/ca.key'] as const;

const KUBECONFIGS = KUBEADM_CHAINS.flatMap(({ target }) => (target.kind === 'kubeconfig' ? [target.file] : []));

/** Finds the nodes whose files are among these; a folder of copies may hold several. */
export function nodeFoldersIn(paths: ReadonlySet<string>): NodeFolder[] {
  const folders = [...new Set([...paths].map(path => folderOf(path)))].sort();
  return folders.flatMap(certificates => {
    const has = (file: string) => paths.has(posix.join(certificates, file));
    const isControlPlane = SIGNS_OF_CONTROL_PLANE.some(has);
    const kubeconfigs = kubeconfigsFor(certificates, paths);
    const isBeside = kubeconfigs === certificates || kubeconfigs === folderOf(certificates);
    const isWorker = has('ca.crt') && isBeside && paths.has(posix.join(kubeconfigs ?? '', 'kubelet.conf'));
    if (!isControlPlane && !isWorker) return [];
    const manifest = (pod: string) =>
      kubeconfigs !== undefined && paths.has(posix.join(kubeconfigs, 'manifests', `${pod}.yaml`));
    const isMember = manifest('kube-apiserver') ? manifest('etcd') : SIGNS_OF_MEMBER.some(has);
    const role = isControlPlane ? 'control-plane' : 'worker';
    return [{ certificates, kubeconfigs, role, etcd: isMember ? 'stacked' : 'external' }];
  });
}

/** Every file that the layout knows, in kubeadm's order: leaves, then CAs. */
export function knownFilesOf({ certificates, kubeconfigs, role, etcd }: NodeFolder): KnownFile[] {
  const isControlPlane = role === 'control-plane';
  const isOurs = (signer: string) => isControlPlane && (signer !== 'etcd-ca' || etcd === 'stacked');
  const leaves = KUBEADM_CHAINS.flatMap((chain): KnownFile[] => {
    const { target, signer, isOptional = false, renewedBy } = chain;
    if (target.kind === 'pair') {
      const path = posix.join(certificates, `${target.base}.crt`);
      return [{ path, chain, isExpected: isOurs(signer) && !isOptional }];
    }
    if (kubeconfigs === undefined) return [];
    // A folder without the kubelet's file is a copy of what kubeadm keeps, and that is not among it.
    return [
      { path: posix.join(kubeconfigs, target.file), chain, isExpected: isControlPlane && renewedBy === 'kubeadm' },
    ];
  });
  const signers = KUBEADM_SIGNERS.map(signer => ({
    path: posix.join(certificates, `${signer.base}.crt`),
    signer,
    isExpected: isOurs(signer.name) || signer.name === 'ca',
  }));
  return [...leaves, ...signers];
}

/** Where the kubeconfigs of a folder of certificates are: in the nearest folder around it that has any, or where kubeadm puts them. */
function kubeconfigsFor(certificates: string, paths: ReadonlySet<string>): string | undefined {
  for (let at = certificates; ; at = folderOf(at)) {
    if (KUBECONFIGS.some(file => paths.has(posix.join(at, file)))) return at;
    if (at === '') break;
  }
  return posix.basename(certificates) === 'pki' ? folderOf(certificates) : undefined;
}

/** The folder of a path; empty for the outermost. */
function folderOf(path: string): string {
  const folder = posix.dirname(path);
  return folder === '.' ? '' : folder;
}
