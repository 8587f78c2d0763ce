import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { systemClock } from '../../kube/clock.ts';
import { seconds } from '../../kube/duration.ts';
import { getIfPresent } from '../../kube/get.ts';
import { listAll } from '../../kube/list.ts';
import type { Kube } from '../../kube/port.ts';
import { NODES } from '../../kube/resource.ts';
import { CLUSTER, INFRASTRUCTURES } from '../../kube-apiserver/resources.ts';
import { Prober } from '../../trust/prober.ts';
import { readFrom } from '../../trust/read-objects.ts';
import { kubeadmNodeEdges } from '../verify/kubeadm-nodes.ts';
import { filesFirst, type NodeRoot, noRoots } from '../verify/node-files.ts';
import { routesFrom } from '../verify/routes.ts';
import { graphOf } from '../verify/run.ts';

const PAUSE_MS = seconds(10);
const NODES_FRESH_MS = seconds(60);

interface ProbeOptions {
  readonly pauseMs?: number | undefined;
  /** Longest wait for one handshake. */
  readonly timeoutMs?: number | undefined;
  readonly edges?: readonly string[] | undefined;
  /** Where the disks of nodes are seen; nowhere unless told otherwise. */
  readonly root?: NodeRoot | undefined;
  /** Whose files are on them; OpenShift's unless told otherwise. */
  readonly layout?: 'openshift' | 'kubeadm' | undefined;
}

/** Handshakes over the edges that can be reached from here, again and again, as `rotunda verify` makes them once. */
export async function clusterProber(
  kube: Kube,
  { pauseMs = PAUSE_MS, timeoutMs, edges = [], root = noRoots, layout = 'openshift' }: ProbeOptions = {},
): Promise<Prober> {
  const infrastructure = await getIfPresent(kube, INFRASTRUCTURES, CLUSTER).catch(() => undefined);
  let nodes: readonly Node[] = (await listAll(kube, NODES)).items;
  let readMs = systemClock.now().getTime();
  const freshNodes = () => {
    const nowMs = systemClock.now().getTime();
    if (nowMs - readMs > NODES_FRESH_MS) {
      readMs = nowMs;
      // The next round sees the new ones; while the API is away the old ones do.
      listAll(kube, NODES)
        .then(({ items }) => (nodes = items))
        .catch(() => {});
    }
    return nodes;
  };
  if (layout === 'kubeadm') return new Prober({ ...kubeadmNodeEdges(kube, freshNodes, root), pauseMs, timeoutMs });
  return new Prober({
    graph: graphOf(edges, false, root !== noRoots),
    routes: edge => routesFrom(freshNodes(), infrastructure)(edge),
    // Certificates rotate: each round reads them anew.
    read: (artefact, place) => filesFirst(root, readFrom(kube))(artefact, place),
    pauseMs,
    timeoutMs,
  });
}
