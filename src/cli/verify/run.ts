import { etcdTrust } from '../../etcd/trust.ts';
import { getIfPresent } from '../../kube/get.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, NODES, SECRETS } from '../../kube/resource.ts';
import { CLUSTER, INFRASTRUCTURES } from '../../kube-apiserver/resources.ts';
import { kubeApiserverTrust } from '../../kube-apiserver/trust.ts';
import { objectsOfCluster, type ReadArtefact } from '../../trust/artefact.ts';
import type { EdgeReport, Refusal } from '../../trust/edge-counter.ts';
import { joinGraphs, type TrustGraph } from '../../trust/graph.ts';
import { Prober } from '../../trust/prober.ts';
import { withCluster } from '../cluster.ts';
import { positiveDurationFrom } from '../cluster-flags.ts';
import { type OutputFormat, outputFormatFrom } from '../output/format.ts';
import { API_VERSION, type Listing, printDocument, printItems, refuseBadTemplate } from '../output/print.ts';
import { UsageError } from '../usage-error.ts';
import type { VerifyFlags } from './command.ts';
import { routesFrom } from './routes.ts';

export async function runVerify(wanted: readonly string[], flags: VerifyFlags): Promise<void> {
  const format = outputFormatFrom(flags.output);
  refuseBadTemplate(format);
  const timeoutMs = positiveDurationFrom('--timeout', flags.timeout);
  const graph = graphOf(wanted, flags.serverOnly ?? false);
  await withCluster(flags, async ({ kube }) => {
    const [{ items: nodes }, infrastructure] = await Promise.all([
      kube.list(NODES),
      getIfPresent(kube, INFRASTRUCTURES, CLUSTER).catch(() => undefined),
    ]);
    const prober = new Prober({ graph, routes: routesFrom(nodes, infrastructure), read: readFrom(kube), timeoutMs });
    await prober.probe();
    const { edges } = prober.snapshot();
    process.stdout.write(render(edges, format));
    const refused = edges.filter(({ refused: count }) => count > 0);
    const silent = edges.filter(({ unreachable }) => unreachable > 0);
    process.stderr.write(
      `${edges.length} connections: ${refused.length} refused, ${silent.length} with servers that did not answer\n`,
    );
    if (refused.length > 0 || (flags.requireReachable && silent.length > 0)) process.exitCode = 1;
  });
}

/** The edges asked for. What only a node has, a kubelet's own certificate or a token, cannot be shown from here. */
export function graphOf(wanted: readonly string[], serverOnly: boolean): TrustGraph {
  const whole = joinGraphs(kubeApiserverTrust(), etcdTrust());
  const edges = whole.edges
    .filter(({ name }) => wanted.length === 0 || wanted.some(part => name.includes(part)))
    .map(edge => {
      const { presents } = edge.client;
      // A front proxy is known by what it sends along with its certificate: a handshake alone does not show it.
      const isFrontProxy = edge.server.verifiesWith?.object.name === 'aggregator-client-ca';
      const isReadable = typeof presents === 'object' && 'object' in presents && !serverOnly && !isFrontProxy;
      return isReadable ? edge : { ...edge, client: { ...edge.client, presents: undefined } };
    });
  if (edges.length === 0) {
    throw new UsageError(
      `no connection is called ${wanted.map(part => `"${part}"`).join(' or ')}; rotunda verify without names lists all`,
    );
  }
  return { ...whole, edges };
}

/** Objects of the API, each read once. The gathered certificates of etcd are those of the node that shows them. */
export function readFrom(kube: Kube): ReadArtefact {
  const objects = new Map<string, Promise<{ data?: Record<string, string> } | undefined>>();
  return objectsOfCluster(({ kind, namespace, name }) => {
    const id = `${kind}/${namespace}/${name}`;
    let found = objects.get(id);
    if (found === undefined) {
      const key = { namespace, name };
      found = kind === 'Secret' ? getIfPresent(kube, SECRETS, key) : getIfPresent(kube, CONFIG_MAPS, key);
      objects.set(id, found);
    }
    return found;
  });
}

function render(edges: readonly EdgeReport[], format: OutputFormat): string {
  if (['table', 'wide', 'name', 'custom-columns'].includes(format.kind)) return printItems(LISTING, edges, format);
  return printDocument({ apiVersion: API_VERSION, kind: 'Verification', edges }, format);
}

const LISTING: Listing<EdgeReport> = {
  kind: 'Edge',
  columns: [
    { header: 'CONNECTION', cell: ({ edge }) => edge },
    { header: 'RESULT', cell: verdictOf },
    { header: 'ACCEPTED', cell: ({ accepted }) => String(accepted) },
    { header: 'REFUSED', cell: ({ refused }) => String(refused) },
    { header: 'NO-ANSWER', cell: ({ unreachable }) => String(unreachable) },
    { header: 'LAST-ACCEPTED', isWide: true, cell: ({ lastAcceptedAt = '' }) => lastAcceptedAt },
    { header: 'DETAIL', cell: ({ refusals: [first], skipped = '' }) => (first ? refusalText(first) : skipped) },
    {
      header: 'FURTHER-REFUSALS',
      isWide: true,
      cell: ({ refusals }) => refusals.slice(1).map(refusalText).join('; '),
    },
  ],
  name: ({ edge }) => edge,
};

function verdictOf({ refused, accepted, unreachable }: EdgeReport): string {
  if (refused > 0) return 'Refused';
  if (accepted > 0) return unreachable > 0 ? 'PartlyAccepted' : 'Accepted';
  return unreachable > 0 ? 'NoAnswer' : 'Skipped';
}

function refusalText({ by, from, to, reason }: Refusal): string {
  return `the ${by} refuses, from ${from} to ${to}: ${reason}`;
}
