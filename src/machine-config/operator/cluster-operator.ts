import type { ClusterOperatorStatus, ObjectReference } from '../../controller/cluster-operator-status.ts';
import { type Condition, setCondition } from '../../controller/condition.ts';
import type { MachineConfigPool } from '../../machine-config-api/machine-config.ts';
import { MCO_NAMESPACE } from '../../machine-config-api/names.ts';
import { poolSummary } from './required-pools.ts';

/** A step of the operator that failed (spec 50, 3.2). */
export interface FailedStep {
  readonly step: string;
  readonly message: string;
}

export interface OperatorPass {
  readonly operatorVersion: string;
  /** Whether the cluster is being brought up (spec 50, OP-3). */
  readonly bringingUp: boolean;
  /** In the order of the steps. */
  readonly failures: readonly FailedStep[];
  /** What the required pools are waited for with, for `lastSyncError`. */
  readonly waitingFor?: string | undefined;
  readonly pools: readonly MachineConfigPool[];
  readonly upgradeable: Condition;
  readonly evaluation: Condition;
}

const OPERATOR = 'operator';

/** What ClusterOperator `machine-config` should say after a pass (spec 50, section 11, OP-7). */
export function clusterOperatorStatus(
  existing: ClusterOperatorStatus,
  pass: OperatorPass,
  now: Date,
): ClusterOperatorStatus {
  const { operatorVersion, failures } = pass;
  const reported = existing.versions?.find(({ name }) => name === OPERATOR)?.version;
  // A ClusterOperator that was just made has nothing to upgrade from.
  const isReported = reported === undefined || reported === operatorVersion;
  const isProgressing = pass.bringingUp || !isReported;
  const isDegraded = failures.length > 0;
  const keepsVersion = isProgressing && isDegraded && reported !== undefined;
  const version = keepsVersion ? reported : operatorVersion;
  const conditions = [
    progressing(isProgressing, isReported, isDegraded, operatorVersion),
    degraded(failures, isReported, operatorVersion),
    { type: 'Available', status: 'True', reason: 'AsExpected', message: `Cluster has deployed ${version}` } as const,
    pass.upgradeable,
    pass.evaluation,
  ].reduce((placed, condition) => setCondition(placed, condition, now), existing.conditions ?? []);
  return {
    ...existing,
    conditions,
    versions: [...(existing.versions ?? []).filter(({ name }) => name !== OPERATOR), { name: OPERATOR, version }],
    relatedObjects: RELATED_OBJECTS,
    extension: extensionOf(pass),
  };
}

function progressing(isProgressing: boolean, isReported: boolean, isDegraded: boolean, version: string): Condition {
  const doing = isDegraded ? (isProgressing ? 'Unable to apply' : 'Error while reconciling') : undefined;
  const going = isReported ? (isProgressing ? 'Cluster is bootstrapping' : 'Cluster version is') : 'Working towards';
  return {
    type: 'Progressing',
    status: isProgressing ? 'True' : 'False',
    reason: '',
    message: `${doing ?? going} ${version}`,
  };
}

/** The first failure gives the reason; all are told. */
function degraded(failures: readonly FailedStep[], isReported: boolean, version: string): Condition {
  const [first] = failures;
  if (first === undefined) return { type: 'Degraded', status: 'False', reason: '', message: '' };
  const causes = failures.map(({ message }) => message).join('; ');
  const message = isReported
    ? `Failed to resync ${version} because: ${causes}`
    : `Unable to apply ${version}: ${causes}`;
  return { type: 'Degraded', status: 'True', reason: `${first.step}Failed`, message };
}

function extensionOf({ pools, waitingFor }: OperatorPass): Record<string, string> {
  const lines = [...pools]
    .sort((a, b) => ((a.metadata?.name ?? '') < (b.metadata?.name ?? '') ? -1 : 1))
    .map(pool => [pool.metadata?.name ?? '', poolSummary(pool)] as const);
  return { ...Object.fromEntries(lines), ...(waitingFor !== undefined && { lastSyncError: waitingFor }) };
}

const GROUP = 'machineconfiguration.openshift.io';

/** What to look at when something is wrong (spec 50, CO-3). */
const RELATED_OBJECTS: readonly ObjectReference[] = [
  { group: '', resource: 'namespaces', name: MCO_NAMESPACE },
  ...['machineconfigpools', 'controllerconfigs', 'kubeletconfigs', 'containerruntimeconfigs', 'machineconfigs'].map(
    resource => ({ group: GROUP, resource, name: '' }),
  ),
  { group: '', resource: 'nodes', name: '' },
  ...['kni', 'openstack', 'ovirt', 'vsphere', 'nutanix', 'cloud-platform'].map(platform => ({
    group: '',
    resource: 'namespaces',
    name: `openshift-${platform}-infra`,
  })),
];
