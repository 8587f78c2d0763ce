import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { errorText } from '../controller/aggregate-error.ts';
import { type Reconcile, RetryRequest } from '../controller/reconcile.ts';
import { applyConfigMap } from '../kube/apply.ts';
import { isConflict } from '../kube/error.ts';
import type { Kube } from '../kube/port.ts';
import { condition } from '../staticpod/condition.ts';
import { type Objects, writeIfNeeded } from '../staticpod/objects.ts';
import type { StaticPodOperator } from '../staticpod/operator.ts';
import { OPERAND_NAMESPACE } from './namespaces.ts';
import { API_SERVERS, type AuditSpec, CLUSTER } from './resources.ts';
import { isToAct } from './target-config/controller.ts';

export interface AuditPolicyOptions {
  readonly kube: Kube;
  readonly operator: StaticPodOperator;
  readonly cached: Objects;
}

const CONDITION = 'AuditPolicyDegraded';

/**
 * Keeps the audit policy as the APIServer asks for it. Its ConfigMap is required for every revision. Without an APIServer nobody
 * knows what is asked for, and the policy stays.
 */
export function auditPolicyReconcile({ kube, operator, cached }: AuditPolicyOptions): Reconcile {
  return async (_key, context) => {
    const { events, signal } = context;
    const { spec = {} } = await operator.read(signal);
    if (!isToAct(spec.managementState, context)) return;
    try {
      const apiServer = await cached.get(API_SERVERS, CLUSTER);
      if (apiServer === undefined) throw new Error('apiservers.config.openshift.io/cluster not found');
      const required = auditPolicyConfigMap(apiServer.spec?.audit ?? {});
      await writeIfNeeded(cached, { kube, events, signal }, apply => applyConfigMap(apply, required));
    } catch (error) {
      // Somebody else wrote first: nothing is wrong.
      if (isConflict(error)) throw new RetryRequest(error.message);
      await operator.setConditions([condition(CONDITION, 'True', 'Error', errorText(error))], signal);
      throw error;
    }
    await operator.setConditions([condition(CONDITION, 'False')], signal);
  };
}

type Rule = Readonly<Record<string, unknown>> & { readonly level: string };

const WRITES = ['create', 'update', 'patch', 'delete', 'deletecollection'];

/** What each profile logs. */
const PROFILES: Readonly<Record<string, readonly Rule[]>> = {
  Default: [{ level: 'Metadata' }],
  WriteRequestBodies: [{ level: 'RequestResponse', verbs: WRITES }, { level: 'Metadata' }],
  AllRequestBodies: [{ level: 'RequestResponse' }],
  None: [{ level: 'None' }],
};

/** Noise, which nobody wants to read. */
const NEVER: readonly Rule[] = [
  { level: 'None', resources: [{ group: '', resources: ['events'] }] },
  {
    level: 'None',
    userGroups: ['system:authenticated', 'system:unauthenticated'],
    nonResourceURLs: ['/api*', '/version', '/healthz*', '/livez*', '/readyz*', '/openapi*'],
  },
];

/** Bodies with keys, tokens or passwords in them are not for a log, whatever the profile. */
const WITHOUT_BODY: Rule = {
  level: 'Metadata',
  resources: [
    { group: '', resources: ['secrets', 'serviceaccounts/token'] },
    { group: 'authentication.k8s.io', resources: ['tokenreviews', 'tokenrequests'] },
    { group: 'oauth.openshift.io', resources: ['oauthclients', 'oauthaccesstokens', 'oauthauthorizetokens'] },
    { group: 'route.openshift.io', resources: ['routes', 'routes/status'] },
  ],
};

/** Throws for a profile that does not exist. */
export function auditPolicyConfigMap({ profile = '', customRules = [] }: AuditSpec): ConfigMap {
  const policy = {
    apiVersion: 'audit.k8s.io/v1',
    kind: 'Policy',
    omitStages: ['RequestReceived'],
    rules: [
      ...NEVER,
      ...customRules.flatMap(({ group, profile: name }) =>
        rulesOf(name).map(rule => ({ ...rule, userGroups: [group] })),
      ),
      ...rulesOf(profile || 'Default'),
    ],
  };
  return {
    metadata: { namespace: OPERAND_NAMESPACE, name: 'kube-apiserver-audit-policies' },
    data: { 'policy.yaml': JSON.stringify(policy) },
  };
}

function rulesOf(profile: string): readonly Rule[] {
  const rules = Object.hasOwn(PROFILES, profile) ? PROFILES[profile] : undefined;
  if (rules === undefined) {
    throw new Error(
      `expected an audit profile of ${Object.keys(PROFILES).join(', ')}, found ${JSON.stringify(profile)}`,
    );
  }
  // In a profile that logs bodies, the ones that must not be are caught first.
  return rules.some(({ level }) => level === 'RequestResponse') ? [WITHOUT_BODY, ...rules] : rules;
}
