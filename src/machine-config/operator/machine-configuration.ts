import { errorText } from '../../controller/aggregate-error.ts';
import type { ReconcileContext } from '../../controller/reconcile.ts';
import { updateStatus } from '../../controller/status.ts';
import type { Kube } from '../../kube/port.ts';
import { mergePolicies } from '../../machine-config-api/disruption-policy.ts';
import { MACHINE_CONFIGURATIONS, type MachineConfiguration } from '../../machine-config-api/machine-configuration.ts';
import { CLUSTER } from '../../machine-config-api/names.ts';

const FIELD_MANAGER = 'machine-config-operator';

/**
 * Creates MachineConfiguration `cluster` where it is missing (spec 50, MP-1) and, where disruption policies are in force,
 * publishes the merged ones in its status (MP-2, MP-3). That this cannot be written is only logged (MP-4).
 */
export async function ensureMachineConfiguration(
  kube: Kube,
  existing: MachineConfiguration | undefined,
  publishesPolicies: boolean,
  { clock, log, signal }: Pick<ReconcileContext, 'clock' | 'log' | 'signal'>,
): Promise<void> {
  const current =
    existing ??
    (await kube.patch(
      MACHINE_CONFIGURATIONS,
      { name: CLUSTER },
      {
        type: 'apply',
        body: {
          apiVersion: 'operator.openshift.io/v1',
          kind: 'MachineConfiguration',
          metadata: { name: CLUSTER },
          spec: { managementState: 'Managed' },
        },
      },
      { signal, fieldManager: FIELD_MANAGER, force: true },
    ));
  if (!publishesPolicies) return;
  const mutate = (object: MachineConfiguration): MachineConfiguration => {
    const clusterPolicies = mergePolicies(object.spec?.nodeDisruptionPolicy ?? {});
    return { ...object, status: { ...object.status, nodeDisruptionPolicyStatus: { clusterPolicies } } };
  };
  try {
    await updateStatus(kube, MACHINE_CONFIGURATIONS, { name: CLUSTER }, mutate, {
      clock,
      signal,
      cached: () => current,
    });
  } catch (error) {
    signal.throwIfAborted();
    log.warn({ why: errorText(error) }, 'disruption policies could not be published');
  }
}
