import type { ConfigMap, Node } from 'kubernetes-types/core/v1.d.ts';
import { BUNDLE_KEY } from '../certrotation/bundle.ts';
import type { Receipt } from '../hand-over/receipt.ts';
import { isWaived } from '../hand-over/waiver.ts';
import { getIfPresent } from '../kube/get.ts';
import type { Kube } from '../kube/port.ts';
import { CONFIG_MAPS } from '../kube/resource.ts';
import type { Certificate } from '../pki/certificate.ts';
import { certificatesIn } from '../pki/pem.ts';
import { runningRevisions } from '../staticpod/node-status.ts';
import { copyName } from '../staticpod/revision/number.ts';
import { isSameData } from './aggregate.ts';
import { ALL_BUNDLES, ETCD_NAMESPACE, KUBE_APISERVER_NAMESPACE } from './names.ts';
import { type Family, type Profile, profile416, profileLater, type TrustFile, trustFilesOf } from './profile.ts';
import type { RolloutStatus } from './quorum/rollout.ts';

/** Somebody who checks certificates, with the CAs it runs with; undefined: nobody can tell. */
export interface Verifier {
  readonly name: string;
  readonly node: string;
  readonly bundle: readonly Certificate[] | undefined;
}

/** Answers, for one pass, who would refuse what a signer signs. Everybody is asked once. */
export class TrustSurvey {
  readonly #options: VerifierOptions;
  readonly #verifiers = new Map<Family, Promise<Verifier[]>>();

  constructor(options: VerifierOptions) {
    this.#options = options;
  }

  async receiptsFor(family: Family, signer: Certificate): Promise<Receipt[]> {
    let verifiers = this.#verifiers.get(family);
    if (verifiers === undefined) {
      verifiers = readVerifiers(family, this.#options);
      this.#verifiers.set(family, verifiers);
    }
    return receiptsFor(await verifiers, signer, this.#options.waived);
  }
}

/** The names of nodes that nobody waits for (spec 90, HO-7). */
export function waivedNodes(nodes: readonly Node[]): ReadonlySet<string> {
  return new Set(nodes.filter(isWaived).map(({ metadata }) => metadata?.name ?? ''));
}

/** Who began with a bundle that holds this signer; whose bundle nobody can read has given no receipt. */
export function receiptsFor(
  verifiers: readonly Verifier[],
  signer: Certificate,
  waived: ReadonlySet<string>,
): Receipt[] {
  return verifiers.map(({ name, node, bundle }) => {
    const isLoaded = bundle?.some(({ der }) => der.equals(signer.der)) ?? false;
    const evidence = isLoaded
      ? 'began with it'
      : bundle === undefined
        ? 'its bundle cannot be read'
        : 'runs without it';
    return { verifier: name, node, kind: 'started', isLoaded, evidence, isWaived: waived.has(node) };
  });
}

export interface VerifierOptions {
  /** Nodes that nobody waits for. */
  readonly waived: ReadonlySet<string>;
  readonly kube: Pick<Kube, 'get'>;
  readonly profile: Profile;
  readonly etcd: RolloutStatus;
  /** Undefined: the cluster has no such operator, and nobody knows of other readers of the etcd CA. */
  readonly kubeApiServer: RolloutStatus | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Who verifies the certificates of a family, judged by the revisions that run or are on their way: a revision keeps copies of the
 * bundles it was made from, and its processes have loaded those or newer ones (spec 40, P-6 and 12.3).
 */
export async function readVerifiers(family: Family, options: Omit<VerifierOptions, 'waived'>): Promise<Verifier[]> {
  const { kube, profile, etcd, kubeApiServer, signal } = options;
  const copies = new Copies(kube, signal);
  // A cluster may have come from the other layout, and still run revisions of it.
  const other = profile.release === 'later' ? profile416() : profileLater();
  const layouts = [trustFilesOf(profile, family), trustFilesOf(other, family)];
  const members = runningRevisions(etcd.nodeStatuses).map(async ({ nodeName, revision }) => ({
    name: `etcd on node ${nodeName} at revision ${revision}`,
    node: nodeName,
    bundle: await bundleAt(copies, revision, layouts),
  }));
  const servers =
    family === 'server' && kubeApiServer !== undefined ? runningRevisions(kubeApiServer.nodeStatuses) : [];
  const clients = servers.map(async ({ nodeName, revision }) => {
    const copy = await copies.read(KUBE_APISERVER_NAMESPACE, 'etcd-serving-ca', revision);
    return {
      name: `kube-apiserver on node ${nodeName} at revision ${revision}`,
      node: nodeName,
      bundle: unlessEmpty(certificatesIn(copy?.data?.[BUNDLE_KEY])),
    };
  });
  return Promise.all([...members, ...clients]);
}

/** Which nodes run a revision with the bundles that are published. */
export async function receiptsForBundles(
  published: ConfigMap,
  { kube, etcd, signal, waived }: Pick<VerifierOptions, 'kube' | 'etcd' | 'signal' | 'waived'>,
): Promise<Receipt[]> {
  const copies = new Copies(kube, signal);
  return Promise.all(
    runningRevisions(etcd.nodeStatuses).map(async ({ nodeName, revision }): Promise<Receipt> => {
      const copy = await copies.read(ETCD_NAMESPACE, ALL_BUNDLES, revision);
      const isLoaded = copy !== undefined && isSameData(copy.data, published.data);
      return {
        verifier: `${nodeName} at revision ${revision}`,
        node: nodeName,
        kind: 'started',
        isLoaded,
        evidence: isLoaded ? 'began with the newest bundles' : 'runs without the newest bundles',
        isWaived: waived.has(nodeName),
      };
    }),
  );
}

/** What all files of the first layout that this revision has agree on. */
async function bundleAt(
  copies: Copies,
  revision: number,
  layouts: readonly (readonly TrustFile[])[],
): Promise<readonly Certificate[] | undefined> {
  for (const files of layouts) {
    const found = await Promise.all(files.map(({ configMap }) => copies.read(ETCD_NAMESPACE, configMap, revision)));
    if (found.some(copy => copy === undefined)) continue;
    const [first, ...others] = files.map(({ key }, index) => certificatesIn(found[index]?.data?.[key]));
    return first?.filter(({ der }) => others.every(bundle => bundle.some(other => other.der.equals(der))));
  }
  return undefined;
}

/** Nobody runs with an empty bundle: it could not be read. */
function unlessEmpty(bundle: readonly Certificate[]): readonly Certificate[] | undefined {
  return bundle.length === 0 ? undefined : bundle;
}

/** Reads each copy once. */
class Copies {
  readonly #kube: Pick<Kube, 'get'>;
  readonly #signal: AbortSignal | undefined;
  readonly #read = new Map<string, Promise<ConfigMap | undefined>>();

  constructor(kube: Pick<Kube, 'get'>, signal: AbortSignal | undefined) {
    this.#kube = kube;
    this.#signal = signal;
  }

  read(namespace: string, name: string, revision: number): Promise<ConfigMap | undefined> {
    const key = { namespace, name: copyName(name, revision) };
    const id = `${key.namespace}/${key.name}`;
    let reading = this.#read.get(id);
    if (reading === undefined) {
      reading = getIfPresent(this.#kube, CONFIG_MAPS, key, { signal: this.#signal });
      this.#read.set(id, reading);
    }
    return reading;
  }
}
