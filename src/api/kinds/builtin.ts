import { printerFor } from '../print/printers.ts';
import { builtinSchema } from '../schema/builtin.ts';
import { selectableFields } from '../select/selectable.ts';
import { eventConversion } from './event.ts';
import {
  ALL_VERBS,
  apiVersionOfKind,
  type Kind,
  type Rules,
  type ScalePaths,
  type Subresource,
  type Verb,
} from './kind.ts';
import { definitionRules } from './rules/definition.ts';
import { namespaceRules } from './rules/namespace.ts';
import { nodeRules } from './rules/node.ts';
import { podRules } from './rules/pod.ts';
import { bindingRules, roleRules } from './rules/rbac.ts';
import { configMapRules, secretRules } from './rules/secret.ts';
import { serviceRules } from './rules/service.ts';
import { signingRequestRules } from './rules/signing-request.ts';
import {
  controllerRevisionRules,
  daemonSetRules,
  deploymentRules,
  jobRules,
  replicaSetRules,
  statefulSetRules,
} from './rules/workload.ts';

/** Everything that is served without a CustomResourceDefinition. */
export function builtinKinds(): Kind[] {
  return [
    kind('v1', 'ConfigMap', 'configmaps', { shortNames: ['cm'], rules: configMapRules }),
    kind('v1', 'Endpoints', 'endpoints', { shortNames: ['ep'], singular: 'endpoints', rules: createdByPut }),
    kind('v1', 'Event', 'events', { shortNames: ['ev'], rules: createdByPut }),
    kind('v1', 'Namespace', 'namespaces', {
      shortNames: ['ns'],
      cluster: true,
      status: true,
      verbs: ALL_VERBS.filter(verb => verb !== 'deletecollection'),
      rules: namespaceRules,
      subresources: [{ name: 'finalize', verbs: ['update'] }],
    }),
    kind('v1', 'Node', 'nodes', { shortNames: ['no'], cluster: true, status: true, rules: nodeRules }),
    kind('v1', 'Pod', 'pods', {
      shortNames: ['po'],
      categories: ['all'],
      status: true,
      rules: podRules,
      subresources: [
        { name: 'binding', verbs: ['create'], kind: { group: '', version: 'v1', kind: 'Binding' } },
        { name: 'eviction', verbs: ['create'], kind: { group: 'policy', version: 'v1', kind: 'Eviction' } },
        { name: 'log', verbs: ['get'] },
      ],
    }),
    kind('v1', 'Secret', 'secrets', { rules: secretRules }),
    kind('v1', 'Service', 'services', { shortNames: ['svc'], categories: ['all'], status: true, rules: serviceRules }),
    kind('v1', 'ServiceAccount', 'serviceaccounts', {
      shortNames: ['sa'],
      subresources: [
        {
          name: 'token',
          verbs: ['create'],
          kind: { group: 'authentication.k8s.io', version: 'v1', kind: 'TokenRequest' },
        },
      ],
    }),
    kind('events.k8s.io/v1', 'Event', 'events', {
      shortNames: ['ev'],
      rules: createdByPut,
      bucket: '/events',
      conversion: eventConversion,
    }),
    kind('apps/v1', 'ControllerRevision', 'controllerrevisions', { rules: controllerRevisionRules }),
    kind('apps/v1', 'DaemonSet', 'daemonsets', { ...workload('ds'), rules: daemonSetRules }),
    kind('apps/v1', 'Deployment', 'deployments', { ...workload('deploy'), scale: REPLICAS, rules: deploymentRules }),
    kind('apps/v1', 'ReplicaSet', 'replicasets', { ...workload('rs'), scale: REPLICAS, rules: replicaSetRules }),
    kind('apps/v1', 'StatefulSet', 'statefulsets', { ...workload('sts'), scale: REPLICAS, rules: statefulSetRules }),
    kind('batch/v1', 'Job', 'jobs', { ...workload(), rules: jobRules }),
    kind('policy/v1', 'PodDisruptionBudget', 'poddisruptionbudgets', {
      shortNames: ['pdb'],
      status: true,
      rules: { generation: true, needsResourceVersion: true, statusWritesMetadata: true },
    }),
    kind(`${RBAC}/v1`, 'ClusterRoleBinding', 'clusterrolebindings', { cluster: true, rules: bindingRules }),
    kind(`${RBAC}/v1`, 'ClusterRole', 'clusterroles', { cluster: true, rules: roleRules }),
    kind(`${RBAC}/v1`, 'RoleBinding', 'rolebindings', { rules: bindingRules }),
    kind(`${RBAC}/v1`, 'Role', 'roles', { rules: roleRules }),
    kind('coordination.k8s.io/v1', 'Lease', 'leases', {
      rules: { createsOnUpdate: true, needsResourceVersion: true },
    }),
    kind('certificates.k8s.io/v1', 'CertificateSigningRequest', 'certificatesigningrequests', {
      shortNames: ['csr'],
      cluster: true,
      status: true,
      rules: signingRequestRules,
      subresources: [{ name: 'approval', verbs: ['get', 'patch', 'update'] }],
    }),
    kind('discovery.k8s.io/v1', 'EndpointSlice', 'endpointslices', { rules: { generation: true } }),
    kind('scheduling.k8s.io/v1', 'PriorityClass', 'priorityclasses', {
      shortNames: ['pc'],
      cluster: true,
      rules: { generation: true },
    }),
    kind('apiextensions.k8s.io/v1', 'CustomResourceDefinition', 'customresourcedefinitions', {
      shortNames: ['crd', 'crds'],
      categories: ['api-extensions'],
      cluster: true,
      status: true,
      rules: definitionRules,
    }),
    request('v1', 'Binding', 'bindings', true),
    request('authentication.k8s.io/v1', 'SelfSubjectReview', 'selfsubjectreviews'),
    request('authentication.k8s.io/v1', 'TokenReview', 'tokenreviews'),
    request('authorization.k8s.io/v1', 'LocalSubjectAccessReview', 'localsubjectaccessreviews', true),
    request('authorization.k8s.io/v1', 'SelfSubjectAccessReview', 'selfsubjectaccessreviews'),
    request('authorization.k8s.io/v1', 'SelfSubjectRulesReview', 'selfsubjectrulesreviews'),
    request('authorization.k8s.io/v1', 'SubjectAccessReview', 'subjectaccessreviews'),
  ];
}

