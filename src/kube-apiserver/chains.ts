import type { UserInfo } from '../pki/user.ts';

/** One rotation unit of the kube-apiserver operator as data (spec 20, 1.1). Days are scaled by the rotation day. */
export interface Chain {
  readonly controller: string;
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
}

export type ChainCreator =
  | { readonly kind: 'client'; readonly user: UserInfo }
  | { readonly kind: 'serving'; readonly hostnames: readonly string[] | DynamicHostnames };

export type DynamicHostnames = 'service-network' | 'external-load-balancer' | 'internal-load-balancer';

const OPERATOR = 'openshift-kube-apiserver-operator';
const OPERAND = 'openshift-kube-apiserver';
const MANAGED = 'openshift-config-managed';

const MONTH = { validityDays: 30, refreshDays: 15 };
const YEAR = { validityDays: 365, refreshDays: 292 };
const DECADE = { validityDays: 3650, refreshDays: 2920 };

const aggregator = signer('aggregator-client-signer', MONTH);
const kubelet = signer('kube-apiserver-to-kubelet-signer', YEAR);
const localhost = signer('localhost-serving-signer', DECADE);
const serviceNetwork = signer('service-network-serving-signer', DECADE);
const loadBalancer = signer('loadbalancer-serving-signer', DECADE);
const recovery = signer('localhost-recovery-serving-signer', DECADE);
const controlPlane = signer('kube-control-plane-signer', { validityDays: 60, refreshDays: 30 });
const nodeAdmin = signer('node-system-admin-signer', YEAR);

const loadBalancerCA = { namespace: OPERATOR, name: 'loadbalancer-serving-ca' };
const controlPlaneCA = { namespace: OPERATOR, name: 'kube-control-plane-signer-ca' };

/** The twelve chains, in the operator's order. */
export const KUBE_APISERVER_CHAINS: readonly Chain[] = [
  {
    controller: 'AggregatorProxyClientCert',
    signer: aggregator,
    bundle: { namespace: MANAGED, name: 'kube-apiserver-aggregator-client-ca' },
    target: client(OPERAND, 'aggregator-client', { name: 'system:openshift-aggregator' }),
  },
  {
    controller: 'KubeAPIServerToKubeletClientCert',
    signer: kubelet,
    bundle: { namespace: OPERATOR, name: 'kube-apiserver-to-kubelet-client-ca' },
    target: client(OPERAND, 'kubelet-client', { name: 'system:kube-apiserver', groups: ['kube-master'] }),
  },
  {
    controller: 'LocalhostServing',
    signer: localhost,
    bundle: { namespace: OPERATOR, name: 'localhost-serving-ca' },
    target: serving('localhost-serving-cert-certkey', ['localhost', '127.0.0.1']),
  },
  {
    controller: 'ServiceNetworkServing',
    signer: serviceNetwork,
    bundle: { namespace: OPERATOR, name: 'service-network-serving-ca' },
    target: serving('service-network-serving-certkey', 'service-network'),
  },
  {
    controller: 'ExternalLoadBalancerServing',
    signer: loadBalancer,
    bundle: loadBalancerCA,
    target: serving('external-loadbalancer-serving-certkey', 'external-load-balancer'),
  },
  {
    controller: 'InternalLoadBalancerServing',
    signer: loadBalancer,
    bundle: loadBalancerCA,
    target: serving('internal-loadbalancer-serving-certkey', 'internal-load-balancer'),
  },
  {
    controller: 'LocalhostRecoveryServing',
    signer: recovery,
    bundle: { namespace: OPERATOR, name: 'localhost-recovery-serving-ca' },
    target: serving('localhost-recovery-serving-certkey', ['localhost-recovery'], DECADE),
  },
  {
    controller: 'KubeControllerManagerClient',
    signer: controlPlane,
    bundle: controlPlaneCA,
    target: client(MANAGED, 'kube-controller-manager-client-cert-key', { name: 'system:kube-controller-manager' }),
  },
  {
    controller: 'KubeSchedulerClient',
    signer: controlPlane,
    bundle: controlPlaneCA,
    target: client(MANAGED, 'kube-scheduler-client-cert-key', { name: 'system:kube-scheduler' }),
  },
  {
    controller: 'ControlPlaneNodeAdminClient',
    signer: controlPlane,
    bundle: controlPlaneCA,
    target: client(OPERAND, 'control-plane-node-admin-client-cert-key', {
      name: 'system:control-plane-node-admin',
      groups: ['system:masters'],
    }),
  },
  {
    controller: 'CheckEndpointsClient',
    signer: controlPlane,
    bundle: controlPlaneCA,
    target: client(OPERAND, 'check-endpoints-client-cert-key', {
      name: 'system:serviceaccount:openshift-kube-apiserver:check-endpoints',
    }),
  },
  {
    controller: 'NodeSystemAdminClient',
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

type Lifetime = Pick<CertificateObject, 'validityDays' | 'refreshDays'>;

function signer(name: string, lifetime: Lifetime): CertificateObject {
  return { namespace: OPERATOR, name, ...lifetime };
}

function client(namespace: string, name: string, user: UserInfo, lifetime: Lifetime = MONTH): Chain['target'] {
  return { namespace, name, ...lifetime, creator: { kind: 'client', user } };
}

function serving(
  name: string,
  hostnames: readonly string[] | DynamicHostnames,
  lifetime: Lifetime = MONTH,
): Chain['target'] {
  return { namespace: OPERAND, name, ...lifetime, creator: { kind: 'serving', hostnames } };
}
