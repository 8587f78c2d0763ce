import type { ObjectReference } from '../controller/cluster-operator-status.ts';
import { OPERAND_NAMESPACE, WATCHED_NAMESPACES } from './namespaces.ts';

/** What to look at when kube-apiserver is in trouble. */
export const RELATED_OBJECTS: readonly ObjectReference[] = [
  { group: 'operator.openshift.io', resource: 'kubeapiservers', name: 'cluster' },
  { group: 'apiextensions.k8s.io', resource: 'customresourcedefinitions', name: '' },
  ...WATCHED_NAMESPACES.map(name => ({ group: '', resource: 'namespaces', name })),
  { group: 'admissionregistration.k8s.io', resource: 'mutatingwebhookconfigurations', name: '' },
  { group: 'admissionregistration.k8s.io', resource: 'validatingwebhookconfigurations', name: '' },
  {
    group: 'controlplane.operator.openshift.io',
    resource: 'podnetworkconnectivitychecks',
    namespace: OPERAND_NAMESPACE,
    name: '',
  },
];
