import type { ChainAnswer } from '../pki/chain.ts';
import { verifyChain } from '../pki/chain.ts';
import { type Artefact, artefactOf } from '../trust/artefact.ts';
import type { Edge, Foreign, Holding, Side, TrustGraph } from '../trust/graph.ts';
import type { Material, Materials } from './material.ts';
import type { TwinNode } from './node.ts';

/** One side of a connection that does not accept the other, at this moment. */
export interface Refusal {
  readonly edge: string;
  readonly by: 'client' | 'server';
  /** Who refuses, and who is refused: processes with their nodes. */
  readonly refuser: string;
  readonly refused: string;
  readonly reason: string;
  readonly code: string;
  /** What is shown, and by whom it is signed. */
  readonly shown: string;
}

export interface Look {
  readonly refusals: readonly Refusal[];
  /** How many sides of connections had something to show to somebody who checks. */
  readonly checked: number;
  /** Until then nothing changes by time alone. */
  readonly untilMs: number;
}

export interface EdgesOptions {
  readonly materials: Materials;
  readonly nodes: () => readonly TwinNode[];
  /** What a place in the URL of an endpoint stands for. */
  readonly hostOf: (place: string) => string;
}

/** More verdicts than this are worked out anew. */
const MOST_VERDICTS = 50_000;

/**
 * Looks at every connection of the trust graph, between every client and every server that run at this moment, in both directions, with
 * the real verification of chains.
 */
export class Edges {
  readonly #options: EdgesOptions;
  readonly #verdicts = new Map<string, Verdict>();
  #graph: TrustGraph | undefined;
  #sides: readonly Direction[] = [];

  constructor(options: EdgesOptions) {
    this.#options = options;
  }

  look(graph: TrustGraph, nowMs: number): Look {
    if (graph !== this.#graph) {
      this.#graph = graph;
      this.#sides = graph.edges.flatMap(edge => directionsOf(graph, edge));
    }
    const refusals: Refusal[] = [];
    let untilMs = Number.POSITIVE_INFINITY;
    let checked = 0;
    const nodes = this.#options.nodes();
    for (const direction of this.#sides) {
      const { edge, shows, checks, by } = direction;
      const shown = this.#held(nodes, shows, direction.presents, 'shown');
      const trusted = this.#held(nodes, checks, direction.verifiesWith, 'trusted');
      const host = by === 'client' ? hostIn(edge, this.#options.hostOf) : undefined;
      for (const presenter of shown) {
        for (const verifier of trusted) {
          if (direction.isLocal && presenter.node !== verifier.node) continue;
          checked++;
          const asked = host === ADDRESS ? presenter.node.address : host;
          const verdict = this.#verdict(presenter.material, verifier.material, by, asked, nowMs);
          untilMs = Math.min(untilMs, verdict.untilMs);
          if (verdict.answer.ok) continue;
          const [leaf] = presenter.material.certificates;
          refusals.push({
            edge: edge.name,
            by,
            refuser: `${checks.process} on ${verifier.node.name}`,
            refused: `${shows.process} on ${presenter.node.name}`,
            reason: verdict.answer.reason,
            code: verdict.answer.code,
            shown: leaf === undefined ? 'nothing' : `${leaf.subject.commonName} of ${leaf.issuer.commonName}`,
          });
        }
      }
    }
    return { refusals, checked, untilMs };
  }

  #held(nodes: readonly TwinNode[], side: Side, { files, takes }: Artefact, as: 'shown' | 'trusted'): Held[] {
    if (side.nodes === 'anywhere') return [];
    return nodes.flatMap(node => {
      if (side.nodes === 'control-plane' && !node.isControlPlane) return [];
      const texts = node.have(side.process, files, takes);
      // A server that starts or stops is nobody's partner.
      if (texts === undefined || node.podOf(side.process)?.isReady === false) return [];
      return [{ node, material: this.#options.materials[as](texts) }];
    });
  }

  #verdict(
    { id, certificates, problem }: Material,
    roots: Material,
    by: 'client' | 'server',
    host: string | undefined,
    nowMs: number,
  ): Verdict {
    const key = `${id} ${roots.id} ${by} ${host ?? ''}`;
    const known = this.#verdicts.get(key);
    if (known !== undefined && nowMs >= known.fromMs && nowMs < known.untilMs) return known;
    const [leaf, ...intermediates] = certificates;
    const usage = by === 'client' ? 'serverAuth' : 'clientAuth';
    const now = new Date(nowMs);
    const answer: ChainAnswer =
      leaf === undefined
        ? { ok: false, code: 'UNKNOWN_AUTHORITY', reason: problem ?? 'nothing is shown' }
        : verifyChain({ leaf, intermediates, roots: roots.certificates, now, usage, host });
    const edges = [...certificates, ...roots.certificates].flatMap(({ notBefore, notAfter }) => [
      notBefore.getTime(),
      notAfter.getTime() + 1,
    ]);
    const untilMs = Math.min(Number.POSITIVE_INFINITY, ...edges.filter(edge => edge > nowMs));
    const verdict = { answer, fromMs: nowMs, untilMs };
    if (this.#verdicts.size >= MOST_VERDICTS) this.#verdicts.clear();
    this.#verdicts.set(key, verdict);
    return verdict;
  }
}

interface Verdict {
  readonly answer: ChainAnswer;
  readonly fromMs: number;
  readonly untilMs: number;
}

interface Held {
  readonly node: TwinNode;
  readonly material: Material;
}

/** One way of a connection: who shows something to whom. */
interface Direction {
  readonly edge: Edge;
  readonly shows: Side;
  readonly checks: Side;
  readonly presents: Artefact;
  readonly verifiesWith: Artefact;
  readonly by: 'client' | 'server';
  /** Client and server are on one node. */
  readonly isLocal: boolean;
}

function directionsOf(graph: TrustGraph, edge: Edge): Direction[] {
  const { client, server } = edge;
  const isLocal = hostNameOf(edge) === 'localhost';
  const direction = (shows: Side, checks: Side, by: Direction['by']): Direction[] => {
    const [presents, verifiesWith] = [held(shows.presents), held(checks.verifiesWith)];
    if (presents === undefined || verifiesWith === undefined) return [];
    return [
      {
        edge,
        shows,
        checks,
        presents: artefactOf(graph, shows, presents),
        verifiesWith: artefactOf(graph, checks, verifiesWith),
        by,
        isLocal,
      },
    ];
  };
  return [...direction(server, client, 'client'), ...direction(client, server, 'server')];
}

function held(what: Side['presents'] | Side['verifiesWith']): Holding | Foreign | undefined {
  return typeof what === 'object' ? what : undefined;
}

const ADDRESS = '<node address>';

function hostNameOf({ server }: Edge): string {
  return /^https:\/\/(.*):\d+$/.exec(server.endpoint.url)?.[1] ?? '';
}

/** The name that a server's certificate has to be good for. */
function hostIn(edge: Edge, hostOf: (place: string) => string): string {
  const host = edge.server.endpoint.serverName ?? hostNameOf(edge);
  return host.startsWith('<') && host !== ADDRESS ? hostOf(host) : host;
}
