import type { ConfigMap, Node } from 'kubernetes-types/core/v1.d.ts';
import { type Answer, askForAuthorities, type Question } from '../../hand-over/ask.ts';
import type { Receipt, ReceiptKind } from '../../hand-over/receipt.ts';
import { seconds } from '../../kube/duration.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { certificatesIn } from '../../pki/pem.ts';
import { caDigest } from '../../trust/receipts.ts';
import type { SignerName } from '../chains.ts';
import { ETCD_CLIENT_PORT, ETCD_PEER_PORT, KUBE_APISERVER_PORT } from '../names.ts';
import type { ControlPlaneServer } from '../static-pods.ts';
import { isInRound, type NodeSight } from './cluster.ts';
import { certificatesOfClusterInfo } from './cluster-info.ts';

/** Where it is found out who has loaded a CA. */
export interface EvidenceSources {
  readonly nodes: readonly SeenNode[];
  /** Where servers of the control plane listen, by their mirror pods. */
  readonly servers: readonly ControlPlaneServer[];
  readonly clusterInfo: ConfigMap | undefined;
  readonly authentication: ConfigMap | undefined;
  /** What pods verify kube-apiserver with. */
  pods(ca: Certificate): Promise<readonly Receipt[]>;
  ask?: ((question: Question) => Promise<Answer>) | undefined;
}

export interface SeenNode extends NodeSight {
  readonly node: Node;
}

const ASK_TIMEOUT_MS = seconds(3);
const KUBELET_PORT = 10_250;

/** Everybody who verifies what a CA of this family signs, and whether they have loaded this one (spec 90, 3; spec 80, KA-9). */
export async function receiptsOf(family: SignerName, ca: Certificate, sources: EvidenceSources): Promise<Receipt[]> {
  const { nodes } = sources;
  const servers = nodes.filter(({ isControlPlane }) => isControlPlane);
  const members = servers.filter(({ report }) => report?.etcd !== 'external');
  const digest = caDigest(ca);
  const started = (process: string, on: readonly SeenNode[]) =>
    on.map(node => receipt(`${process} on ${node.name}`, node, 'started', beganWith(node, process, family, digest)));
  const asked = (process: string, on: readonly SeenNode[], place: (node: SeenNode) => Place | undefined) =>
    Promise.all(
      on.map(async node => {
        const finding = await asks(node, place(node), family, ca, sources.ask ?? askForAuthorities);
        return receipt(`${process} on ${node.name}`, node, 'asked', finding);
      }),
    );
  const api = (node: SeenNode) => placeOf(sources, node, 'apiserver', KUBE_APISERVER_PORT);
  const files = (on: readonly SeenNode[]) =>
    on.map(node => receipt(`files of ${family} on ${node.name}`, node, 'reported', inFiles(node, family, digest)));
  const renamed = (receipts: readonly Receipt[], how: string) =>
    receipts.map(one => ({ ...one, verifier: `${one.verifier} (${how})` }));
  const found: Record<SignerName, () => Promise<readonly Receipt[]>> = {
    ca: async () => [
      ...files(nodes),
      ...started('kube-controller-manager', servers),
      ...started('kube-scheduler', servers),
      ...renamed(started('kubelet', nodes), 'kubelet.conf'),
      published('nodes that join', certificatesOfClusterInfo(sources.clusterInfo), ca, 'cluster-info'),
      ...(await asked('kube-apiserver', servers, api)),
      ...(await asked('kubelet', nodes, kubeletOf)),
      ...(await sources.pods(ca)),
    ],
    'front-proxy-ca': async () => {
      const held = certificatesIn(sources.authentication?.data?.['requestheader-client-ca-file']);
      return [
        ...files(servers),
        published('aggregated API servers', held, ca, 'extension-apiserver-authentication'),
        ...(await asked('kube-apiserver', servers, api)),
      ];
    },
    'etcd-ca': async () => [
      ...files(members),
      ...renamed(started('etcd', members), 'at its start'),
      ...started('kube-apiserver', servers),
      ...(await asked('etcd', members, node => placeOf(sources, node, 'etcd-server', ETCD_CLIENT_PORT))),
      ...(await asked('etcd for its members', members, node => placeOf(sources, node, 'etcd-peer', ETCD_PEER_PORT))),
    ],
  };
  const receipts = await found[family]();
  return receipts.toSorted((a, b) => (a.verifier < b.verifier ? -1 : 1));
}

interface Finding {
  readonly isLoaded: boolean;
  readonly evidence: string;
}

interface Place {
  readonly host: string;
  readonly port: number;
}

function receipt(verifier: string, node: SeenNode, kind: ReceiptKind, { isLoaded, evidence }: Finding): Receipt {
  return { verifier, node: node.name, kind, isLoaded, evidence, isWaived: node.isWaived };
}

function published(verifier: string, held: readonly Certificate[], ca: Certificate, where: string): Receipt {
  const isLoaded = held.some(({ der }) => der.equals(ca.der));
  const evidence = isLoaded ? `${where} has it` : `${where} is without it`;
  return { verifier, node: undefined, kind: 'reported', isLoaded, evidence, isWaived: false };
}

function inFiles(node: SeenNode, family: SignerName, digest: string): Finding {
  const { report } = node;
  if (report === undefined) return missing('its agent says nothing');
  if (isInRound(node)) return missing(report.problem ?? 'its agent is not done yet');
  return report.signers[family]?.cas.includes(digest)
    ? { isLoaded: true, evidence: 'has it' }
    : missing('is without it');
}

function beganWith({ report }: SeenNode, process: string, family: SignerName, digest: string): Finding {
  if (report === undefined) return missing('the agent of its node says nothing');
  const seen = report.processes[process];
  if (seen === undefined) return missing('does not run');
  return seen.began[family]?.includes(digest)
    ? { isLoaded: true, evidence: `began with it at ${seen.startedAt}` }
    : missing('has not begun with it');
}

function placeOf(
  { servers }: EvidenceSources,
  node: SeenNode,
  chain: ControlPlaneServer['chain'],
  port: number,
): Place | undefined {
  const told = servers.find(server => server.node === node.name && server.chain === chain);
  return told ?? addressed(node, port);
}

function kubeletOf(node: SeenNode): Place | undefined {
  return addressed(node, node.node.status?.daemonEndpoints?.kubeletEndpoint?.Port ?? KUBELET_PORT);
}

function addressed({ node }: SeenNode, port: number): Place | undefined {
  const host = node.status?.addresses?.find(({ type }) => type === 'InternalIP')?.address;
  return host === undefined ? undefined : { host, port };
}

async function asks(
  node: SeenNode,
  place: Place | undefined,
  family: SignerName,
  ca: Certificate,
  ask: (question: Question) => Promise<Answer>,
): Promise<Finding> {
  if (place === undefined) return missing('its node has no address');
  const { host, port } = place;
  const answer = await ask({ host, port, timeoutMs: ASK_TIMEOUT_MS });
  if (answer.kind === 'silent') return missing(`does not answer at ${host}:${port}: ${answer.reason}`);
  if (answer.kind === 'not-asking') return missing(`does not say at ${host}:${port} which CAs it has loaded`);
  // Names tell two generations apart only where they differ, as ours do.
  const isNamed = answer.authorities.some(authority => authority.equals(ca.subject.der));
  if (!isNamed) return missing('has not loaded it');
  const inFile = inFiles(node, family, caDigest(ca));
  return inFile.isLoaded ? { isLoaded: true, evidence: 'named it in a handshake' } : inFile;
}

function missing(evidence: string): Finding {
  return { isLoaded: false, evidence };
}
