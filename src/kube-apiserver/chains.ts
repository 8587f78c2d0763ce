import type { AdditionalAnnotations } from '../certrotation/annotations.ts';
import type { UserInfo } from '../pki/user.ts';
import {
  MANAGED_NAMESPACE as MANAGED,
  OPERAND_NAMESPACE as OPERAND,
  OPERATOR_NAMESPACE as OPERATOR,
} from './namespaces.ts';

/** One rotation unit of the kube-apiserver operator as data (spec 20, 1.1). Days are scaled by the rotation day. */
export interface Chain {
  readonly controller: string;
  /** What the target is for, in one sentence. */
  readonly purpose: string;
  readonly signer: CertificateObject;
  readonly bundle: ObjectName;
  readonly target: CertificateObject & { readonly creator: ChainCreator };
}

export interface ObjectName {
  readonly namespace: string;
  readonly name: string;
}

export interface CertificateObject extends ObjectName {
  readonly validityDays: number;
  readonly refreshDays: number;
  /** What 4.16 does differently; our operator scales every chain, and recovery replaces only what is expired in every chain. */
  readonly in416: {
    /** The rotation base replaces the day (spec 20, 1.9). */
    readonly scaled: boolean;
    /** The regeneration controller limits itself to what is expired (spec 20, 5.2 and trap 10.1.6). */
    readonly recoversOnlyExpired: boolean;
  };
}

export type ChainCreator =
  | { readonly kind: 'client'; readonly user: UserInfo }
  | { readonly kind: 'serving'; readonly hostnames: readonly string[] | DynamicHostnames };

export type DynamicHostnames = 'service-network' | 'external-load-balancer' | 'internal-load-balancer';

/** Noted on every signer, bundle and target, and nothing else: 4.16 sets no description (spec 20, 1.1). */
export const CHAIN_ANNOTATIONS: AdditionalAnnotations = { jiraComponent: 'kube-apiserver' };

const MONTH = { validityDays: 30, refreshDays: 15, isScaled: true };
const TWO_MONTHS = { validityDays: 60, refreshDays: 30 };
const YEAR = { validityDays: 365, refreshDays: 292 };
const DECADE = { validityDays: 3650, refreshDays: 2920 };

const aggregator = signer('aggregator-client-signer', MONTH);
const kubelet = signer('kube-apiserver-to-kubelet-signer', YEAR);
const localhost = signer('localhost-serving-signer', DECADE);
const serviceNetwork = signer('service-network-serving-signer', DECADE);
const loadBalancer = signer('loadbalancer-serving-signer', DECADE);
const recovery = signer('localhost-recovery-serving-signer', { ...DECADE, isRecovery: true });
const controlPlane = signer('kube-control-plane-signer', TWO_MONTHS);
const nodeAdmin = signer('node-system-admin-signer', YEAR);

const loadBalancerCA = { namespace: OPERATOR, name: 'loadbalancer-serving-ca' };
const controlPlaneCA = { namespace: OPERATOR, name: 'kube-control-plane-signer-ca' };

