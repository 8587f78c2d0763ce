import { errorText } from '../../controller/aggregate-error.ts';
import type { Reconcile, ReconcileContext } from '../../controller/reconcile.ts';
import { updateStatus } from '../../controller/status.ts';
import type { Kube } from '../../kube/port.ts';
import {
  CONTROLLER_CONFIGS,
  type ControllerConfig,
  type ControllerConfigStatus,
} from '../../machine-config-api/controller-config.ts';
import { WORKER_POOL } from '../../machine-config-api/names.ts';
import type { ControllerCaches } from '../controller/caches.ts';
import { certificateStatus, completedStatus, failedStatus, startedStatus } from '../controller-config/status.ts';
import type { ControllerVersion } from '../render/decide.ts';
import { ensureMachineConfig } from '../render/ensure-config.ts';
import { SourceError } from '../source/error.ts';
import { generateMachineConfigs } from './generate.ts';
import { pullSecretIn, renderedPullSecret } from './pull-secret.ts';

export interface TemplateParts {
  readonly kube: Kube;
  readonly caches: Pick<ControllerCaches, 'controllerConfigs' | 'machineConfigs' | 'secrets'>;
  readonly version: ControllerVersion;
}

/** Keeps the MachineConfigs that come from templates, and the certificate list, as ControllerConfig says (spec 50, section 5). */
export function templateReconcile({ kube, caches, version }: TemplateParts): Reconcile {
  return async (name, context) => {
    const controllerConfig = caches.controllerConfigs.get({ name });
    if (controllerConfig === undefined || controllerConfig.metadata?.deletionTimestamp !== undefined) return;
    const report = statusReporter(kube, name, context);
    await report(current => {
      const status = startedStatus(current, version.version, context.clock.now());
      return certificateStatus({ ...current, status });
    });
    try {
      for (const config of generateMachineConfigs(
        controllerConfig,
        pullSecretOf(controllerConfig, caches, context),
        version.hash,
      )) {
        await ensureMachineConfig(kube, caches.machineConfigs, config, context.signal);
      }
    } catch (error) {
      await report(current => failedStatus(current, version.version, errorText(error), context.clock.now()));
      throw error;
    }
    // What was made belongs to the generation that was read; a newer one comes with a pass of its own.
    await report(current =>
      current.metadata?.generation === controllerConfig.metadata?.generation
        ? completedStatus(current, version.version, context.clock.now())
        : (current.status ?? {}),
    );
  };
}

/** Writes a status where it differs: each version makes every node look at its certificates (spec 50, RV-3, RV-4). */
function statusReporter(kube: Kube, name: string, { clock, signal }: ReconcileContext) {
  return async (change: (current: ControllerConfig) => ControllerConfigStatus): Promise<void> => {
    const mutate = (current: ControllerConfig) => ({ ...current, status: change(current) });
    await updateStatus(kube, CONTROLLER_CONFIGS, { name }, mutate, { clock, signal });
  };
}

/**
 * Empty while a cluster is installed: then nothing names a pull secret. One that cannot be read leaves machines with the last good
 * one, and everything else goes on; the operator says which and why.
 */
function pullSecretOf({ spec }: ControllerConfig, caches: TemplateParts['caches'], { log }: ReconcileContext): string {
  const { name, namespace } = spec?.pullSecret ?? {};
  if (name === undefined) return '';
  try {
    return renderedPullSecret(caches.secrets.get({ name, namespace }));
  } catch (error) {
    const lastGood = pullSecretIn(caches.machineConfigs.get({ name: `00-${WORKER_POOL}` }));
    if (!(error instanceof SourceError) || lastGood === undefined) throw error;
    log.warn({ why: error.message }, 'the last good pull secret is kept');
    return lastGood;
  }
}
