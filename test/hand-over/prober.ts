import { join } from 'node:path';
import { Evidence } from '../../src/cli/verify/evidence.ts';
import { filesFirst, rootsBelow } from '../../src/cli/verify/node-files.ts';
import { routesFrom } from '../../src/cli/verify/routes.ts';
import { graphOf, readFrom } from '../../src/cli/verify/run.ts';
import type { Kube } from '../../src/kube/port.ts';
import { NODES } from '../../src/kube/resource.ts';
import { CLUSTER, INFRASTRUCTURES } from '../../src/kube-apiserver/resources.ts';
import { Prober } from '../../src/trust/prober.ts';

/** Travels every edge between processes on nodes, with nothing but what is in the files of the nodes, as they do. */
export async function nodeFilesProber(kube: Kube, dir: string, pauseMs: number): Promise<Prober> {
  const { items: nodes } = await kube.list(NODES);
  const routes = routesFrom(nodes, await kube.get(INFRASTRUCTURES, CLUSTER));
  const whole = graphOf([], false, true);
  // What may be anywhere has no files on a node, and neither have pods here.
  const edges = whole.edges.filter(({ client }) => client.nodes !== 'anywhere' && client.process !== 'pod');
  const published = new Evidence().publishing((artefact, place) => readFrom(kube)(artefact, place));
  const read = filesFirst(rootsBelow(join(dir, 'nodes')), published);
  return new Prober({ graph: { ...whole, edges }, routes, read, pauseMs });
}
