import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { dataText, TLS_CERT, TLS_KEY } from '../certrotation/secret.ts';
import type { PublicSecret } from '../inventory/public-secret.ts';
import { certificatesIn } from '../inventory/relations.ts';
import { seconds } from '../kube/duration.ts';
import type { CertificateAndKey } from '../pki/authority.ts';
import { canonicalBundle } from '../pki/bundle.ts';
import type { Certificate } from '../pki/certificate.ts';
import { issueClient, issuePeer, issueServing, issueSigner } from '../pki/issue.ts';
import { type Keys, systemKeys } from '../pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../pki/pem.ts';
import { isSignedBy } from '../pki/signature.ts';

/**
 * The objects of a cluster once more, with certificates of the same names, dates and signers whose keys are ours and cheap. The real
 * rotation code can then run over them: the cluster's own keys are never needed, and need not be there.
 */
export interface Twins {
  readonly secrets: readonly Secret[];
  readonly configMaps: readonly ConfigMap[];
  /** The twin of a CA that was found in them. */
  pairOf(original: Certificate): CertificateAndKey | undefined;
}

const CHEAP = 'P-256';

/** Makes twins of these Secrets, and of every CA in these ConfigMaps. */
export async function twinsOf(
  secrets: readonly PublicSecret[],
  configMaps: readonly ConfigMap[],
  keys: Keys = systemKeys,
): Promise<Twins> {
  const authorities = await authoritiesOf(secrets, configMaps, keys);
  const replaced = new Map<string, Secret>();
  // Copies of one certificate stay copies.
  const leaves = new Map<string, Promise<CertificateAndKey>>();
  const leafOf = (original: Certificate) => {
    const known = leaves.get(idOf(original)) ?? leafTwin(original, authorities, keys);
    leaves.set(idOf(original), known);
    return known;
  };
  for (const secret of secrets) replaced.set(placeOf(secret), await twinSecret(secret, authorities, leafOf));
  // Secrets that gather the pairs of others get the twins of those.
  const pairs = new Map(
    secrets.map(secret => [secret.data?.[TLS_CERT] ?? '', replaced.get(placeOf(secret))?.data] as const),
  );
  return {
    secrets: [...replaced.values()].map(secret => gathered(secret, pairs)),
    configMaps: configMaps.map(configMap => twinConfigMap(configMap, authorities)),
    pairOf: original => authorities.get(idOf(original))?.twin,
  };
}

/** Secrets with a certificate of their own, or with those of others. */
export function holdsCertificate(data: Readonly<Record<string, string>> | undefined): boolean {
  return data !== undefined && (data[TLS_CERT] !== undefined || Object.keys(data).some(key => key.endsWith('.crt')));
}

export function holdsCertificates({ data = {} }: ConfigMap): boolean {
  return Object.values(data).some(text => text.includes('BEGIN CERTIFICATE'));
}

/** Original certificates and their twins, by content. */
type Authorities = ReadonlyMap<string, { readonly original: Certificate; readonly twin: CertificateAndKey }>;

async function authoritiesOf(
  secrets: readonly PublicSecret[],
  configMaps: readonly ConfigMap[],
  keys: Keys,
): Promise<Authorities> {
  const texts = [
    ...secrets.map(secret => dataText(secret, TLS_CERT)),
    ...configMaps.flatMap(({ data = {} }) => Object.values(data).filter(text => text.includes('BEGIN CERTIFICATE'))),
  ];
  const found = new Map<string, Certificate>();
  for (const text of new Set(texts)) {
    for (const certificate of certificatesIn(text)) if (certificate.isCA) found.set(idOf(certificate), certificate);
  }
  const entries = await Promise.all(
    [...found].map(async ([id, original]) => {
      const twin = await issueSigner({ ...lifeOf(original), commonName: nameOf(original), keys, algorithm: CHEAP });
      return [id, { original, twin }] as const;
    }),
  );
  return new Map(entries);
}

