import type { ConfigMap, Node, Pod } from 'kubernetes-types/core/v1.d.ts';
import { BUNDLE_KEY } from '../certrotation/bundle.ts';
import { seconds } from '../kube/duration.ts';
import type { CertificateAndKey } from '../pki/authority.ts';
import type { Certificate } from '../pki/certificate.ts';
import { systemKeys } from '../pki/keys.ts';
import { certificatesIn } from '../pki/pem.ts';
import type { Edge } from '../trust/graph.ts';
import type { ObjectRef } from '../trust/object.ts';
import { caDigest, decodeReceipts, NODE_RECEIPTS, type NodeReceipt } from '../trust/receipts.ts';
import type { ServerPlace } from '../trust/served.ts';
import { type Answer, askForAuthorities, type Question } from './ask.ts';
import { type LookSources, lookAtPresenters } from './look.ts';
import type { Receipt, ReceiptKind, Receipts, ShownOf } from './receipt.ts';
import { type RootCaSources, RootCas } from './root-ca.ts';
import { askByShowing, type ShownAnswer } from './show.ts';
import { type Verifier, verifiersOf } from './verifiers.ts';
import { isWaived } from './waiver.ts';

/** Where evidence is found. */
export interface EvidenceSources extends LookSources, RootCaSources {
  /** The revisions that run, or are about to, on each node. */
  revisions(): readonly { readonly nodeName: string; readonly revision: number }[];
  /** The copy of a bundle in a revision. */
  copyOf(bundle: ObjectRef, revision: number): Promise<ConfigMap | undefined>;
  /** A bundle as it is published. */
  bundle(bundle: ObjectRef): ConfigMap | undefined;
  /** The pods that run such a process. */
  podsOf(process: string): Promise<readonly Pod[]>;
  ask?(question: Question): Promise<Answer>;
  /** The pair of a CA whose name others have, or may have had; `no key`: it is not here; undefined: its name tells it from all others. */
  namesake?(ca: Certificate): CertificateAndKey | 'no key' | undefined;
  show?(question: Question, signer: CertificateAndKey): Promise<ShownAnswer>;
}

/** Longest wait for the answer of one server. */
const ASK_TIMEOUT_MS = seconds(3);
/** Units that share a signer ask at the same time: an answer that is younger than this serves them all. */
const SHARED_MS = 500;

/** Finds out who has loaded a CA, and who shows what, by the means that the trust graph names. */
export class Evidence implements Receipts {
  readonly #sources: EvidenceSources;
  readonly #rootCas: RootCas;
  readonly #asked = new Map<string, { readonly atMs: number; readonly receipts: Promise<readonly Receipt[]> }>();

  constructor(sources: EvidenceSources) {
    this.#sources = sources;
    this.#rootCas = new RootCas(sources);
  }

  of(signer: ObjectRef, ca: Certificate): Promise<readonly Receipt[]> {
    return this.#shared(`loaded ${signer.namespace}/${signer.name} ${caDigest(ca)}`, () => this.#askAll(signer, ca));
  }

