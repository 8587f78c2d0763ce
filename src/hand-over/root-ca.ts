import type { ConfigMap, Node, Pod } from 'kubernetes-types/core/v1.d.ts';
import { BUNDLE_KEY } from '../certrotation/bundle.ts';
import { formatGoDuration } from '../kube/duration.ts';
import { floorToMs, parseRfc3339 } from '../kube/time.ts';
import type { Certificate } from '../pki/certificate.ts';
import { certificatesIn } from '../pki/pem.ts';
import { caDigest } from '../trust/receipts.ts';
import type { Receipt } from './receipt.ts';
import { isWaived } from './waiver.ts';

/** The ConfigMap in every namespace with which its pods verify the API server. */
export const ROOT_CA = 'kube-root-ca.crt';
const ROOT_CA_KEY = 'ca.crt';
const WHAT = `${ROOT_CA} of all namespaces`;
/** More names than this are counted, not listed. */
const MOST_NAMES = 5;
/** Forgetting when a ConfigMap was first seen with a CA costs a wait, nothing else. */
const MOST_REMEMBERED = 20_000;

export interface RootCaSources {
  now(): Date;
  nodes(): readonly Node[];
  /** Every ConfigMap of that name. */
  rootCas(): Promise<readonly ConfigMap[]>;
  /** The pods of all namespaces. */
  pods(): Promise<readonly Pod[]>;
}

/** Who has loaded what pods are brought with the token of their service account (spec 90, section 3, `started` and `reloaded`). */
export class RootCas {
  readonly #sources: RootCaSources;
  /** When a ConfigMap was first seen with a CA, where it does not say itself since when it is as it is. */
  readonly #firstSeen = new Map<string, Date>();

  constructor(sources: RootCaSources) {
    this.#sources = sources;
  }

  /**
   * A CA counts as loaded when every namespace has it, for pods to come, and each pod has begun since then, or has had `withinMs` for
   * reading it again. A ConfigMap without any of the CAs of `published` is made from something else, and so are its pods' files.
   */
  async receipts(published: ConfigMap | undefined, withinMs: number, ca: Certificate): Promise<Receipt[]> {
    const known = certificatesIn(published?.data?.[BUNDLE_KEY]);
    if (!known.some(({ der }) => der.equals(ca.der))) return [everywhere('it is not published yet')];
    let found: readonly ConfigMap[];
    let pods: readonly Pod[] = [];
    const since = new Map<string, Date>();
    try {
      found = await this.#sources.rootCas();
      const lacking: string[] = [];
      for (const configMap of found) {
        const namespace = configMap.metadata?.namespace ?? '';
        const held = certificatesIn(configMap.data?.[ROOT_CA_KEY]);
        if (held.some(({ der }) => der.equals(ca.der))) since.set(namespace, this.#since(configMap, ca));
        else if (held.some(({ der }) => known.some(other => other.der.equals(der)))) lacking.push(namespace);
      }
      if (lacking.length > 0) return [everywhere(`is without it in ${listed(lacking.toSorted())}`)];
      if (since.size > 0) pods = await this.#sources.pods();
    } catch (error) {
      // Nobody is stopped by a question that could not be asked.
      return [everywhere(`cannot be looked at: ${(error as Error).message}`)];
    }
    return this.#podsOnNodes(pods.filter(isBroughtIt), since, withinMs);
  }

  #podsOnNodes(pods: readonly Pod[], since: ReadonlyMap<string, Date>, withinMs: number): Receipt[] {
    const now = this.#sources.now().getTime();
    const byNode = Map.groupBy(pods, ({ spec }) => spec?.nodeName);
    return this.#sources.nodes().flatMap((node): Receipt[] => {
      const name = node.metadata?.name ?? '';
      const counted = (byNode.get(name) ?? []).filter(({ metadata }) => since.has(metadata?.namespace ?? ''));
      if (counted.length === 0) return [];
      const had = ({ metadata }: Pod) => (since.get(metadata?.namespace ?? '') as Date).getTime();
      const older = counted.filter(pod => startOf(pod) <= had(pod));
      const missing = older.filter(pod => now - had(pod) <= withinMs);
      const rest = { verifier: `pods on ${name}`, node: name, isWaived: isWaived(node) };
      const within = `read it again within ${formatGoDuration(withinMs)}`;
      if (missing.length > 0) {
        const names = missing.map(({ metadata }) => `${metadata?.namespace}/${metadata?.name}`).toSorted();
        return [{ ...rest, kind: 'reloaded', isLoaded: false, evidence: `${listed(names)} ${within}` }];
      }
      const evidence = older.length === 0 ? 'began with it' : `have begun with it, or ${within}`;
      return [{ ...rest, kind: older.length === 0 ? 'started' : 'reloaded', isLoaded: true, evidence }];
    });
  }

  /** Since when a ConfigMap is as it is: whoever wrote it last may have changed something else, which only makes the wait longer. */
  #since({ metadata }: ConfigMap, ca: Certificate): Date {
    const times = (metadata?.managedFields ?? []).flatMap(({ time }) => parseRfc3339(time ?? '') ?? []);
    if (times.length > 0) return new Date(Math.max(...times.map(time => floorToMs(time).getTime())));
    const id = `${metadata?.namespace} ${metadata?.uid} ${caDigest(ca)}`;
    if (this.#firstSeen.size >= MOST_REMEMBERED) this.#firstSeen.clear();
    const first = this.#firstSeen.get(id) ?? this.#sources.now();
    this.#firstSeen.set(id, first);
    return first;
  }
}

function everywhere(evidence: string): Receipt {
  return { verifier: WHAT, node: undefined, kind: 'reported', isLoaded: false, evidence, isWaived: false };
}

/** A pod that runs, or is about to, with a volume in which the ConfigMap is. */
function isBroughtIt({ spec, status }: Pod): boolean {
  if (spec?.nodeName === undefined || status?.phase === 'Succeeded' || status?.phase === 'Failed') return false;
  return (spec.volumes ?? []).some(
    ({ configMap, projected }) =>
      configMap?.name === ROOT_CA || (projected?.sources ?? []).some(source => source.configMap?.name === ROOT_CA),
  );
}

/** One that has not begun yet begins with what is there then. */
function startOf({ status }: Pod): number {
  const start = parseRfc3339(status?.startTime ?? '');
  return start === undefined ? Number.POSITIVE_INFINITY : floorToMs(start).getTime();
}

function listed(names: readonly string[]): string {
  const shown = names.slice(0, MOST_NAMES).join(', ');
  return names.length > MOST_NAMES ? `${shown} and ${names.length - MOST_NAMES} more` : shown;
}
