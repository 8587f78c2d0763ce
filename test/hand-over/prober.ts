import { join } from 'node:path';
import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { Evidence } from '../../src/cli/verify/evidence.ts';
import { filesFirst, rootsBelow } from '../../src/cli/verify/node-files.ts';
import { routesFrom } from '../../src/cli/verify/routes.ts';
import { graphOf } from '../../src/cli/verify/run.ts';
import type { Kube } from '../../src/kube/port.ts';
import { NODES } from '../../src/kube/resource.ts';
import { CLUSTER, INFRASTRUCTURES } from '../../src/kube-apiserver/resources.ts';
import type { ReadArtefact } from '../../src/trust/artefact.ts';
import type { Edge, TrustGraph } from '../../src/trust/graph.ts';
import { Prober, type Route } from '../../src/trust/prober.ts';
import { readFrom } from '../../src/trust/read-objects.ts';

/** The edges between processes on nodes, and what is in the files of the nodes, as those processes have it. */
export interface NodeFilesSight {
  readonly graph: TrustGraph;
  readonly nodes: readonly Node[];
  readonly read: ReadArtefact;
  routes(edge: Edge): readonly Route[] | string;
}

export async function nodeFilesSight(kube: Kube, dir: string): Promise<NodeFilesSight> {
  const { items: nodes } = await kube.list(NODES);
  const routes = routesFrom(nodes, await kube.get(INFRASTRUCTURES, CLUSTER));
  const whole = graphOf([], false, true);
  // What may be anywhere has no files on a node, and neither have pods here.
  const edges = whole.edges.filter(({ client }) => client.nodes !== 'anywhere' && client.process !== 'pod');
  const published = new Evidence().publishing((artefact, place) => readFrom(kube)(artefact, place));
  const read = filesFirst(rootsBelow(join(dir, 'nodes')), published);
  return { graph: { ...whole, edges }, nodes, read, routes };
}

/** Travels every edge between processes on nodes, with nothing but what is in the files of the nodes, as they do. */
export async function nodeFilesProber(kube: Kube, dir: string, pauseMs: number): Promise<Prober> {
  return new Prober({ ...(await nodeFilesSight(kube, dir)), pauseMs });
}

/** The same without the ways from and to nodes that are not there. */
export function proberOf(sight: NodeFilesSight, isThere: (node: string) => boolean, pauseMs: number): Prober {
  const nodeAt = addressesOf(sight.nodes);
  const routes = (edge: Edge) => {
    const all = sight.routes(edge);
    if (typeof all === 'string') return all;
    return all.filter(({ from, host }) => [from, nodeAt.get(host) ?? ''].every(isThere));
  };
  return new Prober({ ...sight, routes, pauseMs });
}

/** The names of nodes by their addresses. */
export function addressesOf(nodes: readonly Node[]): ReadonlyMap<string, string> {
  return new Map(
    nodes.flatMap(({ metadata, status }) =>
      (status?.addresses ?? []).map(({ address }) => [address, metadata?.name ?? ''] as const),
    ),
  );
}
