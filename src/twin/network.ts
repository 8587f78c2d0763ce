import type { Answer, Question } from '../hand-over/ask.ts';
import type { ShownAnswer } from '../hand-over/show.ts';
import type { CertificateAndKey } from '../pki/authority.ts';
import type { Certificate } from '../pki/certificate.ts';
import { verifyChain } from '../pki/chain.ts';
import { readCertificates } from '../pki/pem.ts';
import { artefactOf } from '../trust/artefact.ts';
import type { Edge, TrustGraph } from '../trust/graph.ts';
import type { HandshakeOutcome, HandshakeRequest } from '../trust/handshake.ts';
import type { ServerPlace } from '../trust/served.ts';
import type { Material, Materials } from './material.ts';
import type { TwinNode } from './node.ts';
import type { Time } from './time.ts';

export interface NetworkOptions {
  readonly time: Time;
  readonly nodes: () => readonly TwinNode[];
  readonly graph: () => TrustGraph;
  readonly materials: Materials;
  /** Where the name of a load balancer leads. */
  readonly isLoadBalancer: (host: string) => boolean;
}

const KUBE_APISERVER = 'kube-apiserver';
const KUBELET_PORT = 10_250;

/** What the operators and agents ask servers over TLS, answered by what the models of these servers have loaded. */
export class Network {
  readonly #options: NetworkOptions;

  constructor(options: NetworkOptions) {
    this.#options = options;
  }

  ask = async ({ host, port }: Question): Promise<Answer> => {
    const server = this.#serverAt({ host, port });
    if (server === undefined) return { kind: 'silent', reason: 'ECONNREFUSED' };
    const trusted = this.#trustedBy(server);
    if (trusted.length === 0) return { kind: 'not-asking' };
    return { kind: 'loaded', authorities: trusted.map(({ subject }) => subject.der) };
  };

  show = async ({ host, port }: Question, { chain }: CertificateAndKey): Promise<ShownAnswer> => {
    const server = this.#serverAt({ host, port });
    if (server === undefined) return { kind: 'silent', reason: 'ECONNREFUSED' };
    const isTrusted = this.#trustedBy(server).some(({ der }) => chain[0]?.der.equals(der));
    return { kind: isTrusted ? 'accepted' : 'refused' };
  };

  look = async (place: ServerPlace): Promise<readonly Certificate[]> => this.#servedAt(place)?.certificates ?? [];

  /** Only the server is checked, as the agents do. */
  shakeHands = async ({ host, port, serverName, ca = '' }: HandshakeRequest): Promise<HandshakeOutcome> => {
    const [leaf, ...intermediates] = this.#servedAt({ host, port, serverName })?.certificates ?? [];
    if (leaf === undefined) return { kind: 'unreachable', reason: 'ECONNREFUSED' };
    const { certificates: roots } = readCertificates(ca);
    const now = new Date(this.#options.time.nowMs);
    const answer = verifyChain({ leaf, intermediates, roots, now, usage: 'serverAuth', host: serverName });
    return answer.ok ? { kind: 'accepted' } : { kind: 'refused', by: 'client', reason: answer.reason };
  };

  #serverAt({ host, port }: ServerPlace): { readonly node: TwinNode; readonly process: string } | undefined {
    const { nodes, isLoadBalancer } = this.#options;
    const process = port === KUBELET_PORT ? 'kubelet' : KUBE_APISERVER;
    const isUp = (node: TwinNode) =>
      node.handsOf(process) !== undefined && (process === 'kubelet' || node.podOf(process)?.isReady === true);
    const node = nodes().find(
      candidate =>
        isUp(candidate) && (candidate.address === host || (isLoadBalancer(host) && candidate.isControlPlane)),
    );
    return node && { node, process };
  }

  #edgesOf(process: string): Edge[] {
    return this.#options.graph().edges.filter(({ server }) => server.process === process);
  }

  /** All CAs that a server checks clients with, whoever the client is. */
  #trustedBy({ node, process }: { readonly node: TwinNode; readonly process: string }): Certificate[] {
    const found = new Map<number, Material>();
    for (const { server } of this.#edgesOf(process)) {
      if (server.verifiesWith === undefined) continue;
      const { files, takes } = artefactOf(this.#options.graph(), server, server.verifiesWith);
      const texts = node.have(process, files, takes);
      if (texts === undefined) continue;
      const material = this.#options.materials.trusted(texts);
      found.set(material.id, material);
    }
    return [...found.values()].flatMap(({ certificates }) => certificates);
  }

  /** The certificate that is good for the name, or the first one of all. */
  #servedAt(place: ServerPlace): Material | undefined {
    const server = this.#serverAt(place);
    if (server === undefined) return undefined;
    const { graph, materials } = this.#options;
    const served = this.#edgesOf(server.process).flatMap(edge => {
      const { presents } = edge.server;
      if (typeof presents !== 'object') return [];
      const { files, takes } = artefactOf(graph(), edge.server, presents);
      const texts = server.node.have(server.process, files, takes);
      return texts === undefined ? [] : [materials.shown(texts)];
    });
    const name = place.serverName ?? place.host;
    return served.find(({ certificates }) => certificates[0]?.dnsNames.includes(name)) ?? served[0];
  }
}
