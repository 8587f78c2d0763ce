import { nodeNames } from '../../src/forecast/effects.ts';
import { readCertificates } from '../../src/pki/pem.ts';
import { artefactOf } from '../../src/trust/artefact.ts';
import type { NodeFilesSight } from './prober.ts';

/** A certificate that one side of an edge shows on a node. */
export interface ShownLeaf {
  readonly edge: string;
  readonly side: 'client' | 'server';
  readonly node: string;
  readonly notAfter: Date;
}

/** A time in which nothing in the cluster could do anything, and the certificates that were shown when it began. */
export interface Standstill {
  readonly what: string;
  readonly from: Date;
  readonly to: Date;
  readonly leaves: readonly ShownLeaf[];
}

/** One connection that was refused, or several in a row of the same kind. */
export interface Refused {
  readonly at: Date;
  readonly edge: string;
  /** Who refused what the other side showed. */
  readonly by: 'client' | 'server';
  readonly fromNode: string;
  readonly toNode: string;
  readonly reason: string;
  readonly count: number;
}

/** Who continues needs so long to replace what has ended meanwhile. */
const RENEWED_WITHIN_MS = 10_000;

/** The leaves that ended while everything stood still. */
export function endedDuring({ from, to, leaves }: Standstill): ShownLeaf[] {
  return leaves.filter(({ notAfter }) => notAfter >= from && notAfter <= to);
}

/**
 * The standstill that explains a refusal: what was shown is a leaf that ended while everything stood still, and its owner has had no
 * time to replace it. Everything else is a refusal, whatever happened around it.
 */
export function standstillOf(refused: Refused, standstills: readonly Standstill[]): Standstill | undefined {
  const side = refused.by === 'client' ? 'server' : 'client';
  const node = side === 'client' ? refused.fromNode : refused.toNode;
  return standstills.find(standstill => {
    const isInTime = refused.at.getTime() <= standstill.to.getTime() + RENEWED_WITHIN_MS;
    return (
      isInTime &&
      endedDuring(standstill).some(
        leaf => leaf.edge === refused.edge && leaf.side === side && leaf.node === node && leaf.notAfter <= refused.at,
      )
    );
  });
}

/** Everything that is shown over the edges now, by the files of the nodes. */
export async function leavesShown({ graph, nodes, read }: NodeFilesSight): Promise<ShownLeaf[]> {
  const shown = graph.edges.flatMap(edge =>
    (['client', 'server'] as const).flatMap(name => {
      const side = edge[name];
      if (side.nodes === 'anywhere' || side.presents === undefined || side.presents === 'token') return [];
      const artefact = artefactOf(graph, side, side.presents);
      return nodeNames(nodes, side.nodes).map(node => ({ edge: edge.name, side: name, node, artefact }));
    }),
  );
  const found = await Promise.all(
    shown.map(async ({ artefact, ...leaf }) => {
      const texts = await read(artefact, leaf.node).catch(() => undefined);
      const leaves = Object.values(texts ?? {}).flatMap(leavesIn);
      return leaves.map(notAfter => ({ ...leaf, notAfter }));
    }),
  );
  return found.flat();
}

function leavesIn(text: string): Date[] {
  try {
    return readCertificates(text)
      .certificates.filter(({ isCA }) => !isCA)
      .map(({ notAfter }) => notAfter);
  } catch {
    return [];
  }
}
