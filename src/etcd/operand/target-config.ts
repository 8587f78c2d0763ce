import { errorText } from '../../controller/aggregate-error.ts';
import { isManaged } from '../../controller/management-state.ts';
import type { Reconcile } from '../../controller/reconcile.ts';
import { applyConfigMap } from '../../kube/apply.ts';
import { getIfPresent } from '../../kube/get.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, SECRETS } from '../../kube/resource.ts';
import type { StaticPodOperator } from '../../staticpod/operator.ts';
import { isSameData } from '../aggregate.ts';
import type { QuorumCheck } from '../cert-signer/options.ts';
import { controlPlaneNodes } from '../cert-signer/state.ts';
import { ALL_CERTS, ENDPOINTS, ETCD_NAMESPACE, POD_CONFIG_MAP } from '../names.ts';
import type { Profile } from '../profile.ts';
import { CLUSTER, type Etcd, NETWORKS } from '../resources.ts';
import { etcdEnv } from './env.ts';
import { etcdPod, type PodOptions } from './pod.ts';

export interface TargetConfigOptions extends Omit<PodOptions, 'env' | 'logLevel'> {
  readonly kube: Kube;
  readonly profile: Profile;
  readonly quorum: QuorumCheck;
  readonly operator: StaticPodOperator;
  /** Goes into the ConfigMap: another version of the operator makes another revision. */
  readonly version: string;
}

const CONDITION = 'TargetConfigControllerDegraded';

/** Keeps the manifest of the static pod (spec 40, section 7 and Q-11). */
export function targetConfigReconcile(options: TargetConfigOptions): Reconcile {
  const { operator } = options;
  return async (_key, { events, clock, signal }) => {
    const etcd: Etcd = await operator.readLive(signal);
    if (!isManaged(etcd.spec?.managementState)) return;
    try {
      const data = await requiredData(options, etcd, signal);
      const key = { namespace: ETCD_NAMESPACE, name: POD_CONFIG_MAP };
      const existing = await getIfPresent(options.kube, CONFIG_MAPS, key, { signal });
      if (!isSameData(existing?.data, data)) {
        await requireQuorum(options.quorum, signal);
        await applyConfigMap({ kube: options.kube, events, clock, signal }, { metadata: key, data });
      }
    } catch (error) {
      const message = errorText(error);
      await operator.setConditions(
        [{ type: CONDITION, status: 'True', reason: 'SynchronizationError', message }],
        signal,
      );
      throw error;
    }
    await operator.setConditions([{ type: CONDITION, status: 'False' }], signal);
  };
}

async function requireQuorum(quorum: QuorumCheck, signal: AbortSignal): Promise<void> {
  const { safe, error } = await quorum({ signal });
  if (safe) return;
  throw new Error(
    error === undefined
      ? 'skipping TargetConfigController reconciliation due to insufficient quorum'
      : `TargetConfigController can't evaluate whether quorum is safe: ${error}`,
  );
}

async function requiredData(
  options: TargetConfigOptions,
  { spec = {}, status = {} }: Etcd,
  signal: AbortSignal,
): Promise<Record<string, string>> {
  const { kube, profile, image } = options;
  const inEtcd = (name: string) => ({ namespace: ETCD_NAMESPACE, name });
  const [nodes, network, endpoints, allCerts] = await Promise.all([
    controlPlaneNodes(kube, signal),
    getIfPresent(kube, NETWORKS, CLUSTER, { signal }),
    getIfPresent(kube, CONFIG_MAPS, inEtcd(ENDPOINTS), { signal }),
    getIfPresent(kube, SECRETS, inEtcd(ALL_CERTS), { signal }),
  ]);
  const nodeNames = (status.nodeStatuses ?? []).map(({ nodeName }) => nodeName).sort();
  const env = etcdEnv({ profile, nodeNames, nodes, network, endpoints, allCerts, spec, image });
  const pod = etcdPod({ ...options, env, logLevel: etcdLogLevel(spec.logLevel) });
  return {
    // JSON is YAML, and a revision number put between its quotes stays a text.
    'pod.yaml': `${JSON.stringify(pod, null, 2)}\n`,
    forceRedeploymentReason: spec.forceRedeploymentReason ?? '',
    version: options.version,
  };
}

/** What etcd calls the level. */
function etcdLogLevel(logLevel: string | undefined): 'debug' | 'info' {
  return logLevel === 'Debug' || logLevel === 'Trace' || logLevel === 'TraceAll' ? 'debug' : 'info';
}