const RBAC = 'rbac.authorization.k8s.io';

const REPLICAS: ScalePaths = {
  specReplicasPath: '.spec.replicas',
  statusReplicasPath: '.status.replicas',
  labelSelectorPath: '.spec.selector',
};

const createdByPut: Rules = { createsOnUpdate: true };

interface Traits {
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
  readonly singular?: string;
  readonly cluster?: boolean;
  readonly status?: boolean;
  readonly scale?: ScalePaths;
  readonly verbs?: readonly Verb[];
  readonly rules?: Rules;
  readonly subresources?: readonly Subresource[];
  readonly bucket?: string;
  readonly conversion?: Kind['conversion'];
}

function workload(shortName?: string): Traits {
  return { shortNames: shortName === undefined ? [] : [shortName], categories: ['all'], status: true };
}

function kind(apiVersion: string, name: string, plural: string, traits: Traits = {}): Kind {
  const slash = apiVersion.indexOf('/');
  const group = slash < 0 ? '' : apiVersion.slice(0, slash);
  const version = apiVersion.slice(slash + 1);
  const { status = false, scale, subresources = [] } = traits;
  return {
    group,
    version,
    kind: name,
    listKind: `${name}List`,
    plural,
    singular: traits.singular ?? name.toLowerCase(),
    shortNames: traits.shortNames ?? [],
    categories: traits.categories ?? [],
    namespaced: traits.cluster !== true,
    verbs: traits.verbs ?? ALL_VERBS,
    bucket: traits.bucket ?? `${group}/${plural}`,
    schema: schemaOf(apiVersion, name),
    rules: traits.rules ?? {},
    status,
    scale,
    subresources: [...subresources.map(withSchema), ...standardSubresources(status, scale)],
    printer: printerFor(group, plural),
    selectable: selectableFields(group, plural),
    conversion: traits.conversion,
  };
}

/** Something that is answered and not stored. */
function request(apiVersion: string, name: string, plural: string, namespaced = false): Kind {
  return kind(apiVersion, name, plural, { bucket: '', verbs: ['create'], cluster: !namespaced });
}

/** `status` and `scale`, for kinds that have them. */
export function standardSubresources(status: boolean, scale: ScalePaths | undefined): Subresource[] {
  const verbs: readonly Verb[] = ['get', 'patch', 'update'];
  return [
    ...(scale === undefined
      ? []
      : [{ name: 'scale', verbs, kind: SCALE, schema: schemaOf('autoscaling/v1', 'Scale') }]),
    ...(status ? [{ name: 'status', verbs }] : []),
  ];
}

const SCALE = { group: 'autoscaling', version: 'v1', kind: 'Scale' };

function withSchema(subresource: Subresource): Subresource {
  const { kind: named } = subresource;
  return named === undefined ? subresource : { ...subresource, schema: schemaOf(apiVersionOfKind(named), named.kind) };
}

function schemaOf(apiVersion: string, name: string): Kind['schema'] {
  const schema = builtinSchema(apiVersion, name);
  if (schema === undefined) throw new Error(`no schema for the built-in kind ${name} of ${apiVersion}`);
  return schema;
}
