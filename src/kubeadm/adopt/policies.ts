import type {
  ValidatingAdmissionPolicy as PolicyType,
  ValidatingAdmissionPolicyBinding,
} from 'kubernetes-types/admissionregistration/v1.d.ts';
import { type KubeObject, resource } from '../../kube/resource.ts';
import { NODE_REPORT } from '../report.ts';
import { AGENTS, userName } from './accounts.ts';

/** The published type does not know the fields of a rule. */
interface ValidatingAdmissionPolicy extends KubeObject {
  readonly spec: Omit<NonNullable<PolicyType['spec']>, 'matchConstraints'> & {
    readonly matchConstraints: { readonly resourceRules: readonly ResourceRule[] };
  };
}
type ResourceRule = Readonly<Record<'apiGroups' | 'apiVersions' | 'operations' | 'resources', readonly string[]>>;

const API_VERSION = 'admissionregistration.k8s.io/v1';
export const POLICIES = resource<ValidatingAdmissionPolicy>(
  API_VERSION,
  'ValidatingAdmissionPolicy',
  'validatingadmissionpolicies',
  false,
);
export const POLICY_BINDINGS = resource<ValidatingAdmissionPolicyBinding>(
  API_VERSION,
  'ValidatingAdmissionPolicyBinding',
  'validatingadmissionpolicybindings',
  false,
);

/** Tokens say on which node their pod runs, and policies are served as v1, since then. */
export const OLDEST_KUBERNETES = 'v1.30';

/** What kube-apiserver puts beside the name of whoever uses the token of a pod. */
export const NODE_OF_TOKEN = 'authentication.kubernetes.io/node-name';
const IS_AGENT = `request.userInfo.username in [${AGENTS.map(account => `'${userName(account)}'`).join(', ')}]`;
const ANNOTATIONS = 'metadata.?annotations.orValue({})';

/** All agents of a kind share one account: this keeps each to its own Node, and there to its report. */
const AGENTS_POLICY = policy('rotunda-kubeadm-agents', {
  failurePolicy: 'Fail',
  matchConstraints: {
    resourceRules: [{ apiGroups: [''], apiVersions: ['*'], operations: ['*'], resources: ['nodes', 'nodes/*'] }],
  },
  matchConditions: [{ name: 'agents', expression: IS_AGENT }],
  validations: [
    {
      expression: `request.operation == 'UPDATE' && request.?userInfo.extra[?'${NODE_OF_TOKEN}'].orValue([]) == [request.name]`,
      message: 'the agent of a node may write the Node it runs on, and no other',
    },
    {
      expression: [
        'object.spec == oldObject.spec',
        'object.?status == oldObject.?status',
        ...['labels', 'finalizers', 'ownerReferences'].map(
          field => `object.metadata.?${field} == oldObject.metadata.?${field}`,
        ),
        othersAreIn('object', 'oldObject'),
        othersAreIn('oldObject', 'object'),
      ].join(' &&\n'),
      message: `the agent of a node may write the annotation ${NODE_REPORT}, and nothing else`,
    },
  ],
});

/**
 * What a Node reports is believed: nobody else writes it. Should this ever fail to be evaluated, a Node's own updates matter more than
 * this does.
 */
const REPORTS_POLICY = policy('rotunda-kubeadm-reports', {
  failurePolicy: 'Ignore',
  matchConstraints: {
    resourceRules: [
      { apiGroups: [''], apiVersions: ['*'], operations: ['CREATE', 'UPDATE'], resources: ['nodes', 'nodes/status'] },
    ],
  },
  matchConditions: [{ name: 'others', expression: `!(${IS_AGENT})` }],
  validations: [
    {
      // It may be taken away: the agent writes it again.
      expression: [
        `!('${NODE_REPORT}' in object.${ANNOTATIONS})`,
        `oldObject != null && oldObject.${ANNOTATIONS}[?'${NODE_REPORT}'] == object.${ANNOTATIONS}[?'${NODE_REPORT}']`,
      ].join(' || '),
      message: `only the agent of the node writes the annotation ${NODE_REPORT}`,
    },
  ],
});

export const ADOPTION_POLICIES: readonly ValidatingAdmissionPolicy[] = [AGENTS_POLICY, REPORTS_POLICY];
/** Each holds everywhere. */
export const ADOPTION_POLICY_BINDINGS: readonly ValidatingAdmissionPolicyBinding[] = ADOPTION_POLICIES.map(
  ({ metadata }) => ({
    apiVersion: API_VERSION,
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name: metadata?.name as string },
    spec: { policyName: metadata?.name as string, validationActions: ['Deny'] },
  }),
);

function policy(name: string, spec: ValidatingAdmissionPolicy['spec']): ValidatingAdmissionPolicy {
  return { apiVersion: API_VERSION, kind: 'ValidatingAdmissionPolicy', metadata: { name }, spec };
}

/** Every annotation of one but the report is the same in the other. */
function othersAreIn(one: string, other: string): string {
  return `${one}.${ANNOTATIONS}.all(key, key == '${NODE_REPORT}' || ${other}.${ANNOTATIONS}[?key] == ${one}.${ANNOTATIONS}[?key])`;
}