/** The twelve chains, in the operator's order. */
export const KUBE_APISERVER_CHAINS: readonly Chain[] = [
  {
    controller: 'AggregatorProxyClientCert',
    purpose: 'kube-apiserver shows it to aggregated API servers when it forwards requests.',
    signer: aggregator,
    bundle: { namespace: MANAGED, name: 'kube-apiserver-aggregator-client-ca' },
    target: client(OPERAND, 'aggregator-client', { name: 'system:openshift-aggregator' }),
  },
  {
    controller: 'KubeAPIServerToKubeletClientCert',
    purpose: 'kube-apiserver shows it to kubelets, for logs, exec and metrics.',
    signer: kubelet,
    bundle: { namespace: OPERATOR, name: 'kube-apiserver-to-kubelet-client-ca' },
    target: client(OPERAND, 'kubelet-client', { name: 'system:kube-apiserver', groups: ['kube-master'] }),
  },
  {
    controller: 'LocalhostServing',
    purpose: 'kube-apiserver serves it to clients on its own node.',
    signer: localhost,
    bundle: { namespace: OPERATOR, name: 'localhost-serving-ca' },
    target: serving('localhost-serving-cert-certkey', ['localhost', '127.0.0.1']),
  },
  {
    controller: 'ServiceNetworkServing',
    purpose: 'kube-apiserver serves it to pods, and to whoever asks for no known name.',
    signer: serviceNetwork,
    bundle: { namespace: OPERATOR, name: 'service-network-serving-ca' },
    target: serving('service-network-serving-certkey', 'service-network'),
  },
  {
    controller: 'ExternalLoadBalancerServing',
    purpose: 'kube-apiserver serves it to clients outside the cluster.',
    signer: loadBalancer,
    bundle: loadBalancerCA,
    target: serving('external-loadbalancer-serving-certkey', 'external-load-balancer'),
  },
  {
    controller: 'InternalLoadBalancerServing',
    purpose: 'kube-apiserver serves it to kubelets and control-plane components.',
    signer: loadBalancer,
    bundle: loadBalancerCA,
    target: serving('internal-loadbalancer-serving-certkey', 'internal-load-balancer'),
  },
  {
    controller: 'LocalhostRecoveryServing',
    purpose: 'kube-apiserver serves it to the side containers that bring an expired cluster back.',
    signer: recovery,
    bundle: { namespace: OPERATOR, name: 'localhost-recovery-serving-ca' },
    target: serving('localhost-recovery-serving-certkey', ['localhost-recovery'], { ...DECADE, isRecovery: true }),
  },
  {
    controller: 'KubeControllerManagerClient',
    purpose: 'kube-controller-manager shows it to kube-apiserver.',
    signer: controlPlane,
    bundle: controlPlaneCA,
    target: client(MANAGED, 'kube-controller-manager-client-cert-key', { name: 'system:kube-controller-manager' }),
  },
  {
    controller: 'KubeSchedulerClient',
    purpose: 'kube-scheduler shows it to kube-apiserver.',
    signer: controlPlane,
    bundle: controlPlaneCA,
    target: client(MANAGED, 'kube-scheduler-client-cert-key', { name: 'system:kube-scheduler' }),
  },
  {
    controller: 'ControlPlaneNodeAdminClient',
    purpose: 'Programs inside the static pod show it to kube-apiserver as an administrator.',
    signer: controlPlane,
    bundle: controlPlaneCA,
    target: client(OPERAND, 'control-plane-node-admin-client-cert-key', {
      name: 'system:control-plane-node-admin',
      groups: ['system:masters'],
    }),
  },
  {
    controller: 'CheckEndpointsClient',
    purpose: 'The check-endpoints container shows it to kube-apiserver.',
    signer: controlPlane,
    bundle: controlPlaneCA,
    target: client(OPERAND, 'check-endpoints-client-cert-key', {
      name: 'system:serviceaccount:openshift-kube-apiserver:check-endpoints',
    }),
  },
  {
    controller: 'NodeSystemAdminClient',
    purpose: 'An administrator who is logged in to a control-plane node shows it to kube-apiserver.',
    signer: nodeAdmin,
    bundle: { namespace: OPERATOR, name: 'node-system-admin-ca' },
    target: client(
      OPERATOR,
      'node-system-admin-client',
      { name: 'system:admin', groups: ['system:masters'] },
      { validityDays: 730, refreshDays: 30 },
    ),
  },
];

/** Validity and refresh in milliseconds when a day of rotation lasts `dayMs`. */
export function lifetimeOf(
  { validityDays, refreshDays }: Pick<CertificateObject, 'validityDays' | 'refreshDays'>,
  dayMs: number,
): { validityMs: number; refreshMs: number } {
  return { validityMs: validityDays * dayMs, refreshMs: refreshDays * dayMs };
}

/** Each signer once, with the chains that share it, in the order of the table. */
export function signersOf(
  chains: readonly Chain[],
): { signer: CertificateObject; bundle: ObjectName; chains: Chain[] }[] {
  const bySigner = Map.groupBy(chains, chain => `${chain.signer.namespace}/${chain.signer.name}`);
  return [...bySigner.values()].map(sharing => {
    const [{ signer: shared, bundle }] = sharing as [Chain, ...Chain[]];
    return { signer: shared, bundle, chains: sharing };
  });
}

interface Lifetime {
  readonly validityDays: number;
  readonly refreshDays: number;
  readonly isScaled?: boolean;
  readonly isRecovery?: boolean;
}

function certificate(
  namespace: string,
  name: string,
  { validityDays, refreshDays, isScaled = false, isRecovery = false }: Lifetime,
): CertificateObject {
  return { namespace, name, validityDays, refreshDays, in416: { scaled: isScaled, recoversOnlyExpired: !isRecovery } };
}

function signer(name: string, lifetime: Lifetime): CertificateObject {
  return certificate(OPERATOR, name, lifetime);
}

function client(namespace: string, name: string, user: UserInfo, lifetime: Lifetime = MONTH): Chain['target'] {
  return { ...certificate(namespace, name, lifetime), creator: { kind: 'client', user } };
}

function serving(
  name: string,
  hostnames: readonly string[] | DynamicHostnames,
  lifetime: Lifetime = MONTH,
): Chain['target'] {
  return { ...certificate(OPERAND, name, lifetime), creator: { kind: 'serving', hostnames } };
}
