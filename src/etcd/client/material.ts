import { readFile } from 'node:fs/promises';
import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { BUNDLE_KEY } from '../../certrotation/bundle.ts';
import { dataText, TLS_CERT, TLS_KEY } from '../../certrotation/secret.ts';
import { isNotFound, KubeError } from '../../kube/error.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, SECRETS } from '../../kube/resource.ts';
import { loadCertificateAndKey } from '../../pki/authority.ts';
import { FAMILY_TABLE } from '../cert-table.ts';
import { ETCD_NAMESPACE, OPERATOR_NAMESPACE } from '../names.ts';

/** What a client shows etcd, and what it checks etcd with; PEM. */
export interface TlsMaterial {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** Asked before every round, so that a rotated certificate is used from the next connection on. */
export type MaterialSource = (signal?: AbortSignal) => Promise<TlsMaterial>;

/**
 * The client certificate and the bundle as they are in the cluster now; where they are gone or cannot be used, the operator's copies of
 * them: without an answer of etcd nothing is written, what is missing neither.
 */
export function materialFromCluster(kube: Pick<Kube, 'get'>): MaterialSource {
  return async signal => {
    const [pair, ca] = await Promise.all([
      firstGood(PAIRS, async key => pairOf(await kube.get(SECRETS, key, { signal }))),
      firstGood(BUNDLES, async key => bundleOf(await kube.get(CONFIG_MAPS, key, { signal }))),
    ]);
    return { ca, ...pair };
  };
}

const { bundle: BUNDLE, client: CLIENT } = FAMILY_TABLE.server;
const PAIRS = [ETCD_NAMESPACE, OPERATOR_NAMESPACE].map(namespace => ({ namespace, name: CLIENT.secret }));
const BUNDLES = [ETCD_NAMESPACE, OPERATOR_NAMESPACE].map(namespace => ({ namespace, name: BUNDLE }));

/** Reads the first place that has something good; throws what is wrong with it where all are bad. */
async function firstGood<K, T>(places: readonly K[], read: (place: K) => Promise<T>): Promise<T> {
  const problems: unknown[] = [];
  for (const place of places) {
    try {
      return await read(place);
    } catch (error) {
      if (error instanceof KubeError && !isNotFound(error)) throw error;
      problems.push(error);
    }
  }
  throw problems[0];
}

/** The same from files, as they are mounted into the operator's pod (spec 40, Q-7). */
export function materialFromFiles(paths: {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}): MaterialSource {
  return async () => {
    const [ca, cert, key] = await Promise.all([
      readFile(paths.ca, 'utf8'),
      readFile(paths.cert, 'utf8'),
      readFile(paths.key, 'utf8'),
    ]);
    return checked({ ca, cert, key });
  };
}

function pairOf(secret: Secret): Pick<TlsMaterial, 'cert' | 'key'> {
  return checked({ cert: dataText(secret, TLS_CERT) ?? '', key: dataText(secret, TLS_KEY) ?? '' });
}

function bundleOf({ metadata, data }: ConfigMap): string {
  const ca = data?.[BUNDLE_KEY];
  if (!ca)
    throw new Error(`expected ${BUNDLE_KEY} in configmap ${metadata?.namespace}/${metadata?.name}, found nothing`);
  return ca;
}

/** Half of a new pair and half of an old one is neither: better none than one that fails in every handshake. */
function checked<M extends Pick<TlsMaterial, 'cert' | 'key'>>(material: M): M {
  loadCertificateAndKey(material.cert, material.key);
  return material;
}

export function isSameMaterial(a: TlsMaterial | undefined, b: TlsMaterial): boolean {
  return a !== undefined && a.ca === b.ca && a.cert === b.cert && a.key === b.key;
}
