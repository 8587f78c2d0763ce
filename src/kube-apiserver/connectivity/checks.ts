import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { throwIfAny } from '../../controller/aggregate-error.ts';
import type { Reconcile } from '../../controller/reconcile.ts';
import { applyObject, deleteObject } from '../../kube/apply.ts';
import { listAll } from '../../kube/list.ts';
import type { Kube } from '../../kube/port.ts';
import { NODES } from '../../kube/resource.ts';
import { CONTROL_PLANE_LABELS } from '../../staticpod/nodes.ts';
import type { Objects } from '../../staticpod/objects.ts';
import { OPERAND_NAMESPACE } from '../namespaces.ts';
import {
  CLUSTER,
  CONNECTIVITY_CHECKS,
  type Config,
  INFRASTRUCTURES,
  type Infrastructure,
  internalUrlOf,
  KUBE_API_SERVERS,
  type PodNetworkConnectivityCheck,
} from '../resources.ts';
import { isToAct } from '../target-config/controller.ts';
import { valueAt } from '../target-config/merge.ts';

export interface CheckInputs {
  readonly observedConfig: Config;
  readonly infrastructure: Infrastructure | undefined;
  readonly controlPlaneNodes: readonly Node[];
}

/** From every kube-apiserver to every member of etcd and to both load balancers. */
export function wantedChecks({
  observedConfig,
  infrastructure,
  controlPlaneNodes,
}: CheckInputs): PodNetworkConnectivityCheck[] {
  const servers = valueAt(observedConfig, ['apiServerArguments', 'etcd-servers']);
  const urls = Array.isArray(servers) ? (servers as readonly string[]) : [];
  const targets = [
    ...urls.flatMap(url => {
      const endpoint = endpointOf(url);
      const node = endpoint && nodeAt(hostOf(url), controlPlaneNodes);
      return node === undefined || endpoint === undefined
        ? []
        : [{ name: `etcd-server-${node}`, endpoint, tlsClientCert: 'etcd-client' }];
    }),
    ...(
      [
        ['load-balancer-api-external', infrastructure?.status?.apiServerURL ?? ''],
        ['load-balancer-api-internal', infrastructure ? internalUrlOf(infrastructure) : ''],
      ] as const
    ).flatMap(([name, url]) => {
      const endpoint = endpointOf(url);
      return endpoint === undefined ? [] : [{ name, endpoint, tlsClientCert: '' }];
    }),
  ];
  return controlPlaneNodes.flatMap(({ metadata }) => {
    const sourcePod = `kube-apiserver-${metadata?.name}`;
    return targets.map(({ name, endpoint, tlsClientCert }) => ({
      metadata: { namespace: OPERAND_NAMESPACE, name: `${sourcePod}-to-${name}` },
      spec: { sourcePod, targetEndpoint: endpoint, tlsClientCert: { name: tlsClientCert } },
    }));
  });
}

/** Keeps one check for each connection that should be watched, and no others. */
export function connectivityCheckReconcile({
  kube,
  cached,
}: {
  readonly kube: Kube;
  readonly cached: Objects;
}): Reconcile {
  return async (_key, reconciling) => {
    const { events, signal } = reconciling;
    const operator = await cached.get(KUBE_API_SERVERS, CLUSTER);
    if (!isToAct(operator?.spec?.managementState, reconciling)) return;
    const wanted = wantedChecks({
      observedConfig: operator?.spec?.observedConfig ?? {},
      infrastructure: await cached.get(INFRASTRUCTURES, CLUSTER),
      controlPlaneNodes: await cached.list(NODES, { labels: CONTROL_PLANE_LABELS }),
    });
    const context = { kube, events, signal };
    const errors: unknown[] = [];
    for (const check of wanted) {
      await applyObject(context, CONNECTIVITY_CHECKS, check).catch((error: unknown) => errors.push(error));
    }
    const names = new Set(wanted.map(({ metadata }) => metadata?.name));
    const { items } = await listAll(kube, CONNECTIVITY_CHECKS, { namespace: OPERAND_NAMESPACE, signal });
    for (const { metadata } of items) {
      const { namespace, name = '' } = metadata ?? {};
      if (names.has(name) || !name.startsWith('kube-apiserver-')) continue;
      await deleteObject(context, CONNECTIVITY_CHECKS, { namespace, name }).catch((error: unknown) =>
        errors.push(error),
      );
    }
    throwIfAny(errors);
  };
}

/** `<host>:<port>`; undefined for what is no URL. */
function endpointOf(url: string): string | undefined {
  if (!URL.canParse(url)) return undefined;
  const { hostname, port, protocol } = new URL(url);
  return hostname === '' ? undefined : `${hostname}:${port || (protocol === 'https:' ? '443' : '80')}`;
}

function hostOf(url: string): string {
  return new URL(url).hostname.replace(/^\[|\]$/g, '');
}

/** The node with that internal address; its own member is called localhost. */
function nodeAt(host: string, nodes: readonly Node[]): string | undefined {
  if (['localhost', '127.0.0.1', '::1'].includes(host)) return 'localhost';
  return nodes.find(({ status }) =>
    status?.addresses?.some(({ type, address }) => type === 'InternalIP' && address === host),
  )?.metadata?.name;
}
