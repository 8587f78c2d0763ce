import type { Certificate } from '../pki/certificate.ts';
import { parseName } from '../pki/name.ts';
import type { Edge, TrustGraph } from '../trust/graph.ts';
import { isSameObject, type ObjectRef, objectText } from '../trust/object.ts';
import type { Route } from '../trust/prober.ts';
import { type Answer, askForAuthorities, type Question } from './ask.ts';

/** What those who verify say about one CA: who has loaded it, who has not, and who cannot say. */
export interface Survey {
  /** By name: `kubelet on worker-0`. */
  readonly loaded: readonly string[];
  /** They answered, and the CA was not among those they named: what it signs they refuse. */
  readonly missing: readonly string[];
  /** They did not answer, or their answer names nobody; with the reason. */
  readonly silent: readonly string[];
  /** Clients that check servers with it: nobody can ask a client. */
  readonly clients: readonly string[];
}

export interface SurveyOptions {
  readonly graph: TrustGraph;
  /** The Secret of the signer. */
  readonly signer: ObjectRef;
  readonly certificate: Certificate;
  /** Where the servers of an edge are; a text says why nobody knows. */
  routes(edge: Edge): readonly Route[] | string;
  /** The name of the node that has an address. */
  nodeAt(host: string): string;
  readonly timeoutMs: number;
  readonly ask?: ((question: Question) => Promise<Answer>) | undefined;
}

/** Servers that are asked at the same time. */
const MOST_AT_ONCE = 16;

/**
 * Asks everybody who verifies what a signer signs whether they have loaded its CA (spec 90, section 3). Names of signers are unique, so
 * a name tells one generation from the next; where two CAs of a family have one name, the answer would not, and counts as none.
 */
export async function surveyOf(options: SurveyOptions): Promise<Survey> {
  const { graph, signer, routes } = options;
  const holders = holdersOf(graph, signer);
  const verifiesWithIt = (side: Edge['client' | 'server']) =>
    side.verifiesWith !== undefined &&
    holders.some(object => isSameObject(object, side.verifiesWith?.object as ObjectRef));
  const clients = new Set(graph.edges.filter(edge => verifiesWithIt(edge.client)).map(({ client }) => client.process));
  // Many edges end at one port; whoever listens there is asked once.
  const servers = new Map<string, { name: string; route: Route }>();
  const silent: string[] = [];
  for (const edge of graph.edges.filter(({ server }) => verifiesWithIt(server))) {
    const found = routes(edge);
    if (typeof found === 'string') silent.push(`${edge.server.process}: ${found}`);
    else {
      for (const route of found) {
        const address = `${route.host}:${route.port}`;
        if (!servers.has(address))
          servers.set(address, { name: `${edge.server.process} on ${options.nodeAt(route.host)}`, route });
      }
    }
  }
  const loaded: string[] = [];
  const missing: string[] = [];
  const waiting = [...servers.values()];
  const askNext = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const { name, route } = next;
      const answer = await (options.ask ?? askForAuthorities)({ ...route, timeoutMs: options.timeoutMs });
      if (answer.kind === 'silent') silent.push(`${name}: ${answer.reason}`);
      else if (answer.kind === 'not-asking') silent.push(`${name}: does not say which CAs it has loaded`);
      else if (answer.authorities.some(authority => authority.equals(options.certificate.subject.der)))
        loaded.push(name);
      else if (answer.authorities.some(authority => isOfFamily(authority, options.certificate))) missing.push(name);
      else silent.push(`${name}: names no CA of this signer, neither this one nor one before it`);
    }
  };
  await Promise.all(Array.from({ length: MOST_AT_ONCE }, askNext));
  return {
    loaded: loaded.toSorted(),
    missing: missing.toSorted(),
    silent: [...new Set(silent)].toSorted(),
    clients: [...clients].toSorted(),
  };
}

/**
 * Whether this is the name of another generation: `<namespace>_<name>@<seconds>`. A server that names none at all has another list for
 * what this signer signs, so that its silence about the new one says nothing.
 */
function isOfFamily(authority: Buffer, { subject }: Certificate): boolean {
  const family = subject.commonName.slice(0, subject.commonName.lastIndexOf('@') + 1);
  if (family === '') return false;
  try {
    return parseName(authority, 'the name of a CA').commonName.startsWith(family);
  } catch {
    return false;
  }
}

/** Every object that the CA of a signer is in, by the ways the graph knows. */
function holdersOf({ flows }: TrustGraph, signer: ObjectRef): ObjectRef[] {
  const reached = new Map([[objectText(signer), signer]]);
  for (const object of reached.values()) {
    for (const { from, to } of flows) if (isSameObject(from, object)) reached.set(objectText(to), to);
  }
  return [...reached.values()];
}
