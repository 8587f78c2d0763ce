import { existsSync } from 'node:fs';
import { etcdTrust } from '../../etcd/trust.ts';
import { getIfPresent } from '../../kube/get.ts';
import { listAll } from '../../kube/list.ts';
import { NODES } from '../../kube/resource.ts';
import { CLUSTER, INFRASTRUCTURES } from '../../kube-apiserver/resources.ts';
import { kubeApiserverTrust } from '../../kube-apiserver/trust.ts';
import { kubeadmTrust } from '../../kubeadm/trust.ts';
import type { EdgeReport } from '../../trust/edge-counter.ts';
import { type Edge, joinGraphs, type TrustGraph } from '../../trust/graph.ts';
import { Prober } from '../../trust/prober.ts';
import { readFrom } from '../../trust/read-objects.ts';
import { type Cluster, withCluster } from '../cluster.ts';
import { positiveDurationFrom } from '../cluster-flags.ts';
import { layoutOf } from '../look/layout.ts';
import { saidLayout } from '../look/layout-flag.ts';
import { type OutputFormat, outputFormatFrom } from '../output/format.ts';
import { API_VERSION, type Listing, printDocument, printItems, refuseBadTemplate } from '../output/print.ts';
import { UsageError } from '../usage-error.ts';
import { refusalsOf } from './asked-for.ts';
import type { VerifyFlags } from './command.ts';
import { Evidence } from './evidence.ts';
import { kubeadmEdges } from './kubeadm.ts';
import { kubeadmNodeEdges } from './kubeadm-nodes.ts';
import { filesFirst, type NodeRoot, nodesBeside, noRoots, rootsBelow } from './node-files.ts';
import { routesFrom } from './routes.ts';

/** What became of one edge, and on what the verdict rests. */
export interface VerifiedEdge extends EdgeReport {
  readonly result: Result;
  /** What was not seen on a node but taken from the API; absent: nothing. */
  readonly assumed?: string | undefined;
}

/** `AcceptedAsPublished`: accepted, but with what is published for the client instead of what it has. */
type Result = 'Accepted' | 'AcceptedAsPublished' | 'Refused' | 'NoAnswer' | 'PartlyAccepted' | 'Skipped';

const WHOLE = joinGraphs(kubeApiserverTrust(), etcdTrust());
/** Of one edge, in this one round. */
const MOST_ROUTES = 1000;

export async function runVerify(wanted: readonly string[], flags: VerifyFlags): Promise<void> {
  const format = outputFormatFrom(flags.output);
  refuseBadTemplate(format);
  const timeoutMs = positiveDurationFrom('--timeout', flags.timeout);
  const said = saidLayout(flags.layout);
  // A name that no layout has is wrong whatever the cluster is.
  named([...(said === 'kubeadm' ? [] : WHOLE.edges), ...(said === 'openshift' ? [] : kubeadmTrust().edges)], wanted);
  const folder = flags.nodes ?? nodesBeside(flags.kubeconfig ?? process.env.KUBECONFIG);
  if (flags.nodes !== undefined && !existsSync(flags.nodes))
    throw new UsageError(`--nodes: ${flags.nodes} does not exist`);
  const root = folder === undefined ? noRoots : rootsBelow(folder);
  await withCluster(flags, async cluster => {
    const options = { wanted, serverOnly: flags.serverOnly, root, timeoutMs };
    const isKubeadm = (await layoutOf(flags, cluster)) === 'kubeadm';
    const verifyAll = isKubeadm && folder === undefined ? verifyKubeadm : isKubeadm ? verifyKubeadmNodes : verify;
    const edges = await verifyAll(cluster, options);
    process.stdout.write(render(edges, format));
    const count = (is: (edge: VerifiedEdge) => boolean) => edges.filter(is).length;
    const [refused, silent] = [count(edge => edge.refused > 0), count(edge => edge.unreachable > 0)];
    const [assumed, skipped] = [count(edge => edge.assumed !== undefined), count(edge => edge.skipped !== undefined)];
    process.stderr.write(
      `${edges.length} connections: ${refused} refused, ${silent} with servers that did not answer, ` +
        `${assumed} with clients whose files cannot be seen from here${isKubeadm ? `, ${skipped} that cannot be tested from here` : ''}\n`,
    );
    if (refused > 0 || (silent > 0 && !flags.ignoreUnreachable)) process.exitCode = 1;
  });
}

export interface VerifyOptions {
  readonly wanted?: readonly string[] | undefined;
  readonly serverOnly?: boolean | undefined;
  readonly root?: NodeRoot | undefined;
  readonly timeoutMs?: number | undefined;
}

/** Travels every edge once, with what each client really has where that can be seen. */
export async function verify({ kube }: Pick<Cluster, 'kube'>, options: VerifyOptions): Promise<VerifiedEdge[]> {
  const { wanted = [], serverOnly = false, root = noRoots, timeoutMs } = options;
  const [{ items: nodes }, infrastructure] = await Promise.all([
    listAll(kube, NODES),
    getIfPresent(kube, INFRASTRUCTURES, CLUSTER).catch(() => undefined),
  ]);
  const areSeen = nodes.every(({ metadata }) => root(metadata?.name ?? '') !== undefined);
  const graph = graphOf(wanted, serverOnly, areSeen);
  const routes = routesFrom(nodes, infrastructure);
  const evidence = new Evidence();
  const read = filesFirst(root, evidence.publishing(readFrom(kube)));
  const prober = new Prober({ graph, routes, read, timeoutMs, mostRoutes: MOST_ROUTES });
  await prober.probe();
  const edges = new Map(WHOLE.edges.map(edge => [edge.name, edge]));
  return prober.snapshot().edges.map(report => {
    const edge = edges.get(report.edge) as Edge;
    const ways = routes(edge);
    const assumed = typeof ways === 'string' ? undefined : evidence.assumed(WHOLE, edge, ways);
    return { ...report, result: resultOf(report, assumed), assumed };
  });
}