async function twinSecret(
  secret: PublicSecret,
  authorities: Authorities,
  leafOf: (original: Certificate) => Promise<CertificateAndKey>,
): Promise<Secret> {
  const { keyProblem, ...rest } = secret;
  const [original] = certificatesIn(dataText(secret, TLS_CERT));
  // What is broken stays broken: the rules have something to say about it.
  if (original === undefined || keyProblem) return rest;
  const pair = authorities.get(idOf(original))?.twin ?? (await leafOf(original));
  return {
    ...rest,
    data: {
      ...rest.data,
      [TLS_CERT]: base64(encodeCertificates(pair.chain)),
      [TLS_KEY]: base64(encodePrivateKey(pair.key)),
    },
  };
}

async function leafTwin(original: Certificate, authorities: Authorities, keys: Keys): Promise<CertificateAndKey> {
  const issuer = [...authorities.values()].find(candidate => isIssuer(candidate.original, original));
  const life = lifeOf(original);
  const signer =
    issuer?.twin ??
    (await issueSigner({ ...life, commonName: original.issuer.commonName || 'unknown', keys, algorithm: CHEAP }));
  const request = { ...life, signer, keys, algorithm: CHEAP } as const;
  const user = { name: nameOf(original), groups: original.subject.organizations };
  const hostnames = [...new Set([...original.dnsNames, ...original.ipAddresses])];
  const [isServer, isClient] = ['serverAuth', 'clientAuth'].map(usage => original.extKeyUsages.includes(usage));
  if (hostnames.length === 0) return issueClient({ ...request, user });
  return isServer && isClient ? issuePeer({ ...request, hostnames }) : issueServing({ ...request, hostnames });
}

function isIssuer(issuer: Certificate, leaf: Certificate): boolean {
  if (!issuer.subject.der.equals(leaf.issuer.der)) return false;
  try {
    return isSignedBy(leaf, issuer.publicKey);
  } catch {
    return false;
  }
}

function twinConfigMap(configMap: ConfigMap, authorities: Authorities): ConfigMap {
  const entries = Object.entries(configMap.data ?? {}).map(([key, text]) => {
    const originals = text.includes('BEGIN CERTIFICATE') ? certificatesIn(text) : [];
    if (originals.length === 0) return [key, text];
    const twins = originals.map(original => authorities.get(idOf(original))?.twin.chain[0] ?? original);
    // Rotated bundles are sorted by their bytes, which differ in the twin; one that was not stays as it is.
    const isCanonical = encodeCertificates(canonicalBundle(originals)) === text;
    const twin = encodeCertificates(isCanonical && key !== 'ca.crt' ? canonicalBundle(twins) : twins);
    return [key, isCanonical || encodeCertificates(originals) === text ? twin : `${twin}\n`];
  });
  return { ...configMap, data: Object.fromEntries(entries) as Record<string, string> };
}

function gathered(secret: Secret, pairs: ReadonlyMap<string, Record<string, string> | undefined>): Secret {
  const data = { ...secret.data };
  for (const [key, value] of Object.entries(data)) {
    const pair = key !== TLS_CERT && key.endsWith('.crt') ? pairs.get(value) : undefined;
    if (pair === undefined) continue;
    data[key] = pair[TLS_CERT] ?? value;
    data[`${key.slice(0, -'.crt'.length)}.key`] = pair[TLS_KEY] ?? '';
  }
  return { ...secret, data };
}

/** The request that gives exactly these dates: certificates begin a second before they are made (spec 10, V-1). */
function lifeOf({ notBefore, notAfter }: Certificate): { now: Date; lifetimeMs: number } {
  const now = new Date(notBefore.getTime() + seconds(1));
  return { now, lifetimeMs: Math.max(notAfter.getTime() - now.getTime(), 1) };
}

function nameOf({ subject }: Certificate): string {
  return subject.commonName || 'unknown';
}

function idOf({ der }: Certificate): string {
  return der.toString('base64');
}

function placeOf({ metadata }: Secret): string {
  return `${metadata?.namespace ?? ''}/${metadata?.name ?? ''}`;
}

function base64(text: string): string {
  return Buffer.from(text, 'latin1').toString('base64');
}
