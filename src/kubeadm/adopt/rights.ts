import type { PolicyRule } from 'kubernetes-types/rbac/v1.d.ts';
import {
  AUTHENTICATION,
  CLUSTER_INFO,
  PKI_NAMESPACE,
  ROOT_CA,
  ROTUNDA_NAMESPACE,
  STATIC_POD_NAMESPACE,
} from '../names.ts';
import { OPERATOR_LEASE } from '../operator/names.ts';
import { type Account, AGENT, AGENTS, CONTROL_PLANE_AGENT, OPERATOR } from './accounts.ts';

/** What accounts may do in one place, each rule with what it is for (spec 80, KA-2). */
export interface Grant {
  /** Of the role, and of the binding. */
  readonly name: string;
  /** Absent: in the whole cluster. */
  readonly namespace?: string | undefined;
  readonly accounts: readonly Account[];
  readonly rules: readonly { readonly why: string; readonly rule: PolicyRule }[];
  /** Only where pods are restarted in a hand-over (`--pods restart`). */
  readonly isForRestarts?: boolean | undefined;
}

export const KUBELET_CLIENT_SIGNER = 'kubernetes.io/kube-apiserver-client-kubelet';

const FOLLOW = ['list', 'watch'];
const CERTIFICATES = 'certificates.k8s.io';
const SIGNING_REQUESTS = 'certificatesigningrequests';
/** Events about Nodes are kept there. */
const EVENTS_NAMESPACE = 'default';

const EVENTS = {
  why: 'Says what it does.',
  rule: { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] },
};

