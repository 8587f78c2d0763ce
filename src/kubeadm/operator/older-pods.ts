import type { ConfigMap, Pod, Secret } from 'kubernetes-types/core/v1.d.ts';
import { annotationsOf } from '../../certrotation/secret.ts';
import type { Receipt } from '../../hand-over/receipt.ts';
import { minutes } from '../../kube/duration.ts';
import { floorToMs, parseRfc3339 } from '../../kube/time.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { certificatesIn } from '../../pki/pem.ts';
import { caDigest } from '../../trust/receipts.ts';
import type { PodsPolicy } from '../cluster-record.ts';
import { ROOT_CA, ROTUNDA_NAMESPACE } from '../names.ts';
import { PODS_HOLD, READS_CA_AGAIN } from './names.ts';

/** A pod that began before its namespace had a CA, and whose client is not known to read it again (KA-9). */
export interface OlderPod {
  readonly namespace: string;
  readonly name: string;
  readonly node: string;
  /** Who would make another one of it: `kind` and `name`; undefined: nobody. */
  readonly owner: { readonly kind: string; readonly name: string } | undefined;
}

export interface PodTrust {
  /** Namespaces whose pods would not begin with the CA. */
  readonly lacking: readonly string[];
  readonly older: readonly OlderPod[];
  /** When the last namespace got it; undefined: none has. */
  readonly since: Date | undefined;
}

const ROOT_CA_KEY = 'ca.crt';
const ALL_PODS = `${ROOT_CA.name} of all namespaces`;
const PODS_ON = 'pods on ';
/** A kubelet brings a changed ConfigMap to its pods within about this time. */
const BROUGHT_MS = minutes(2);
/** More names than this are counted, not listed. */
const MOST_NAMES = 5;
/** client-go reads a CA again by itself from this minor version on (spec 80, 2). */
const FIRST_READING_AGAIN = 36;

/** Which pods hold older trust. A ConfigMap with none of the known CAs is made from something else. */
export function podTrust(
  pods: readonly Pod[],
  rootCas: readonly ConfigMap[],
  ca: Certificate,
  known: readonly Certificate[],
  firstSeen: FirstSeen,
): PodTrust {
  const since = new Map<string, Date>();
  const lacking: string[] = [];
  for (const configMap of rootCas) {
    const namespace = configMap.metadata?.namespace ?? '';
    const held = certificatesIn(configMap.data?.[ROOT_CA_KEY]);
    if (held.some(({ der }) => der.equals(ca.der))) since.set(namespace, sinceOf(configMap, ca, firstSeen));
    else if (held.some(({ der }) => known.some(other => other.der.equals(der)))) lacking.push(namespace);
  }
  const older = pods.flatMap((pod): OlderPod[] => {
    const had = since.get(pod.metadata?.namespace ?? '');
    if (had === undefined || !isBroughtIt(pod) || isReadingAgain(pod) || beganAfter(pod, had)) return [];
    const owner = pod.metadata?.ownerReferences?.find(({ controller }) => controller);
    return [
      {
        namespace: pod.metadata?.namespace ?? '',
        name: pod.metadata?.name ?? '',
        node: pod.spec?.nodeName ?? '',
        owner: owner && { kind: owner.kind, name: owner.name },
      },
    ];
  });
  const last = Math.max(...[...since.values()].map(date => date.getTime()));
  return { lacking: lacking.toSorted(), older, since: since.size === 0 ? undefined : new Date(last) };
}

/** Whether it was noted on the Secret of the CA in use, when that one began to sign, that every pod holds this one. */
export function podsHold(signer: Secret | undefined, ca: Certificate): boolean {
  const noted = signer && annotationsOf(signer)[PODS_HOLD];
  return noted !== undefined && noted.split(',').includes(caDigest(ca));
}

/** What is said of pods that have all been seen to hold it: the ConfigMaps are written anew when the order of CAs in files changes. */
export const ALL_PODS_HOLD: readonly Receipt[] = [everywhere(true, 'have it, since before it signed')];

