import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import type { Reconcile } from '../controller/reconcile.ts';
import { applyConfigMap } from '../kube/apply.ts';
import type { Kube } from '../kube/port.ts';
import { type Objects, writeIfNeeded } from '../staticpod/objects.ts';
import { OPERAND_NAMESPACE } from './namespaces.ts';
import { API_SERVERS, type AuditSpec, CLUSTER } from './resources.ts';

/** Keeps the audit policy as the APIServer asks for it. Its ConfigMap is required for every revision. */
export function auditPolicyReconcile({ kube, cached }: { readonly kube: Kube; readonly cached: Objects }): Reconcile {
  return async (_key, { events, signal }) => {
    const apiServer = await cached.get(API_SERVERS, CLUSTER);
    const required = auditPolicyConfigMap(apiServer?.spec?.audit ?? {});
    await writeIfNeeded(cached, { kube, events, signal }, context => applyConfigMap(context, required));
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
