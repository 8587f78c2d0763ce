import type { ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet } from 'kubernetes-types/apps/v1.d.ts';
import type { Job } from 'kubernetes-types/batch/v1.d.ts';
import type { PodTemplateSpec } from 'kubernetes-types/core/v1.d.ts';
import type { LabelSelector } from 'kubernetes-types/meta/v1.d.ts';
import type { PodDisruptionBudget } from 'kubernetes-types/policy/v1.d.ts';
import { formatLabelQuery } from '../select/label.ts';
import { labelQueryOf } from '../select/label-object.ts';
import { humanDuration } from './age.ts';
import { AGE, integer, NAME, printerOf, type ReadColumn, text, wideText } from './column.ts';

export const deploymentPrinter = printerOf<Deployment>([
  NAME,
  text(
    'Ready',
    'Ready pods of those wanted.',
    ({ spec, status }) => `${status?.readyReplicas ?? 0}/${spec?.replicas ?? 1}`,
  ),
  text('Up-to-date', 'Pods of the newest template.', ({ status }) => status?.updatedReplicas ?? 0),
  text('Available', 'Pods that have been ready long enough.', ({ status }) => status?.availableReplicas ?? 0),
  AGE,
  ...podColumns<Deployment>(),
  selectorColumn<Deployment>(),
]);

export const statefulSetPrinter = printerOf<StatefulSet>([
  NAME,
  text(
    'Ready',
    'Ready pods of those wanted.',
    ({ spec, status }) => `${status?.readyReplicas ?? 0}/${spec?.replicas ?? 1}`,
  ),
  AGE,
  ...podColumns<StatefulSet>(),
]);

export const replicaSetPrinter = printerOf<ReplicaSet>([
  NAME,
  integer('Desired', 'Pods wanted.', ({ spec }) => spec?.replicas ?? 1),
  integer('Current', 'Pods that exist.', ({ status }) => status?.replicas),
  integer('Ready', 'Pods that are ready.', ({ status }) => status?.readyReplicas),
  AGE,
  ...podColumns<ReplicaSet>(),
  selectorColumn<ReplicaSet>(),
]);

export const daemonSetPrinter = printerOf<DaemonSet>([
  NAME,
  integer('Desired', 'Nodes that should run the pod.', ({ status }) => status?.desiredNumberScheduled),
  integer('Current', 'Nodes that run it.', ({ status }) => status?.currentNumberScheduled),
  integer('Ready', 'Nodes where it is ready.', ({ status }) => status?.numberReady),
  integer('Up-to-date', 'Nodes with the newest template.', ({ status }) => status?.updatedNumberScheduled),
  integer('Available', 'Nodes where it has been ready long enough.', ({ status }) => status?.numberAvailable),
  text('Node Selector', 'Labels a node must have.', ({ spec }) => labelsText(spec?.template.spec?.nodeSelector)),
  AGE,
  ...podColumns<DaemonSet>(),
  selectorColumn<DaemonSet>(),
]);

export const jobPrinter = printerOf<Job>([
  NAME,
  text('Status', 'How the job is doing.', jobStatus),
  text('Completions', 'Pods that succeeded of those wanted.', completions),
  text('Duration', 'How long the job has run.', ({ status }, now) => {
    if (status?.startTime === undefined) return '';
    const end = status.completionTime === undefined ? now.getTime() : Date.parse(status.completionTime);
    return humanDuration(end - Date.parse(status.startTime));
  }),
  AGE,
  ...podColumns<Job>(),
  selectorColumn<Job>(),
]);

export const controllerRevisionPrinter = printerOf<ControllerRevision>([
  NAME,
  text('Controller', 'What the revision belongs to.', ({ metadata }) => {
    const owner = metadata?.ownerReferences?.find(reference => reference.controller);
    if (owner === undefined) return '<none>';
    const group = owner.apiVersion.includes('/') ? `.${owner.apiVersion.slice(0, owner.apiVersion.indexOf('/'))}` : '';
    return `${owner.kind.toLowerCase()}${group}/${owner.name}`;
  }),
  integer('Revision', 'The number of the revision.', revision => revision.revision),
  AGE,
]);

export const disruptionBudgetPrinter = printerOf<PodDisruptionBudget>([
  NAME,
  text('Min Available', 'Pods that must stay.', ({ spec }) => String(spec?.minAvailable ?? 'N/A')),
  text('Max Unavailable', 'Pods that may be missing.', ({ spec }) => String(spec?.maxUnavailable ?? 'N/A')),
  integer('Allowed Disruptions', 'Pods that may go now.', ({ status }) => status?.disruptionsAllowed),
  AGE,
]);

/** `a=b,c=d`, sorted; `<none>` when empty. */
export function labelsText(labels: Readonly<Record<string, string>> | undefined): string {
  const pairs = Object.entries(labels ?? {}).map(([key, value]) => `${key}=${value}`);
  return pairs.sort().join(',') || '<none>';
}

interface WithTemplate {
  spec?: { template?: PodTemplateSpec };
}

function podColumns<T extends WithTemplate>(): ReadColumn<T>[] {
  const containers = (object: T) => object.spec?.template?.spec?.containers ?? [];
  return [
    wideText('Containers', 'The containers of each pod.', object =>
      containers(object)
        .map(({ name }) => name)
        .join(','),
    ),
    wideText('Images', 'Their images.', object =>
      containers(object)
        .map(({ image }) => image ?? '')
        .join(','),
    ),
  ];
}

function selectorColumn<T extends { spec?: { selector?: LabelSelector } }>(): ReadColumn<T> {
  return wideText('Selector', 'Which pods belong to it.', object => selectorText(object.spec?.selector));
}

function selectorText(selector: LabelSelector | undefined): string {
  if (selector === undefined) return '<none>';
  try {
    return formatLabelQuery(labelQueryOf(selector)) || '<none>';
  } catch {
    return '<invalid>';
  }
}

function jobStatus({ metadata, status }: Job): string {
  const has = (type: string) =>
    status?.conditions?.some(condition => condition.type === type && condition.status === 'True');
  if (has('Complete')) return 'Complete';
  if (has('Failed')) return 'Failed';
  if (metadata?.deletionTimestamp !== undefined) return 'Terminating';
  return ['Suspended', 'FailureTarget', 'SuccessCriteriaMet'].find(has) ?? 'Running';
}

function completions({ spec, status }: Job): string {
  const succeeded = status?.succeeded ?? 0;
  if (spec?.completions !== undefined) return `${succeeded}/${spec.completions}`;
  const parallelism = spec?.parallelism ?? 0;
  return parallelism > 1 ? `${succeeded}/1 of ${parallelism}` : `${succeeded}/1`;
}
