import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { TLS_CERT, TLS_KEY } from '../certrotation/secret.ts';
import type { Certificate } from '../pki/certificate.ts';
import { certificatesIn, encodeCertificates } from '../pki/pem.ts';
import { FAMILY_TABLE } from './cert-table.ts';
import {
  AGGREGATE_OWNER,
  ALL_BUNDLES,
  ALL_CERTS,
  ETCD_NAMESPACE,
  OWNING_COMPONENT,
  ROLLOUT_REVISION,
} from './names.ts';
import { FAMILIES, type Family } from './profile.ts';

/**
 * What a leaf contributes to the aggregate: certificate and key under `<secret>.crt` and `<secret>.key` (spec 40, C-9). Other
 * keys somebody put into the Secret stay behind (T-8).
 */
export function aggregateEntries({ metadata, data = {} }: Secret): Record<string, string> {
  const name = metadata?.name ?? '';
  const [certificate, key] = [data[TLS_CERT], data[TLS_KEY]];
  if (!certificate || !key)
    throw new Error(
      `expected ${TLS_CERT} and ${TLS_KEY} in secret ${name}, found ${Object.keys(data).join(', ') || 'nothing'}`,
    );
  return { [`${name}.crt`]: certificate, [`${name}.key`]: key };
}

/** The leaves of all nodes in one Secret. */
export function allCerts(data: Readonly<Record<string, string>>): Secret {
  return {
    metadata: { namespace: ETCD_NAMESPACE, name: ALL_CERTS, annotations: { [OWNING_COMPONENT]: AGGREGATE_OWNER } },
    type: 'Opaque',
    data: { ...data },
  };
}

/** Whether what is not data of the aggregate is as it should be. */
export function hasAggregateMetadata({ metadata, type }: Secret): boolean {
  return metadata?.annotations?.[OWNING_COMPONENT] === AGGREGATE_OWNER && (type ?? 'Opaque') === 'Opaque';
}

/** Whether the aggregate holds the pair of a leaf Secret. */
export function holdsLeaf(aggregate: Secret | undefined, leafSecret: string): boolean {
  const { data = {} } = aggregate ?? {};
  return Boolean(data[`${leafSecret}.crt`]) && Boolean(data[`${leafSecret}.key`]);
}

/** Both bundles in one ConfigMap. Never an empty one: nobody would be trusted any more (spec 40, 12.3). */
export function allBundles(bundles: Readonly<Record<Family, readonly Certificate[]>>, revision: number): ConfigMap {
  const data: Record<string, string> = {};
  for (const family of FAMILIES) {
    if (bundles[family].length === 0)
      throw new Error(`refusing to publish ${ALL_BUNDLES}: the ${family} bundle is empty`);
    data[FAMILY_TABLE[family].bundleKey] = encodeCertificates(bundles[family]);
  }
  const annotations = { [OWNING_COMPONENT]: AGGREGATE_OWNER, [ROLLOUT_REVISION]: String(revision) };
  return { metadata: { namespace: ETCD_NAMESPACE, name: ALL_BUNDLES, annotations }, data };
}

/** Which revision was current when the bundles last changed; 0: it is not known (spec 40, N-5). */
export function rolloutRevisionOf(bundles: ConfigMap | undefined): number {
  const text = bundles?.metadata?.annotations?.[ROLLOUT_REVISION];
  if (text === undefined) return 0;
  const revision = /^[+-]?\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isNaN(revision) || Math.abs(revision) > 2 ** 31 - 1) {
    throw new Error(`could not parse annotation for cert rotation revision [${text}]: expected a number`);
  }
  return revision;
}

/** Whether the data of two aggregates is the same. */
export function isSameData(
  a: Readonly<Record<string, string>> | undefined,
  b: Readonly<Record<string, string>> | undefined,
): boolean {
  const [left, right] = [a ?? {}, b ?? {}];
  const keys = Object.keys(left);
  return keys.length === Object.keys(right).length && keys.every(key => left[key] === right[key]);
}

/** The chains the aggregate holds for these leaf Secrets: leaf first. Unreadable ones are left out. */
export function chainsIn(aggregate: Secret | undefined, leafSecrets: readonly string[]): Certificate[][] {
  return leafSecrets.flatMap(name => {
    const encoded = aggregate?.data?.[`${name}.crt`];
    if (!encoded) return [];
    const chain = certificatesIn(Buffer.from(encoded, 'base64').toString('latin1'));
    return chain.length === 0 ? [] : [chain];
  });
}
