import { type Artefact, artefactOf, type ReadArtefact } from '../../trust/artefact.ts';
import type { Edge, TrustGraph } from '../../trust/graph.ts';
import type { Route } from '../../trust/prober.ts';

/**
 * Remembers what was taken from the API, so that a verdict can say on what it rests: a client on a node that was only assumed to have what
 * is published for it may have something else.
 */
export class Evidence {
  readonly #published = new Set<string>();

  /** The same reader, remembered. */
  publishing(read: ReadArtefact): ReadArtefact {
    return (artefact, place) => {
      this.#published.add(keyOf(artefact, place));
      return read(artefact, place);
    };
  }

  /** What was assumed of the clients of an edge; undefined when nothing was. The edge is that of the whole graph. */
  assumed(whole: TrustGraph, { client }: Edge, routes: readonly Route[]): string | undefined {
    const held = [client.presents, client.verifiesWith].filter(holding => typeof holding === 'object');
    // Whoever is nowhere in particular reads the API, but for people, who have a kubeconfig somewhere.
    const isPerson = client.nodes === 'anywhere' && held.some(holding => 'issuerIn' in holding);
    if (client.nodes === 'anywhere' && !isPerson) return undefined;
    const places = [...new Set(routes.map(({ from }) => from))];
    const unseen = places.filter(
      place => isPerson || held.some(holding => this.#published.has(keyOf(artefactOf(whole, client, holding), place))),
    );
    if (unseen.length === 0) return undefined;
    return `the files of ${client.process}${placesText(unseen)} cannot be seen from here: what is published for it was used`;
  }
}

const MOST_PLACES = 3;

function placesText(places: readonly string[]): string {
  if (places[0] === 'anywhere') return '';
  const more = places.length > MOST_PLACES ? ` and ${places.length - MOST_PLACES} more` : '';
  return ` on ${places.slice(0, MOST_PLACES).join(', ')}${more}`;
}

function keyOf({ object, files }: Artefact, place: string): string {
  return JSON.stringify([place, object, files]);
}
