import { bool, int32, int64, list, oneOf, ref, set, str, vocabulary } from '../dsl.ts';
import { isObject, withField } from '../json.ts';
import type { JsonObject } from '../schema.ts';
import { LabelSelector, metadata, time } from './meta.ts';
import { PodTemplateSpec } from './pod.ts';
import { ObjectReference } from './reference.ts';

/** Work that ends: jobs, and jobs on a schedule. */

const { object, kind } = vocabulary('io.k8s.api.batch.v1', 'batch', 'v1');

const OnExitCodes = object(
  'PodFailurePolicyOnExitCodesRequirement',
  'A condition on exit codes.',
  {
    containerName: str('The container; absent for any.'),
    operator: oneOf(['In', 'NotIn'], 'How the exit code relates to the values.'),
    values: set({ type: 'integer', format: 'int32' }, 'The exit codes.'),
  },
  { required: ['operator', 'values'] },
);

const OnPodCondition = object(
  'PodFailurePolicyOnPodConditionsPattern',
  'A condition of the pod to look for.',
  { status: str('Its status; default `True`.', { default: 'True' }), type: str('Its type.') },
  { required: ['type'], zero: ['status'] },
);

const PodFailurePolicyRule = object(
  'PodFailurePolicyRule',
  'What a certain failure of a pod means.',
  {
    action: oneOf(['Count', 'FailIndex', 'FailJob', 'Ignore'], 'What it means for the job.'),
    onExitCodes: ref(OnExitCodes, 'Failures with these exit codes.'),
    onPodConditions: list(OnPodCondition, 'Failures with one of these conditions.'),
  },
  { required: ['action'] },
);

const PodFailurePolicy = object(
  'PodFailurePolicy',
  'What failures of pods mean; the first rule that matches counts.',
  { rules: list(PodFailurePolicyRule, 'The rules, at most 20.') },
  { required: ['rules'] },
);

const SuccessPolicyRule = object('SuccessPolicyRule', 'When an indexed job has done enough.', {
  succeededCount: int32('Number of indexes that must succeed.', { minimum: 1 }),
  succeededIndexes: str('Indexes that must succeed, such as `1,3-5`.'),
});

const SuccessPolicy = object(
  'SuccessPolicy',
  'When an indexed job has done enough; one of the rules is.',
  { rules: list(SuccessPolicyRule, 'The rules, at most 20.') },
  { required: ['rules'] },
);

const JobSpec = object(
  'JobSpec',
  'What a job does and when it is done.',
  {
    activeDeadlineSeconds: int64('Seconds until the job is stopped.', { minimum: 0 }),
    backoffLimit: int32('Failures until the job has failed.', { minimum: 0 }),
    backoffLimitPerIndex: int32('Failures of one index until it has failed.', { minimum: 0 }),
    completionMode: oneOf(['Indexed', 'NonIndexed'], 'Whether pods are numbered; default `NonIndexed`.'),
    completions: int32('Pods that must succeed.', { minimum: 0 }),
    managedBy: str('Controller that runs the job; default is the built-in one.'),
    manualSelector: bool('The selector is given by hand. Rarely right.'),
    maxFailedIndexes: int32('Failed indexes until the job has failed.', { minimum: 0 }),
    parallelism: int32('Pods that run at the same time at most.', { minimum: 0 }),
    podFailurePolicy: ref(PodFailurePolicy, 'What failures of pods mean.'),
    podReplacementPolicy: oneOf(['Failed', 'TerminatingOrFailed'], 'When a pod is replaced.'),
    selector: ref(LabelSelector, 'Selects the pods; made by the server.'),
    successPolicy: ref(SuccessPolicy, 'When the job has done enough.'),
    suspend: bool('No pods run.'),
    template: ref(PodTemplateSpec, 'The pods that are made.'),
    ttlSecondsAfterFinished: int32('Seconds after the end until the job is deleted.', { minimum: 0 }),
  },
  { required: ['template'] },
);