  shown(signer: ObjectRef, family: ShownOf): Promise<readonly Receipt[]> {
    const cas = [family.current, ...family.retiring].map(caDigest).join();
    const look = () => lookAtPresenters(this.#sources, signer, family);
    return this.#shared(`shown ${signer.namespace}/${signer.name} ${cas}`, look);
  }

  #shared(id: string, ask: () => Promise<readonly Receipt[]>): Promise<readonly Receipt[]> {
    const nowMs = this.#sources.now().getTime();
    const shared = this.#asked.get(id);
    if (shared !== undefined && isFresh(shared.atMs, nowMs)) return shared.receipts;
    const receipts = ask();
    for (const [other, { atMs }] of this.#asked) if (!isFresh(atMs, nowMs)) this.#asked.delete(other);
    this.#asked.set(id, { atMs: nowMs, receipts });
    return receipts;
  }

  async #askAll(signer: ObjectRef, ca: Certificate): Promise<Receipt[]> {
    const { graph, leavesOf } = this.#sources;
    const verifiers = verifiersOf(graph(), leavesOf(signer));
    const found = await Promise.all(verifiers.map(verifier => this.#receiptsOf(verifier, ca)));
    return found.flat().toSorted((a, b) => (a.verifier < b.verifier ? -1 : 1));
  }

  async #receiptsOf(verifier: Verifier, ca: Certificate): Promise<Receipt[]> {
    const { process, nodes: set, means } = verifier;
    const nodes = this.#sources.nodes();
    const counted = set === 'anywhere' ? [] : nodes.filter(node => this.#sources.isIn(node, set));
    const receipt = (node: Node, kind: ReceiptKind, { isLoaded, evidence }: Finding): Receipt => {
      const name = node.metadata?.name ?? '';
      return { verifier: `${process} on ${name}`, node: name, kind, isLoaded, evidence, isWaived: isWaived(node) };
    };
    switch (means.kind) {
      case 'ask':
        return Promise.all(counted.map(async node => receipt(node, 'asked', await this.#asks(means.edge, node, ca))));
      case 'agent':
        return counted.map(node => receipt(node, 'reported', reportedBy(node, process, means.files, ca)));
      case 'revision': {
        const revisions = this.#sources.revisions();
        const found = counted.map(async node => {
          const running = revisions.filter(({ nodeName }) => nodeName === node.metadata?.name);
          // A node that exists is counted; also one that the status does not name, or not yet.
          if (running.length === 0) return [receipt(node, 'started', missing('is not known to run any revision'))];
          return Promise.all(
            running.map(async ({ revision }) =>
              receipt(node, 'started', inRevision(await this.#sources.copyOf(means.bundle, revision), revision, ca)),
            ),
          );
        });
        return (await Promise.all(found)).flat();
      }
      case 'pod': {
        const pods = await this.#sources.podsOf(process);
        return pods.flatMap(pod => {
          const node = nodes.find(({ metadata }) => metadata?.name === pod.spec?.nodeName);
          const said = decodeReceipts(pod.metadata?.annotations?.[NODE_RECEIPTS]);
          // A pod that says nothing is somebody else's: its owner looks after what it trusts.
          if (node === undefined || said === undefined) return [];
          return [receipt(node, 'started', amongst(said, ca, `was started with other CAs`))];
        });
      }
      case 'root-ca':
        return this.#rootCas.receipts(this.#sources.bundle(means.bundle), means.withinMs, ca);
      case 'nobody':
        return [];
    }
  }

  async #asks(edge: Edge, node: Node, ca: Certificate): Promise<Finding> {
    const place = this.#sources.whereIs(edge, node);
    if (place === undefined) return missing('its node has no address');
    const namesake = this.#sources.namesake?.(ca);
    if (namesake === 'no key')
      return missing('has CAs of that name loaded, or none; only its operator can tell them apart');
    if (namesake !== undefined) return this.#shows(place, namesake);
    const ask = this.#sources.ask ?? askForAuthorities;
    const answer = await ask({ ...place, timeoutMs: ASK_TIMEOUT_MS });
    if (answer.kind === 'silent') return missing(`does not answer at ${place.host}:${place.port}: ${answer.reason}`);
    if (answer.kind === 'not-asking') return missing('does not say which CAs it has loaded');
    const isLoaded = answer.authorities.some(authority => authority.equals(ca.subject.der));
    return isLoaded ? { isLoaded, evidence: 'named it in a handshake' } : missing('has not loaded it');
  }

  async #shows(place: ServerPlace, signer: CertificateAndKey): Promise<Finding> {
    const show =
      this.#sources.show ??
      ((question, of) => askByShowing(question, of, { keys: systemKeys, now: this.#sources.now() }));
    const answer = await show({ ...place, timeoutMs: ASK_TIMEOUT_MS }, signer);
    if (answer.kind === 'accepted') return { isLoaded: true, evidence: 'accepted a certificate of it' };
    if (answer.kind === 'refused') return missing('has not loaded it: refuses a certificate of it');
    return missing(`does not answer at ${place.host}:${place.port}: ${answer.reason}`);
  }
}

/** A clock that was set back makes nothing young again. */
function isFresh(atMs: number, nowMs: number): boolean {
  return Math.abs(nowMs - atMs) < SHARED_MS;
}

interface Finding {
  readonly isLoaded: boolean;
  readonly evidence: string;
}

function missing(evidence: string): Finding {
  return { isLoaded: false, evidence };
}

function reportedBy(node: Node, process: string, files: readonly string[] | undefined, ca: Certificate): Finding {
  const said = decodeReceipts(node.metadata?.annotations?.[NODE_RECEIPTS]);
  if (said === undefined) return missing('the agent of its node reports nothing');
  const about = said.filter(({ process: name, file }) =>
    files === undefined ? name === process : files.includes(file),
  );
  if (about.length === 0 || (files !== undefined && about.length < files.length))
    return missing('the agent of its node has seen no file that it reads');
  return amongst(about, ca, 'has not loaded it, says the agent of its node');
}

function amongst(said: readonly NodeReceipt[], ca: Certificate, otherwise: string): Finding {
  const digest = caDigest(ca);
  const isLoaded = said.length > 0 && said.every(({ cas }) => cas.includes(digest));
  return isLoaded ? { isLoaded, evidence: `has it: ${said.map(({ file }) => file).join(', ')}` } : missing(otherwise);
}

function inRevision(copy: ConfigMap | undefined, revision: number, ca: Certificate): Finding {
  const isLoaded = holds(copy, ca);
  return isLoaded
    ? { isLoaded, evidence: `began with revision ${revision}` }
    : missing(`runs revision ${revision}, which does not have it`);
}

function holds(bundle: ConfigMap | undefined, ca: Certificate): boolean {
  return certificatesIn(bundle?.data?.[BUNDLE_KEY]).some(({ der }) => der.equals(ca.der));
}
