import { NODES } from '../kube/resource.ts';
import type { Certificate } from '../pki/certificate.ts';
import { verifyChain } from '../pki/chain.ts';
import { readCertificates } from '../pki/pem.ts';
import { artefactOf, type ReadArtefact } from '../trust/artefact.ts';
import type { Edge, Side, TrustGraph } from '../trust/graph.ts';
import { bundleIn, pairIn } from '../trust/material.ts';
import { readFrom } from '../trust/read-objects.ts';
import { nodeNames } from './effects.ts';
import type { PlanWorld } from './world.ts';

/** One side of a connection that does not accept the other. */
export interface Refused {
  readonly connection: string;
  readonly by: 'client' | 'server';
  /** The process that refuses, and the one that is refused. */
  readonly refuser: string;
  readonly refused: string;
  /** Where the one who is refused is. */
  readonly place: string;
  readonly reason: string;
}

export interface Look {
  readonly refused: readonly Refused[];
  /** How many sides had something to show to somebody who checks. */
  readonly checked: number;
  /** When the first of the certificates that were shown ends, or of the CAs that they were checked with; nothing changes by itself before. */
  readonly until: Date | undefined;
}

/** Whether everybody accepts everybody, with what the objects hold at this moment. What only nodes have is not seen. */
export async function lookAtConnections(graph: TrustGraph, world: PlanWorld): Promise<Look> {
  const read = readFrom(world.kube);
  const { items: nodes } = await world.kube.list(NODES);
  const refused: Refused[] = [];
  let checked = 0;
  let until: Date | undefined;
  for (const edge of graph.edges) {
    for (const [shows, checks, by, usage] of sidesOf(edge)) {
      const named = shows.nodes === 'anywhere' ? [] : nodeNames(nodes, shows.nodes);
      // Files may come without nodes: what all nodes have in common is looked at then too.
      const places = named.length > 0 ? named : ['anywhere'];
      const roots = await certificatesOf(graph, checks, 'verifiesWith', read, places[0] as string);
      for (const place of places) {
        const [leaf, ...intermediates] = (await certificatesOf(graph, shows, 'presents', read, place)) ?? [];
        if (roots === undefined || leaf === undefined) continue;
        checked++;
        for (const { notAfter } of [leaf, ...intermediates, ...roots])
          if (notAfter > world.now && (until === undefined || notAfter < until)) until = notAfter;
        const answer = verifyChain({ leaf, intermediates, roots, now: world.now, usage });
        if (answer.ok) continue;
        const { reason } = answer;
        refused.push({ connection: edge.name, by, refuser: checks.process, refused: shows.process, place, reason });
      }
    }
  }
  return { refused, checked, until };
}

/** Who shows something to whom; the other one is who refuses it. */
function sidesOf({ client, server }: Edge) {
  return [
    [server, client, 'client', 'serverAuth'],
    [client, server, 'server', 'clientAuth'],
  ] as const;
}

async function certificatesOf(
  graph: TrustGraph,
  side: Side,
  what: 'presents' | 'verifiesWith',
  read: ReadArtefact,
  place: string,
): Promise<readonly Certificate[] | undefined> {
  const held = side[what];
  if (typeof held !== 'object' || !('object' in held)) return undefined;
  const texts = await read(artefactOf(graph, side, held), place);
  if (texts === undefined || Object.keys(texts).length === 0) return undefined;
  try {
    return readCertificates(what === 'presents' ? pairIn(texts).cert : bundleIn(texts)).certificates;
  } catch {
    // Twins are made of certificates and their keys; what is more than those, such as a kubeconfig, cannot be read.
    return undefined;
  }
}
