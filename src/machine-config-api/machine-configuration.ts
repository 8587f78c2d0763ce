import { type KubeObject, resource } from '../kube/resource.ts';

export interface DisruptionAction {
  readonly type: 'Reboot' | 'Drain' | 'Reload' | 'Restart' | 'DaemonReload' | 'None' | 'Special';
  readonly reload?: { readonly serviceName: string };
  readonly restart?: { readonly serviceName: string };
}

/** What is done on a node instead of a reboot when only these parts change (spec 50, 2.5). */
export interface DisruptionPolicies {
  readonly files?: readonly { readonly path: string; readonly actions: readonly DisruptionAction[] }[];
  readonly units?: readonly { readonly name: string; readonly actions: readonly DisruptionAction[] }[];
  readonly sshkey?: { readonly actions: readonly DisruptionAction[] };
}

export interface MachineConfiguration extends KubeObject {
  spec?: { managementState?: string; nodeDisruptionPolicy?: DisruptionPolicies };
  status?: { observedGeneration?: number; nodeDisruptionPolicyStatus?: { clusterPolicies?: DisruptionPolicies } };
}

export const MACHINE_CONFIGURATIONS = resource<MachineConfiguration>(
  'operator.openshift.io/v1',
  'MachineConfiguration',
  'machineconfigurations',
  false,
);
