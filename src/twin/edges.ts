import { type Artefact, artefactOf } from '../trust/artefact.ts';
import type { Edge, Foreign, Holding, Side, Takes, TrustGraph } from '../trust/graph.ts';
import type { Texts } from '../trust/material.ts';
import type { ObjectRef } from '../trust/object.ts';
import type { Handshakes, Verdict } from './handshakes.ts';
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
  /** The same for those who judge it: from when until when it is good, and the name of who signed it. */
  readonly shownFacts: { readonly beginsMs: number; readonly endsMs: number; readonly issuer: string };
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
  readonly handshakes: Handshakes;
  /** What somebody who is on no node reads from the API; undefined: nobody looks at them. */
  readonly published: (process: string, object: ObjectRef) => Texts | undefined;
}

/**
 * Looks at every connection of the trust graph, between every client and every server that run at this moment, in both directions, with
 * the real verification of chains.
 */
export class Edges {
  readonly #options: EdgesOptions;
  #graph: TrustGraph | undefined;
  #directions: readonly Direction[] = [];

  constructor(options: EdgesOptions) {
    this.#options = options;
  }

  look(graph: TrustGraph, nowMs: number): Look {
    const refusals: Refusal[] = [];
    let untilMs = Number.POSITIVE_INFINITY;
    let checked = 0;
    for (const direction of this.#directionsIn(graph)) {
      const { edge, shows, checks, by } = direction;
      const shown = this.#held(shows, direction.presents, 'shown');
      const trusted = this.#held(checks, direction.verifiesWith, 'trusted');
      for (const presenter of shown) {
        for (const verifier of trusted) {
          if (direction.isLocal && presenter.name !== verifier.name) continue;
          checked++;
          const verdict = this.#verdict(direction, presenter, verifier.material, nowMs);
          untilMs = Math.min(untilMs, verdict.untilMs);
          if (verdict.answer.ok) continue;
          const [leaf] = presenter.material.certificates;
          refusals.push({
            edge: edge.name,
            by,
            refuser: `${checks.process} on ${verifier.name}`,
            refused: `${shows.process} on ${presenter.name}`,
            reason: verdict.answer.reason,
            code: verdict.answer.code,
            shown: leaf === undefined ? 'nothing' : `${leaf.subject.commonName} of ${leaf.issuer.commonName}`,
            shownFacts: {
              beginsMs: leaf?.notBefore.getTime() ?? 0,
              endsMs: leaf?.notAfter.getTime() ?? 0,
              issuer: leaf?.issuer.commonName ?? '',
            },
          });
        }
      }
    }
    return { refusals, checked, untilMs };
  }

  /** Why a client and a server would not connect now, whether they are ready or not; undefined: they would. */
  whyNot(graph: TrustGraph, { edge, client, server, nowMs }: Meeting): string | undefined {
    const { materials } = this.#options;
    for (const direction of this.#directionsIn(graph)) {
      if (direction.edge.name !== edge) continue;
      const { shows, checks, presents, verifiesWith, by } = direction;
      const [presenter, verifier] = by === 'client' ? [server, client] : [client, server];
      const shown = presenter.have(shows.process, presents.files, presents.takes, 'shown');
      const trusted = verifier.have(checks.process, verifiesWith.files, verifiesWith.takes, 'trusted');
      if (shown === undefined || trusted === undefined) return 'ECONNREFUSED';
      const held = { name: presenter.name, address: presenter.address, material: materials.shown(shown) };
      const { answer } = this.#verdict(direction, held, materials.trusted(trusted), nowMs);
      if (!answer.ok) return `refused by the ${by}: ${answer.reason}`;
    }
    return undefined;
  }

  #directionsIn(graph: TrustGraph): readonly Direction[] {
    if (graph !== this.#graph) {
      this.#graph = graph;
      this.#directions = graph.edges.flatMap(edge => directionsOf(graph, edge));
    }
    return this.#directions;
  }

  #verdict({ edge, by }: Direction, { material: shown, address }: Held, roots: Material, nowMs: number): Verdict {
    const place = by === 'client' ? hostIn(edge, this.#options.hostOf) : undefined;
    const host = place === ADDRESS ? address : place;
    return this.#options.handshakes.verdict({ shown, roots, by, host, nowMs });
  }

  #held(side: Side, { object, files, takes }: Artefact, as: 'shown' | 'trusted'): Held[] {
    const { nodes, materials, published } = this.#options;
    if (side.nodes === 'anywhere') {
      const texts = object && published(side.process, object);
      return texts === undefined ? [] : [{ name: 'the network of pods', address: '', material: materials[as](texts) }];
    }
    return nodes().flatMap(node => {
      if (side.nodes === 'control-plane' && !node.isControlPlane) return [];
      const texts = node.have(side.process, files, takes);
      // A server that starts or stops is nobody's partner.
      if (texts === undefined || node.podOf(side.process)?.isReady === false) return [];
      return [{ name: node.name, address: node.address, material: materials[as](texts) }];
    });
  }
}

/** A client and a server of one kind of connection. */
export interface Meeting {
  readonly edge: string;
  readonly client: Party;
  readonly server: Party;
  readonly nowMs: number;
}

/** Whoever takes part: a node, or somebody with things of their own. */
export interface Party {
  readonly name: string;
  readonly address: string;
  have(process: string, files: readonly string[], takes: Takes, as: 'shown' | 'trusted'): Texts | undefined;
}

interface Held {
  readonly name: string;
  readonly address: string;
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
