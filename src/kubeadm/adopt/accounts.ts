import { ROTUNDA_NAMESPACE } from '../names.ts';

/** Whom the parts of an adopted cluster are to its API; each is the name of its workload too (spec 80, KA-2). */
export const OPERATOR = 'kubeadm-operator';
/** On control-plane nodes: the only agents that may read keys of CAs. */
export const CONTROL_PLANE_AGENT = 'kubeadm-control-plane-agent';
/** On all other nodes. */
export const AGENT = 'kubeadm-agent';

export const AGENTS = [CONTROL_PLANE_AGENT, AGENT] as const;
export type Account = typeof OPERATOR | (typeof AGENTS)[number];

/** How kube-apiserver calls an account. */
export function userName(account: Account): string {
  return `system:serviceaccount:${ROTUNDA_NAMESPACE}:${account}`;
}
