import type { StatefulSetSpec } from 'kubernetes-types/apps/v1.d.ts';
import { type FieldError, forbidden } from '../../schema/field-error.ts';
import { sameJson } from '../../schema/json.ts';
import type { Fields, Rules } from '../kind.ts';
import { unchanged } from './immutable.ts';

const workload: Rules = {
  generation: true,
  checkUpdate: (object, old) => unchanged(object, old, 'spec.selector'),
};

/** Annotations of a Deployment are copied to its ReplicaSets, so changing them counts as a new generation too. */
export const deploymentRules: Rules = { ...workload, alsoCounted: ({ metadata }) => metadata?.annotations ?? {} };

export const replicaSetRules: Rules = workload;
export const daemonSetRules: Rules = workload;
export const jobRules: Rules = { ...workload, orphansByDefault: false };

export const statefulSetRules: Rules = { ...workload, checkUpdate: statefulSetErrors };

export const controllerRevisionRules: Rules = {
  checkUpdate: (object, old) => unchanged(object, old, 'data'),
};

const CHANGEABLE: readonly (keyof StatefulSetSpec)[] = [
  'replicas',
  'ordinals',
  'template',
  'updateStrategy',
  'revisionHistoryLimit',
  'persistentVolumeClaimRetentionPolicy',
  'minReadySeconds',
];

function statefulSetErrors(object: Fields, old: Fields): FieldError[] {
  if (sameJson(fixedPart(object.spec), fixedPart(old.spec))) return [];
  const names = CHANGEABLE.map(field => `'${field}'`);
  const list = `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
  return [forbidden('spec', `updates to statefulset spec for fields other than ${list} are forbidden`)];
}

function fixedPart(spec: unknown): object {
  const entries = Object.entries(spec ?? {});
  return Object.fromEntries(entries.filter(([field]) => !(CHANGEABLE as readonly string[]).includes(field)));
}
