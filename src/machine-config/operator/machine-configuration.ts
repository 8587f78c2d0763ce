import { semanticallyEqual } from '../../kube/equality.ts';
import type { CallOptions, Kube } from '../../kube/port.ts';
import { mergePolicies } from '../../machine-config-api/disruption-policy.ts';
import { MACHINE_CONFIGURATIONS, type MachineConfiguration } from '../../machine-config-api/machine-configuration.ts';
import { CLUSTER } from '../../machine-config-api/names.ts';

const FIELD_MANAGER = 'machine-config-operator';

/**
 * Creates MachineConfiguration `cluster` where it is missing (spec 50, MP-1) and, where disruption policies are in force,
 * publishes the merged ones in its status (MP-2, MP-3).
 */
export async function ensureMachineConfiguration(
  kube: Kube,
  existing: MachineConfiguration | undefined,
  options: CallOptions & { readonly publishesPolicies: boolean },
): Promise<void> {
  const { publishesPolicies, signal } = options;
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
  const clusterPolicies = mergePolicies(current.spec?.nodeDisruptionPolicy ?? {});
  if (semanticallyEqual(current.status?.nodeDisruptionPolicyStatus?.clusterPolicies, clusterPolicies)) return;
  const status = { ...current.status, nodeDisruptionPolicyStatus: { clusterPolicies } };
  await kube.updateStatus(MACHINE_CONFIGURATIONS, { ...current, status }, { signal });
}
