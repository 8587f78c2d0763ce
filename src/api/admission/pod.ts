import type { Pod, PodSpec } from 'kubernetes-types/core/v1.d.ts';
import type { PriorityClass } from 'kubernetes-types/scheduling/v1.d.ts';
import { MIRROR_POD } from '../auth/node.ts';
import type { Call } from '../rest/core.ts';
import { forbidden } from '../status.ts';
import type { Store } from '../store/store.ts';

/** Gives a new pod its service account, its priority, and time to stay on a node that is in trouble. */
export function admitPod(store: Store, call: Call, pod: Pod): Pod {
  if (pod.spec === undefined) return pod;
  const withAccount =
    pod.metadata?.annotations?.[MIRROR_POD] === undefined ? accounted(store, call, pod.spec) : pod.spec;
  return { ...pod, spec: tolerant(prioritized(store, call, withAccount)) };
}

function accounted(store: Store, call: Call, spec: PodSpec): PodSpec {
  const name = spec.serviceAccountName || spec.serviceAccount || 'default';
  const { kind, namespace } = call;
  // `default` comes with its namespace a moment later; a pod need not wait for it.
  if (name !== 'default' && store.newest('/serviceaccounts', `${namespace}/${name}`) === undefined) {
    const why = `error looking up service account ${namespace}/${name}: serviceaccount "${name}" not found`;
    throw forbidden(kind, call.name, why);
  }
  return { ...spec, serviceAccountName: name, serviceAccount: name };
}

function prioritized(store: Store, call: Call, spec: PodSpec): PodSpec {
  const name = spec.priorityClassName;
  const found = name ? classNamed(store, name) : defaultClass(store);
  if (name && found === undefined) {
    throw forbidden(call.kind, call.name, `no PriorityClass with name ${name} was found`);
  }
  const value = found?.value ?? 0;
  if (spec.priority !== undefined && spec.priority !== value) {
    const why = `the integer value of priority (${spec.priority}) must not be provided in pod spec; priority admission controller computed ${value} from the given PriorityClass name`;
    throw forbidden(call.kind, call.name, why);
  }
  return {
    ...spec,
    ...(found?.metadata?.name === undefined ? {} : { priorityClassName: found.metadata.name }),
    priority: value,
    preemptionPolicy: spec.preemptionPolicy ?? found?.preemptionPolicy ?? 'PreemptLowerPriority',
  };
}

const TROUBLES = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'];
/** How long a pod stays on such a node unless it says otherwise. */
const STAYS_SECONDS = 300;

function tolerant(spec: PodSpec): PodSpec {
  const given = spec.tolerations ?? [];
  const added = TROUBLES.filter(
    trouble =>
      !given.some(
        ({ key = '', effect = '' }) => (key === trouble || key === '') && (effect === 'NoExecute' || effect === ''),
      ),
  ).map(key => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: STAYS_SECONDS }));
  return added.length === 0 ? spec : { ...spec, tolerations: [...given, ...added] };
}

const BUCKET = 'scheduling.k8s.io/priorityclasses';

function classNamed(store: Store, name: string): PriorityClass | undefined {
  return store.newest(BUCKET, name)?.object as PriorityClass | undefined;
}

function defaultClass(store: Store): PriorityClass | undefined {
  let chosen: PriorityClass | undefined;
  for (const { object } of store.list(BUCKET)) {
    const candidate = object as PriorityClass;
    if (candidate.globalDefault === true && (chosen === undefined || candidate.value < chosen.value))
      chosen = candidate;
  }
  return chosen;
}