export const GRANTS: readonly Grant[] = [
  {
    name: `rotunda:${OPERATOR}`,
    accounts: [OPERATOR],
    rules: [
      {
        why: 'What agents report, and which nodes are ready.',
        rule: { apiGroups: [''], resources: ['nodes'], verbs: FOLLOW },
      },
      {
        why: 'Whether pods have begun since their namespace has a new CA; since when the control plane runs.',
        rule: { apiGroups: [''], resources: ['pods'], verbs: FOLLOW },
      },
      {
        why: 'Whether every namespace has a new CA.',
        rule: { apiGroups: [''], resources: ['configmaps'], resourceNames: [ROOT_CA.name], verbs: ['list'] },
      },
      {
        why: 'Certificates that agents ask for when those of a kubelet have ended.',
        rule: { apiGroups: [CERTIFICATES], resources: [SIGNING_REQUESTS], verbs: FOLLOW },
      },
      {
        why: 'Approves or refuses those, and no others.',
        rule: { apiGroups: [CERTIFICATES], resources: [`${SIGNING_REQUESTS}/approval`], verbs: ['patch'] },
      },
      {
        why: 'For this signer only.',
        rule: {
          apiGroups: [CERTIFICATES],
          resources: ['signers'],
          resourceNames: [KUBELET_CLIENT_SIGNER],
          verbs: ['approve'],
        },
      },
    ],
  },
  {
    name: OPERATOR,
    namespace: ROTUNDA_NAMESPACE,
    accounts: [OPERATOR],
    rules: [
      {
        why: 'Who leads.',
        rule: { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['create'] },
      },
      {
        why: 'Who leads.',
        rule: {
          apiGroups: ['coordination.k8s.io'],
          resources: ['leases'],
          resourceNames: [OPERATOR_LEASE.name],
          verbs: ['get', 'update'],
        },
      },
      {
        why: 'Whose events they are: its Deployment, or its namespace.',
        rule: { apiGroups: [''], resources: ['pods'], verbs: ['get'] },
      },
      {
        why: 'As above.',
        rule: { apiGroups: ['apps'], resources: ['replicasets'], verbs: ['get'] },
      },
      {
        why: 'As above.',
        rule: { apiGroups: [''], resources: ['namespaces'], resourceNames: [ROTUNDA_NAMESPACE], verbs: ['get'] },
      },
      EVENTS,
    ],
  },
  {
    name: OPERATOR,
    namespace: PKI_NAMESPACE,
    accounts: [OPERATOR],
    rules: [
      {
        why: 'CAs, bundles, what is wanted of each node, settings and status.',
        rule: {
          apiGroups: [''],
          resources: ['configmaps', 'secrets'],
          verbs: ['get', ...FOLLOW, 'create', 'update', 'delete'],
        },
      },
      EVENTS,
    ],
  },
  {
    name: `rotunda:${OPERATOR}`,
    namespace: CLUSTER_INFO.namespace,
    accounts: [OPERATOR],
    rules: [
      {
        why: 'Nodes that join find both CAs there in a hand-over.',
        rule: {
          apiGroups: [''],
          resources: ['configmaps'],
          resourceNames: [CLUSTER_INFO.name],
          verbs: ['get', ...FOLLOW, 'update'],
        },
      },
    ],
  },
  {
    name: `rotunda:${OPERATOR}`,
    namespace: AUTHENTICATION.namespace,
    accounts: [OPERATOR],
    rules: [
      {
        why: 'Which CAs aggregated API servers know.',
        rule: {
          apiGroups: [''],
          resources: ['configmaps'],
          resourceNames: [AUTHENTICATION.name],
          verbs: ['get'],
        },
      },
    ],
  },
  {
    name: `rotunda:${AGENT}`,
    accounts: AGENTS,
    rules: [
      {
        why: 'Reports on its own Node; the policy rotunda-kubeadm-agents keeps it from all others.',
        rule: { apiGroups: [''], resources: ['nodes'], verbs: [...FOLLOW, 'patch'] },
      },
    ],
  },
  {
    // On control-plane nodes there is a CA's key to sign with.
    name: `rotunda:${AGENT}-requests`,
    accounts: [AGENT],
    rules: [
      {
        why: 'Asks for a certificate when that of its kubelet has ended.',
        rule: { apiGroups: [CERTIFICATES], resources: [SIGNING_REQUESTS], verbs: ['create', 'get'] },
      },
    ],
  },
  {
    name: AGENT,
    namespace: PKI_NAMESPACE,
    accounts: AGENTS,
    rules: [
      {
        why: 'What is wanted of its node; there are no keys in ConfigMaps.',
        rule: { apiGroups: [''], resources: ['configmaps'], verbs: ['get', ...FOLLOW] },
      },
    ],
  },
  {
    name: `rotunda:${AGENT}`,
    namespace: 'kube-node-lease',
    accounts: AGENTS,
    rules: [
      {
        why: 'Whether its kubelet is at work again after a restart.',
        rule: { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get'] },
      },
    ],
  },
  {
    name: CONTROL_PLANE_AGENT,
    namespace: PKI_NAMESPACE,
    accounts: [CONTROL_PLANE_AGENT],
    rules: [
      {
        why: 'Copies the CAs of its node there once; reads the key of a CA that is not on the disk yet.',
        rule: { apiGroups: [''], resources: ['secrets'], verbs: ['get', 'create'] },
      },
    ],
  },
  {
    name: `rotunda:${AGENT}`,
    namespace: STATIC_POD_NAMESPACE,
    accounts: AGENTS,
    rules: [
      {
        why: 'Mirror pods of static pods on its node: since when each process runs, and whether it is ready.',
        rule: { apiGroups: [''], resources: ['pods'], verbs: FOLLOW },
      },
    ],
  },
  {
    name: 'rotunda:kubeadm-events',
    namespace: EVENTS_NAMESPACE,
    accounts: [OPERATOR, ...AGENTS],
    rules: [{ ...EVENTS, why: 'Says what happens to nodes.' }],
  },
  {
    name: `rotunda:${OPERATOR}-restarts`,
    accounts: [OPERATOR],
    isForRestarts: true,
    rules: [
      {
        why: 'Restarts workloads whose pods have not read a new CA, as kubectl rollout restart does.',
        rule: {
          apiGroups: ['apps'],
          resources: ['deployments', 'daemonsets', 'statefulsets'],
          verbs: ['get', 'patch'],
        },
      },
      {
        why: 'Which Deployment a pod belongs to.',
        rule: { apiGroups: ['apps'], resources: ['replicasets'], verbs: ['get'] },
      },
      {
        why: 'Restarts within disruption budgets.',
        rule: { apiGroups: ['policy'], resources: ['poddisruptionbudgets'], verbs: ['list'] },
      },
    ],
  },
];