/** The same as receipts, one a node that has such pods: nobody waits for them where that was agreed on. */
export function podReceipts(
  { lacking, older, since }: PodTrust,
  policy: PodsPolicy,
  isWaived: (node: string) => boolean,
  now: Date,
): Receipt[] {
  if (lacking.length > 0) return [everywhere(false, `is without it in ${listed(lacking)}`)];
  if (since !== undefined && now.getTime() - since.getTime() < BROUGHT_MS && older.length > 0)
    return [everywhere(false, 'kubelets bring it to pods within about two minutes')];
  if (policy === 'ignore') return [everywhere(true, 'have it; pods that began before were not to be waited for')];
  const byNode = Map.groupBy(older, ({ node }) => node);
  return [
    everywhere(true, 'have it'),
    ...[...byNode].map(
      ([node, pods]): Receipt => ({
        verifier: `${PODS_ON}${node}`,
        node,
        kind: 'started',
        isLoaded: false,
        evidence: `${listed(pods.map(({ namespace, name }) => `${namespace}/${name}`).toSorted())} began before it`,
        isWaived: isWaived(node),
      }),
    ),
  ];
}

function everywhere(isLoaded: boolean, evidence: string): Receipt {
  return { verifier: ALL_PODS, node: undefined, kind: 'reported', isLoaded, evidence, isWaived: false };
}

/** Whether a receipt is about what pods hold. */
export function isOfPods({ verifier }: Receipt): boolean {
  return verifier.startsWith(PODS_ON) || verifier === ALL_PODS;
}

/** When a ConfigMap was first seen with a CA, for one that does not say itself since when it is as it is. */
export class FirstSeen {
  readonly #seen = new Map<string, Date>();
  readonly #now: () => Date;

  constructor(now: () => Date) {
    this.#now = now;
  }

  of(id: string): Date {
    // Forgetting costs a wait, nothing else.
    if (this.#seen.size >= MOST_REMEMBERED) this.#seen.clear();
    const first = this.#seen.get(id) ?? this.#now();
    this.#seen.set(id, first);
    return first;
  }
}

const MOST_REMEMBERED = 20_000;

/** Whoever wrote it last may have changed something else, which only makes the wait longer. */
function sinceOf({ metadata }: ConfigMap, ca: Certificate, firstSeen: FirstSeen): Date {
  const times = (metadata?.managedFields ?? []).flatMap(({ time }) => parseRfc3339(time ?? '') ?? []);
  if (times.length > 0) return new Date(Math.max(...times.map(time => floorToMs(time).getTime())));
  return firstSeen.of(`${metadata?.namespace} ${metadata?.uid} ${caDigest(ca)}`);
}

/** A pod that runs, or is about to, with a volume in which the ConfigMap is. */
function isBroughtIt({ spec, status }: Pod): boolean {
  if (spec?.nodeName === undefined || status?.phase === 'Succeeded' || status?.phase === 'Failed') return false;
  return (spec.volumes ?? []).some(
    ({ configMap, projected }) =>
      configMap?.name === ROOT_CA.name ||
      (projected?.sources ?? []).some(source => source.configMap?.name === ROOT_CA.name),
  );
}

/** Ours do; those of others when somebody says so, or their image is one whose client is known to. */
function isReadingAgain({ metadata, spec }: Pod): boolean {
  if (metadata?.namespace === ROTUNDA_NAMESPACE || metadata?.annotations?.[READS_CA_AGAIN] === 'true') return true;
  const containers = spec?.containers ?? [];
  return (
    containers.length > 0 &&
    containers.every(({ image = '' }) => {
      const [, minor] = /\/kube-(?:proxy|scheduler|controller-manager|apiserver):v1\.(\d{1,4})\./.exec(image) ?? [];
      return minor !== undefined && Number(minor) >= FIRST_READING_AGAIN;
    })
  );
}

/** Every container of it; one that has not begun yet begins with what is there then. */
export function beganAfter({ status }: Pod, had: Date): boolean {
  const running = (status?.containerStatuses ?? []).flatMap(({ state }) => state?.running?.startedAt ?? []);
  const starts = (running.length > 0 ? running : [status?.startTime]).flatMap(text => parseRfc3339(text ?? '') ?? []);
  return starts.every(start => floorToMs(start) > had);
}

function listed(names: readonly string[]): string {
  const shown = names.slice(0, MOST_NAMES).join(', ');
  return names.length > MOST_NAMES ? `${shown} and ${names.length - MOST_NAMES} more` : shown;
}
