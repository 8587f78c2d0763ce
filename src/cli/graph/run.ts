import { etcdTrust } from '../../etcd/trust.ts';
import { readInventory } from '../../inventory/read.ts';
import { kubeApiserverTrust } from '../../kube-apiserver/trust.ts';
import { joinGraphs } from '../../trust/graph.ts';
import { lookAround, warnOfUnknown } from '../look/around.ts';
import { nowFrom } from '../moment.ts';
import { withSource } from '../open-source.ts';
import { API_VERSION } from '../output/print.ts';
import { UsageError } from '../usage-error.ts';
import type { GraphFlags } from './command.ts';
import { drawDot, drawSvg, drawText } from './draw.ts';
import { around, type CertificateGraph, certificateGraph } from './model.ts';
import { seenGraph } from './seen.ts';

const DRAWINGS: Readonly<Record<string, (graph: CertificateGraph) => string>> = {
  text: drawText,
  dot: drawDot,
  svg: drawSvg,
  json: graph => `${JSON.stringify({ apiVersion: API_VERSION, kind: 'TrustGraph', ...graph }, undefined, 2)}\n`,
};

export async function runGraph(names: readonly string[], flags: GraphFlags): Promise<void> {
  const draw = Object.hasOwn(DRAWINGS, flags.output) ? DRAWINGS[flags.output] : undefined;
  if (draw === undefined) throw new UsageError(`--output must be text, dot, svg or json, found "${flags.output}"`);
  const now = nowFrom(flags.now);
  const { whole, look } = await withSource(flags, async (source, cluster) => {
    const look = await lookAround(flags, cluster, now);
    if (look?.failure !== undefined) throw look.failure;
    if (look?.layout === 'kubeadm') return { whole: seenGraph(look.items), look: undefined };
    const inventory = await readInventory(source, { parts: ['certificates'] }, now);
    return { whole: certificateGraph(inventory, joinGraphs(kubeApiserverTrust(), etcdTrust())), look };
  });
  const graph = names.length === 0 ? whole : around(whole, names);
  if (graph === undefined)
    throw new Error(`nothing called ${names.map(name => `"${name}"`).join(' or ')} in the graph`);
  process.stdout.write(draw(graph));
  warnOfUnknown(look, graph.nodes.length === 0);
}