const JobCondition = object(
  'JobCondition',
  'One aspect of the state of a job.',
  {
    lastProbeTime: time('When it was last checked.'),
    lastTransitionTime: time('When `status` last changed.'),
    message: str('Details for people.'),
    reason: str('Why, in one word for programs.'),
    status: str('`True`, `False` or `Unknown`.'),
    type: str('`Complete`, `Failed`, `Suspended` or another.'),
  },
  { zero: ['status', 'type'] },
);

const JobStatus = object('JobStatus', 'State of a job.', {
  active: int32('Pods that run.'),
  completedIndexes: str('Indexes that succeeded, such as `1,3-5`.'),
  completionTime: time('When the job was done.'),
  conditions: list(JobCondition, 'State of the job by aspects.', {
    'x-kubernetes-patch-strategy': 'merge',
    'x-kubernetes-patch-merge-key': 'type',
  }),
  failed: int32('Pods that failed.'),
  failedIndexes: str('Indexes that failed.'),
  ready: int32('Pods that are ready.'),
  startTime: time('When the job was started.'),
  succeeded: int32('Pods that succeeded.'),
  terminating: int32('Pods that are ending.'),
  uncountedTerminatedPods: ref(
    object('UncountedTerminatedPods', 'Pods that have ended and are not counted yet.', {
      failed: set({ type: 'string' }, 'UIDs of those that failed.'),
      succeeded: set({ type: 'string' }, 'UIDs of those that succeeded.'),
    }),
    'Pods that have ended and are not counted yet.',
  ),
});

export const Job = kind(
  'Job',
  'Runs pods until enough of them have succeeded.',
  {
    metadata,
    spec: ref(JobSpec, 'What is wanted.'),
    status: ref(JobStatus, 'What was last observed.'),
  },
  { complete: completeJob },
);

const JobTemplateSpec = object('JobTemplateSpec', 'The jobs that are made.', {
  metadata: { ...metadata, description: 'Labels and annotations of the jobs.' },
  spec: ref(JobSpec, 'What the jobs do.'),
});

const CronJobSpec = object(
  'CronJobSpec',
  'When jobs are made, and which.',
  {
    concurrencyPolicy: oneOf(['Allow', 'Forbid', 'Replace'], 'What to do when the job before still runs.', {
      default: 'Allow',
    }),
    failedJobsHistoryLimit: int32('Failed jobs to keep.', { default: 1, minimum: 0 }),
    jobTemplate: ref(JobTemplateSpec, 'The jobs that are made.'),
    schedule: str('When, in cron format.'),
    startingDeadlineSeconds: int64('Seconds a start may be late before it is left out.', { minimum: 0 }),
    successfulJobsHistoryLimit: int32('Successful jobs to keep.', { default: 3, minimum: 0 }),
    suspend: bool('No new jobs are made.', { default: false }),
    timeZone: str('Time zone of the schedule; default is that of the controller.'),
  },
  { required: ['jobTemplate', 'schedule'] },
);

const CronJobStatus = object('CronJobStatus', 'State of a cron job.', {
  active: list(ObjectReference, 'Jobs that run.'),
  lastScheduleTime: time('When a job was last made.'),
  lastSuccessfulTime: time('When a job last succeeded.'),
});

export const CronJob = kind('CronJob', 'Makes jobs on a schedule.', {
  metadata,
  spec: ref(CronJobSpec, 'What is wanted.'),
  status: ref(CronJobStatus, 'What was last observed.'),
});

const BACKOFF_LIMIT = 6;

/** Jobs get these, the templates in cron jobs do not. */
function completeJob(job: JsonObject): JsonObject {
  const { spec } = job;
  if (!isObject(spec)) return job;
  const defaults = {
    ...(spec['parallelism'] === undefined ? { completions: 1, parallelism: 1 } : {}),
    backoffLimit: spec['backoffLimitPerIndex'] === undefined ? BACKOFF_LIMIT : 2 ** 31 - 1,
    completionMode: 'NonIndexed',
    suspend: false,
    podReplacementPolicy: spec['podFailurePolicy'] === undefined ? 'TerminatingOrFailed' : 'Failed',
    manualSelector: false,
  };
  const completed = Object.entries(defaults).reduce(
    (done, [field, value]) => (done[field] === undefined ? withField(done, field, value) : done),
    spec,
  );
  return completed === spec ? job : withField(job, 'spec', completed);
}
