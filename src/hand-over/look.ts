import { isIP } from 'node:net';
import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { seconds } from '../kube/duration.ts';
import type { Certificate } from '../pki/certificate.ts';
import type { Edge, NodeSet, TrustGraph } from '../trust/graph.ts';
import type { ObjectRef } from '../trust/object.ts';
import { decodeReceipts, issuerKey, NODE_RECEIPTS, signingKey } from '../trust/receipts.ts';
import { chainServed, type ServerPlace } from '../trust/served.ts';
import { type Presenter, presentersOf } from './presenters.ts';
import type { Receipt, ShownOf } from './receipt.ts';
import { isWaived } from './waiver.ts';

/** Where one sees what is shown. */
export interface LookSources {
  graph(): TrustGraph;
  /** What a signer signs. */
  leavesOf(signer: ObjectRef): readonly ObjectRef[];
  nodes(): readonly Node[];
  isIn(node: Node, set: NodeSet): boolean;
  /** Where the server of an edge listens on a node; undefined: the node has no address. */
  whereIs(edge: Edge, node: Node): ServerPlace | undefined;
  /** The certificate that a Secret holds. */
  certificateIn(secret: ObjectRef): Certificate | undefined;
  /** What a server shows; nothing: it does not answer. */
  look?(place: ServerPlace): Promise<readonly Certificate[]>;
}

export interface Sighting extends Receipt {
  /** What it shows was seen. */
  readonly isSeen: boolean;
}

/** Longest wait for the answer of one server. */
const LOOK_TIMEOUT_MS = seconds(3);

/**
 * Who of those who show what a signer signs shows nothing of an older one any more (spec 90, HO-3): servers in a handshake, clients by
 * what the agent of their node reports. Who cannot be seen has not been seen to have changed.
 */
export async function lookAtPresenters(sources: LookSources, signer: ObjectRef, family: ShownOf): Promise<Sighting[]> {
  const presenters = presentersOf(sources.graph(), sources.leavesOf(signer));
  const found = await Promise.all(presenters.map(presenter => sightsOf(sources, presenter, family)));
  return found.flat().toSorted((a, b) => (a.verifier < b.verifier ? -1 : 1));
}

async function sightsOf(sources: LookSources, presenter: Presenter, family: ShownOf): Promise<Sighting[]> {
  const { process, nodes: set, object, means } = presenter;
  if (set === 'anywhere' || means.kind === 'nobody') return [];
  const counted = sources.nodes().filter(node => sources.isIn(node, set));
  return Promise.all(
    counted.map(async (node): Promise<Sighting> => {
      const name = node.metadata?.name ?? '';
      const sight =
        means.kind === 'look'
          ? await servedBy(sources, means.edge, object, node, family)
          : reportedBy(node, means.files, family);
      const kind = means.kind === 'look' ? 'asked' : 'reported';
      const verifier = `${process} on ${name} (${object.name})`;
      return { verifier, node: name, kind, ...sight, isWaived: isWaived(node) };
    }),
  );
}

type Seen = Pick<Sighting, 'isLoaded' | 'isSeen' | 'evidence'>;

async function servedBy(
  { whereIs, certificateIn, look }: LookSources,
  edge: Edge,
  object: ObjectRef,
  node: Node,
  family: ShownOf,
): Promise<Seen> {
  const place = whereIs(edge, node);
  if (place === undefined) return unseen('its node has no address');
  const serverName = nameIn(certificateIn(object));
  if (serverName === undefined) return unseen('nobody knows for which name it shows it');
  const [leaf] = await (look ?? looked)({ ...place, serverName });
  if (leaf === undefined) return unseen(`does not answer at ${place.host}:${place.port}`);
  return seen([issuerKey(leaf)], family);
}

function looked(place: ServerPlace): Promise<readonly Certificate[]> {
  return chainServed(place, LOOK_TIMEOUT_MS);
}

/** A name by which a server chooses the certificate; an address is sent by nobody. */
function nameIn(leaf: Certificate | undefined): string | undefined {
  return leaf?.dnsNames.find(name => !name.startsWith('*') && isIP(name) === 0);
}

function reportedBy(node: Node, files: readonly string[], family: ShownOf): Seen {
  const said = decodeReceipts(node.metadata?.annotations?.[NODE_RECEIPTS]);
  if (said === undefined) return unseen('the agent of its node reports nothing');
  const about = said.filter(({ file, shows }) => files.includes(file) && shows !== undefined);
  if (about.length < files.length) return unseen('the agent of its node has seen no certificate of it');
  return seen(
    about.map(({ shows }) => shows),
    family,
  );
}

/** A certificate of somebody else, such as one that a user has put before ours, needs no CA of the family. */
function seen(issuers: readonly (string | undefined)[], { current, retiring }: ShownOf): Seen {
  if (issuers.includes(undefined)) return unseen('shows a certificate that does not say whose it is');
  const older = retiring.find(ca => issuers.includes(signingKey(ca)));
  if (older !== undefined)
    return { isLoaded: false, isSeen: true, evidence: `shows a certificate of ${older.subject.commonName}` };
  const isCurrent = issuers.every(issuer => issuer === signingKey(current));
  const whose = isCurrent ? 'the signer in use' : 'somebody else';
  return { isLoaded: true, isSeen: true, evidence: `shows a certificate of ${whose}` };
}

function unseen(evidence: string): Seen {
  return { isLoaded: false, isSeen: false, evidence };
}
