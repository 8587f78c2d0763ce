import { NODE_OF_TOKEN } from '../../kubeadm/adopt/policies.ts';
import { ROTUNDA_NAMESPACE } from '../../kubeadm/names.ts';
import type { Identity } from '../cluster-api.ts';

/** Who the API takes a pod of ours for that shows the token of its account. */
export function accountIdentity(name: string, node: string): Identity {
  const groups = ['system:serviceaccounts', `system:serviceaccounts:${ROTUNDA_NAMESPACE}`];
  return { name, groups, extra: { [NODE_OF_TOKEN]: [node] } };
}
