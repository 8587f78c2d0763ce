import type { UserInfo } from '../pki/user.ts';
import type { Use } from '../trust/graph.ts';

/** One of the three CAs, as data (spec 80, 1). `name` is what `kubeadm certs check-expiration` calls it. */
export interface KubeadmSigner {
  readonly name: SignerName;
  /** Below the folder of certificates; `.crt` and `.key` follow. */
  readonly base: string;
  readonly commonName: string;
  readonly purpose: string;
  readonly validityDays: number;
  readonly uses: readonly Use[];
}

export type SignerName = 'ca' | 'front-proxy-ca' | 'etcd-ca';

/** One leaf as data: who signs it, what is in it, who reads it, how that takes a change. */
export interface KubeadmChain {
  /** As `kubeadm certs check-expiration` and `kubeadm certs renew` call it; `kubelet.conf` is not among theirs. */
  readonly name: string;
  /** What it is for, in one sentence. */
  readonly purpose: string;
  readonly signer: SignerName;
  readonly target: KubeadmTarget;
  readonly creator: KubeadmCreator;
  readonly validityDays: number;
  readonly uses: readonly Use[];
  /** `kubelet`: the process that shows it renews it by itself; else somebody has to run kubeadm. */
  readonly renewedBy: 'kubelet' | 'kubeadm';
  /** What happens when it ends. */
  readonly atItsEnd: string;
  /** It is normal that nodes but the first do without. */
  readonly isOptional?: boolean | undefined;
}

/** `pair`: `<base>.crt` and `<base>.key` below the folder of certificates; `kubeconfig`: a file beside that folder. */
export type KubeadmTarget =
  | { readonly kind: 'pair'; readonly base: string }
  | { readonly kind: 'kubeconfig'; readonly file: string };

/** `<node>` in a name stands for the name of the node. Which host names are in it is said by what they come from. */
export type KubeadmCreator =
  | { readonly kind: 'client'; readonly user: UserInfo }
  | { readonly kind: 'serving'; readonly commonName: string; readonly hostnames: KubeadmHostnames }
  | { readonly kind: 'peer'; readonly commonName: string; readonly hostnames: KubeadmHostnames };

export type KubeadmHostnames = 'api-server' | 'etcd-server' | 'etcd-peer';

const YEAR = 365;
const DECADE = 3650;

const API = 'kube-apiserver';
const MANAGER = 'kube-controller-manager';
const SCHEDULER = 'kube-scheduler';
const ETCD = 'etcd';
const KUBELET = 'kubelet';
const PEOPLE = 'people';

/** The CAs (spec 80, 1), with who reads their certificates and how each takes a change (section 2). */
export const KUBEADM_SIGNERS: readonly KubeadmSigner[] = [
  {
    name: 'ca',
    base: 'ca',
    commonName: 'kubernetes',
    purpose:
      'Signs what kube-apiserver shows and what every client of it shows; pods, kubelets and people verify with it.',
    validityDays: DECADE,
    uses: [
      { process: API, setting: '--client-ca-file', takes: 'watch' },
      { process: MANAGER, setting: '--client-ca-file', takes: 'watch' },
      { process: MANAGER, setting: '--cluster-signing-cert-file', takes: 'watch' },
      { process: MANAGER, setting: '--root-ca-file', takes: 'restart' },
      { process: KUBELET, setting: 'authentication.x509.clientCAFile', takes: 'watch' },
    ],
  },
  {
    name: 'etcd-ca',
    base: 'etcd/ca',
    commonName: 'etcd-ca',
    purpose: 'Signs what the members of etcd show to each other and to kube-apiserver, and what their clients show.',
    validityDays: DECADE,
    uses: [
      { process: ETCD, setting: '--trusted-ca-file', takes: 'restart' },
      { process: ETCD, setting: '--peer-trusted-ca-file', takes: 'restart' },
      { process: API, setting: '--etcd-cafile', takes: 'restart' },
    ],
  },
  {
    name: 'front-proxy-ca',
    base: 'front-proxy-ca',
    commonName: 'front-proxy-ca',
    purpose: 'Signs what kube-apiserver shows to aggregated API servers.',
    validityDays: DECADE,
    uses: [
      { process: API, setting: '--requestheader-client-ca-file', takes: 'watch' },
      { process: MANAGER, setting: '--requestheader-client-ca-file', takes: 'watch' },
    ],
  },
];