/** The same for a control plane that kubeadm made, whose files are on its nodes (spec 80, 10). */
export async function verifyKubeadm(
  cluster: Cluster,
  { wanted = [], timeoutMs }: VerifyOptions,
): Promise<VerifiedEdge[]> {
  const { graph, routes, read, issuersOf, assumed } = await kubeadmEdges(cluster);
  const edges = named(graph.edges, wanted);
  const prober = new Prober({ graph: { ...graph, edges }, routes, read, timeoutMs, mostRoutes: MOST_ROUTES });
  await prober.probe();
  return Promise.all(
    prober.snapshot().edges.map(async (report, index) => {
      const edge = edges[index] as Edge;
      const [ways, issuers] = [routes(edge), issuersOf(edge)];
      const more = typeof ways === 'string' || issuers.length === 0 ? [] : await refusalsOf(issuers, ways, timeoutMs);
      const whole = { ...report, refused: report.refused + more.length, refusals: [...report.refusals, ...more] };
      const rests = report.skipped === undefined ? assumed(edge) : undefined;
      return { ...whole, result: resultOf(whole, rests), assumed: rests };
    }),
  );
}

/** And with the disks of its nodes in sight: with what everybody there really has. */
export async function verifyKubeadmNodes(
  { kube }: Pick<Cluster, 'kube'>,
  { wanted = [], root = noRoots, timeoutMs }: VerifyOptions,
): Promise<VerifiedEdge[]> {
  const { items } = await listAll(kube, NODES);
  const { graph, routes, read, assumed } = kubeadmNodeEdges(kube, () => items, root);
  const edges = named(graph.edges, wanted);
  const prober = new Prober({ graph: { ...graph, edges }, routes, read, timeoutMs, mostRoutes: MOST_ROUTES });
  await prober.probe();
  return prober.snapshot().edges.map((report, index) => {
    const rests = report.skipped === undefined ? assumed(edges[index] as Edge) : undefined;
    return { ...report, result: resultOf(report, rests), assumed: rests };
  });
}

/** Those whose name contains one of the texts; all without any. */
function named(edges: readonly Edge[], wanted: readonly string[]): readonly Edge[] {
  const found = edges.filter(({ name }) => wanted.length === 0 || wanted.some(part => name.includes(part)));
  if (found.length > 0) return found;
  throw new UsageError(
    `no connection is called ${wanted.map(part => `"${part}"`).join(' or ')}; rotunda verify without names lists all`,
  );
}

/**
 * The edges asked for. A token is never shown, and what only a node has, such as a kubelet's own certificate, only where the disks of
 * nodes can be seen.
 */
export function graphOf(wanted: readonly string[], serverOnly: boolean, areNodesSeen = false): TrustGraph {
  const edges = named(WHOLE.edges, wanted).map(edge => {
    const { presents } = edge.client;
    // A front proxy is known by what it sends along with its certificate: a handshake alone does not show it.
    const isFrontProxy = edge.server.verifiesWith?.object.name === 'aggregator-client-ca';
    const isOnNode = areNodesSeen && edge.client.nodes !== 'anywhere';
    const isShown = typeof presents === 'object' && ('object' in presents || isOnNode);
    const isReadable = isShown && !serverOnly && !isFrontProxy;
    return isReadable ? edge : { ...edge, client: { ...edge.client, presents: undefined } };
  });
  return { ...WHOLE, edges };
}

function render(edges: readonly VerifiedEdge[], format: OutputFormat): string {
  if (['table', 'wide', 'name', 'custom-columns'].includes(format.kind)) return printItems(LISTING, edges, format);
  return printDocument({ apiVersion: API_VERSION, kind: 'Verification', edges }, format);
}

const LISTING: Listing<VerifiedEdge> = {
  kind: 'Edge',
  columns: [
    { header: 'CONNECTION', cell: ({ edge }) => edge },
    { header: 'RESULT', cell: ({ result }) => result },
    { header: 'ACCEPTED', cell: ({ accepted }) => String(accepted) },
    { header: 'REFUSED', cell: ({ refused }) => String(refused) },
    { header: 'NO-ANSWER', cell: ({ unreachable }) => String(unreachable) },
    { header: 'LAST-ACCEPTED', isWide: true, cell: ({ lastAcceptedAt = '' }) => lastAcceptedAt },
    { header: 'DETAIL', cell: edge => detailsOf(edge).slice(0, 1).join() },
    { header: 'FURTHER-DETAILS', isWide: true, cell: edge => detailsOf(edge).slice(1).join('; ') },
  ],
  name: ({ edge }) => edge,
};

function resultOf({ refused, accepted, unreachable }: EdgeReport, assumed: string | undefined): Result {
  if (refused > 0) return 'Refused';
  if (accepted > 0 && unreachable > 0) return 'PartlyAccepted';
  if (accepted > 0) return assumed === undefined ? 'Accepted' : 'AcceptedAsPublished';
  return unreachable > 0 ? 'NoAnswer' : 'Skipped';
}

/** What there is to say, the worst first. */
function detailsOf({ refusals, silences, assumed, skipped }: VerifiedEdge): string[] {
  return [
    ...refusals.map(({ by, from, to, reason }) => `the ${by} refuses, from ${from} to ${to}: ${reason}`),
    ...silences.map(({ to, reason }) => `no answer from ${to}: ${reason}`),
    ...[skipped, assumed].filter(text => text !== undefined),
  ];
}
