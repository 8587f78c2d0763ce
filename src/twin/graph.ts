import { CONFIG_NAMESPACE } from '../etcd/names.ts';
import type { Profile } from '../etcd/profile.ts';
import { etcdTrust } from '../etcd/trust.ts';
import { OPERAND_NAMESPACE } from '../kube-apiserver/namespaces.ts';
import { KUBE_APISERVER } from '../kube-apiserver/operand-objects.ts';
import { kubeApiserverTrust } from '../kube-apiserver/trust.ts';
import { type Delivery, type Holding, joinGraphs, type Side, type TrustGraph } from '../trust/graph.ts';

/** Who trusts whom in the whole cluster. What etcd calls kube-apiserver's own way of having its certificates is known here: its revision. */
export function twinTrust(profile: Profile): TrustGraph {
  const etcd = etcdTrust(profile);
  const edges = etcd.edges.map(edge => ({ ...edge, client: asDelivered(edge.client) }));
  return joinGraphs(kubeApiserverTrust(), { ...etcd, edges, deliveries: etcd.deliveries.map(inPlace) });
}

/** Files of etcd come with a revision, but lie in one directory for all: the installer replaces them before the member is restarted. */
function inPlace(delivery: Delivery): Delivery {
  return delivery.hostDirectory.includes('<REVISION>') ? delivery : { ...delivery, carrier: 'sync' };
}

function asDelivered(side: Side): Side {
  if (side.process !== KUBE_APISERVER) return side;
  const { presents, verifiesWith } = side;
  return {
    ...side,
    ...(typeof presents === 'object' && 'object' in presents ? { presents: copyOf(presents) } : {}),
    ...(verifiesWith === undefined ? {} : { verifiesWith: copyOf(verifiesWith) }),
  };
}

/** The copy that kube-apiserver's operator makes for its static pod. */
function copyOf({ object }: Holding): Holding {
  if (object.namespace !== CONFIG_NAMESPACE)
    throw new RangeError(
      `expected kube-apiserver to read from ${CONFIG_NAMESPACE}, found ${object.namespace}/${object.name}`,
    );
  return { object: { ...object, namespace: OPERAND_NAMESPACE } };
}