/** The leaves in files and in kubeconfigs, in the order of `kubeadm certs check-expiration`. */
export const KUBEADM_CHAINS: readonly KubeadmChain[] = [
  kubeconfig(
    'admin.conf',
    { name: 'kubernetes-admin', groups: ['kubeadm:cluster-admins'] },
    PEOPLE,
    'Administrators show it to kube-apiserver; kubeadm works with it too.',
    'administrators, and kubeadm itself, are refused by kube-apiserver',
  ),
  {
    name: 'apiserver',
    purpose: 'kube-apiserver shows it to everybody who connects.',
    signer: 'ca',
    target: { kind: 'pair', base: 'apiserver' },
    creator: { kind: 'serving', commonName: 'kube-apiserver', hostnames: 'api-server' },
    validityDays: YEAR,
    uses: [{ process: API, setting: '--tls-cert-file', takes: 'watch' }],
    renewedBy: 'kubeadm',
    atItsEnd: 'every client refuses kube-apiserver: kubectl, kubelets, controllers and pods',
  },
  client(
    'apiserver-etcd-client',
    'etcd-ca',
    'apiserver-etcd-client',
    { name: 'kube-apiserver-etcd-client' },
    [{ process: API, setting: '--etcd-certfile', takes: 'per-handshake' }],
    'kube-apiserver shows it to etcd.',
    'etcd refuses kube-apiserver, which can read and write nothing any more',
  ),
  client(
    'apiserver-kubelet-client',
    'ca',
    'apiserver-kubelet-client',
    { name: 'kube-apiserver-kubelet-client' },
    [{ process: API, setting: '--kubelet-client-certificate', takes: 'per-handshake' }],
    'kube-apiserver shows it to kubelets.',
    'kubelets refuse kube-apiserver: logs, exec and port-forward fail',
  ),
  kubeconfig(
    'controller-manager.conf',
    { name: 'system:kube-controller-manager' },
    MANAGER,
    'kube-controller-manager shows it to kube-apiserver.',
    'kube-controller-manager is refused: nothing is scheduled anew, no certificate is signed',
  ),
  client(
    'etcd-healthcheck-client',
    'etcd-ca',
    'etcd/healthcheck-client',
    { name: 'kube-etcd-healthcheck-client' },
    [{ process: PEOPLE, setting: '', takes: 'on-use' }],
    'Whoever asks etcd for its health shows it.',
    'health checks of etcd with it fail',
  ),
  {
    name: 'etcd-peer',
    purpose: 'Members of etcd show it to each other.',
    signer: 'etcd-ca',
    target: { kind: 'pair', base: 'etcd/peer' },
    creator: { kind: 'peer', commonName: '<node>', hostnames: 'etcd-peer' },
    validityDays: YEAR,
    uses: [{ process: ETCD, setting: '--peer-cert-file', takes: 'per-handshake' }],
    renewedBy: 'kubeadm',
    atItsEnd: 'the other members refuse this one, and etcd may lose its quorum',
  },
  {
    name: 'etcd-server',
    purpose: 'etcd shows it to kube-apiserver.',
    signer: 'etcd-ca',
    target: { kind: 'pair', base: 'etcd/server' },
    creator: { kind: 'peer', commonName: '<node>', hostnames: 'etcd-server' },
    validityDays: YEAR,
    uses: [{ process: ETCD, setting: '--cert-file', takes: 'per-handshake' }],
    renewedBy: 'kubeadm',
    atItsEnd: 'kube-apiserver refuses etcd, and can read and write nothing any more',
  },
  client(
    'front-proxy-client',
    'front-proxy-ca',
    'front-proxy-client',
    { name: 'front-proxy-client' },
    [{ process: API, setting: '--proxy-client-cert-file', takes: 'watch' }],
    'kube-apiserver shows it to aggregated API servers.',
    'aggregated API servers refuse kube-apiserver: metrics and the like are gone',
  ),
  kubeconfig(
    'kubelet.conf',
    { name: 'system:node:<node>', groups: ['system:nodes'] },
    KUBELET,
    'The kubelet shows it to kube-apiserver.',
    'the node becomes NotReady, and cannot ask for a new certificate',
  ),
  kubeconfig(
    'scheduler.conf',
    { name: 'system:kube-scheduler' },
    SCHEDULER,
    'kube-scheduler shows it to kube-apiserver.',
    'kube-scheduler is refused: new pods stay Pending',
  ),
  {
    ...kubeconfig(
      'super-admin.conf',
      { name: 'kubernetes-super-admin', groups: ['system:masters'] },
      PEOPLE,
      'Administrators show it to kube-apiserver when authorization itself is broken; only the first control-plane node has it.',
      'this way past authorization is closed',
    ),
    isOptional: true,
  },
];

function client(
  name: string,
  signer: SignerName,
  base: string,
  user: UserInfo,
  uses: readonly Use[],
  purpose: string,
  atItsEnd: string,
): KubeadmChain {
  const creator: KubeadmCreator = { kind: 'client', user };
  const target: KubeadmTarget = { kind: 'pair', base };
  return { name, purpose, signer, target, creator, validityDays: YEAR, uses, renewedBy: 'kubeadm', atItsEnd };
}

function kubeconfig(file: string, user: UserInfo, process: string, purpose: string, atItsEnd: string): KubeadmChain {
  return {
    name: file,
    purpose,
    signer: 'ca',
    target: { kind: 'kubeconfig', file },
    creator: { kind: 'client', user },
    validityDays: YEAR,
    uses: [
      process === PEOPLE
        ? { process, setting: '', takes: 'on-use' }
        : { process, setting: '--kubeconfig', takes: 'restart' },
    ],
    renewedBy: process === KUBELET ? 'kubelet' : 'kubeadm',
    atItsEnd,
  };
}

export function signerNamed(name: SignerName): KubeadmSigner {
  return KUBEADM_SIGNERS.find(signer => signer.name === name) as KubeadmSigner;
}
