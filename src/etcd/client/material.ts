import { readFile } from 'node:fs/promises';
import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { BUNDLE_KEY } from '../../certrotation/bundle.ts';
import { dataText, TLS_CERT, TLS_KEY } from '../../certrotation/secret.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, SECRETS } from '../../kube/resource.ts';
import { loadCertificateAndKey } from '../../pki/authority.ts';
import { FAMILY_TABLE } from '../cert-table.ts';
import { ETCD_NAMESPACE } from '../names.ts';

/** What a client shows etcd, and what it checks etcd with; PEM. */
export interface TlsMaterial {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** Asked before every round, so that a rotated certificate is used from the next connection on. */
export type MaterialSource = (signal?: AbortSignal) => Promise<TlsMaterial>;

/** The client certificate and the bundle as they are in the cluster now. */
export function materialFromCluster(kube: Pick<Kube, 'get'>): MaterialSource {
  const { bundle, client } = FAMILY_TABLE.server;
  return async signal => {
    const [secret, configMap] = await Promise.all([
      kube.get(SECRETS, { namespace: ETCD_NAMESPACE, name: client.secret }, { signal }),
      kube.get(CONFIG_MAPS, { namespace: ETCD_NAMESPACE, name: bundle }, { signal }),
    ]);
    const ca = configMap.data?.[BUNDLE_KEY];
    if (!ca) throw new Error(`expected ${BUNDLE_KEY} in configmap ${ETCD_NAMESPACE}/${bundle}, found nothing`);
    return checked({ ca, ...pairOf(secret) });
  };
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

function pairOf(secret: Secret): { cert: string; key: string } {
  return { cert: dataText(secret, TLS_CERT) ?? '', key: dataText(secret, TLS_KEY) ?? '' };
}

/** Half of a new pair and half of an old one is neither: better none than one that fails in every handshake. */
function checked(material: TlsMaterial): TlsMaterial {
  loadCertificateAndKey(material.cert, material.key);
  return material;
}

export function isSameMaterial(a: TlsMaterial | undefined, b: TlsMaterial): boolean {
  return a !== undefined && a.ca === b.ca && a.cert === b.cert && a.key === b.key;
}
