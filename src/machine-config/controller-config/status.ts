import type { Condition } from '../../controller/condition.ts';
import type { ControllerConfig, ControllerConfigStatus } from '../../machine-config-api/controller-config.ts';
import { conditionIs, placeCondition } from '../conditions.ts';
import { certificateInventory } from './certificates.ts';

export const RUNNING = 'TemplateControllerRunning';
export const COMPLETED = 'TemplateControllerCompleted';
export const FAILING = 'TemplateControllerFailing';

/** The status when a sync towards a new generation begins; unchanged where that generation has been seen (spec 50, 4.2). */
export function startedStatus(
  { metadata = {}, status = {} }: ControllerConfig,
  version: string,
  now: Date,
): ControllerConfigStatus {
  const generation = metadata.generation ?? 0;
  if (generation === (status.observedGeneration ?? 0)) return status;
  const message = `syncing towards (${generation}) generation using controller version ${version}`;
  const wasCompleted = conditionIs(status.conditions, COMPLETED, 'True');
  const wanted: Condition[] = [
    { type: RUNNING, status: 'True', message },
    ...(wasCompleted ? [{ type: COMPLETED, status: 'False' } as const] : []),
  ];
  return { ...status, observedGeneration: generation, conditions: placed(status, wanted, now) };
}

/** The status after a good sync. */
export function completedStatus(
  { metadata = {}, status = {} }: ControllerConfig,
  version: string,
  now: Date,
): ControllerConfigStatus {
  const generation = metadata.generation ?? 0;
  const message = `sync completed towards (${generation}) generation using controller version ${version}`;
  const wanted: Condition[] = [
    { type: COMPLETED, status: 'True', message },
    { type: RUNNING, status: 'False' },
    { type: FAILING, status: 'False' },
  ];
  return { ...status, observedGeneration: generation, conditions: placed(status, wanted, now) };
}

/** The status after a failed sync. */
export function failedStatus(
  { metadata = {}, status = {} }: ControllerConfig,
  version: string,
  error: string,
  now: Date,
): ControllerConfigStatus {
  const generation = metadata.generation ?? 0;
  const message = `failed to sync towards (${generation}) generation using controller version ${version}: ${error}`;
  const wanted: Condition[] = [
    { type: FAILING, status: 'True', message },
    { type: RUNNING, status: 'False' },
    { type: COMPLETED, status: 'False' },
  ];
  return { ...status, observedGeneration: generation, conditions: placed(status, wanted, now) };
}

/** The status with the certificates of the spec; one without any certificate has an empty list (spec 50, CT-3 mended). */
export function certificateStatus({ spec = {}, status = {} }: ControllerConfig): ControllerConfigStatus {
  return { ...status, controllerCertificates: certificateInventory(spec) };
}

/** Why what was made from a ControllerConfig is not complete, undefined if it is (spec 50, CS-1). */
export function whyIncomplete(controllerConfig: ControllerConfig | undefined): string | undefined {
  if (controllerConfig === undefined) return 'there is no ControllerConfig';
  const { metadata = {}, status = {} } = controllerConfig;
  const [generation, observed] = [metadata.generation ?? 0, status.observedGeneration ?? 0];
  if (generation !== observed)
    return `status for ControllerConfig is being reported for ${observed}, expecting it for ${generation}`;
  const [completed, running, failing] = [COMPLETED, RUNNING, FAILING].map(type =>
    conditionIs(status.conditions, type, 'True'),
  );
  if (completed && !running && !failing) return undefined;
  return `ControllerConfig has not completed: completed(${completed}) running(${running}) failing(${failing})`;
}

/** With what the sync towards this generation failed, undefined if it did not: waiting for it is of no use. */
export function whyFailed({ metadata = {}, status = {} }: ControllerConfig): string | undefined {
  if ((metadata.generation ?? 0) !== (status.observedGeneration ?? 0)) return undefined;
  const failing = status.conditions?.find(({ type }) => type === FAILING);
  return failing?.status === 'True' ? `ControllerConfig: ${failing.message ?? 'failing'}` : undefined;
}

/** A message alone is no change here: it would make every node write its certificates again (spec 50, CS-2, RV-4). */
function placed(status: ControllerConfigStatus, wanted: readonly Condition[], now: Date): readonly Condition[] {
  return wanted.reduce(
    (conditions, condition) => placeCondition(conditions, condition, now, 'without-message'),
    status.conditions ?? [],
  );
}
