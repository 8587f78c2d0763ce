import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { type CertificateRole, ISSUER, NOT_AFTER, roleOf } from '../certrotation/annotations.ts';
import { BUNDLE_KEY } from '../certrotation/bundle.ts';
import { annotationsOf, dataText, TLS_CERT } from '../certrotation/secret.ts';
import type { Certificate } from '../pki/certificate.ts';
import { readCertificates } from '../pki/pem.ts';
import { chainOfBundle, chainOfNextSigner, chainOfSigner, chainOfTarget, isNamed } from './known-chains.ts';

export interface FoundSigner {
  readonly secret: Secret;
  readonly certificate: Certificate | undefined;
}

interface FoundBundle {
  readonly configMap: ConfigMap;
  readonly certificates: readonly Certificate[];
}

/** The given objects and who belongs to whom: by our tables, else by what the objects say of themselves. */
export class Relations {
  readonly #signers: readonly FoundSigner[];
  readonly #bundles: readonly FoundBundle[];

  constructor(secrets: readonly Secret[], configMaps: readonly ConfigMap[]) {
    this.#signers = secrets
      .filter(secret => this.role(secret) === 'signer')
      .map(secret => ({ secret, certificate: certificatesIn(dataText(secret, TLS_CERT))[0] }));
    this.#bundles = configMaps
      .filter(({ data }) => data?.[BUNDLE_KEY] !== undefined)
      .map(configMap => ({ configMap, certificates: certificatesIn(configMap.data?.[BUNDLE_KEY]) }));
  }

  /** By label, else by our tables, else by what the certificate is; undefined for Secrets that are not ours to judge. */
  role(secret: Secret): CertificateRole | undefined {
    const labelled = roleOf(secret.metadata?.labels);
    if (labelled !== 'unknown') return labelled;
    if (chainOfSigner(secret) ?? chainOfNextSigner(secret)) return 'signer';
    if (chainOfTarget(secret)) return 'target';
    if (annotationsOf(secret)[NOT_AFTER] === undefined) return undefined;
    const [certificate] = certificatesIn(dataText(secret, TLS_CERT));
    return certificate?.isCA && certificate.issuer.der.equals(certificate.subject.der) ? 'signer' : 'target';
  }

  signerOfTarget(target: Secret): FoundSigner | undefined {
    const chain = chainOfTarget(target);
    const known = chain && this.#signers.find(({ secret }) => isNamed(secret, chain.signer));
    if (known !== undefined) return known;
    // The common name of a signer names its Secret: <namespace>_<name>@<seconds>.
    const [, namespace, name] = /^([^_]+)_(.+)@\d+$/.exec(annotationsOf(target)[ISSUER] ?? '') ?? [];
    if (namespace === undefined || name === undefined) return undefined;
    return this.#signers.find(({ secret }) => isNamed(secret, { namespace, name }));
  }

  signerOfBundle(bundle: ConfigMap): FoundSigner | undefined {
    const chain = chainOfBundle(bundle);
    if (chain !== undefined) return this.#signers.find(({ secret }) => isNamed(secret, chain.signer));
    if (roleOf(bundle.metadata?.labels) !== 'ca-bundle') return undefined;
    const inside = this.#bundles.find(({ configMap }) => configMap === bundle)?.certificates ?? [];
    return this.#signers.find(
      ({ certificate }) => certificate && inside.some(({ der }) => der.equals(certificate.der)),
    );
  }

  bundleOf(signer: FoundSigner): readonly Certificate[] | undefined {
    return this.bundleObjectOf(signer)?.certificates;
  }

  bundleObjectOf(signer: FoundSigner): FoundBundle | undefined {
    const chain = chainOfSigner(signer.secret) ?? chainOfNextSigner(signer.secret);
    const named = chain && this.#bundles.find(({ configMap }) => isNamed(configMap, chain.bundle));
    if (named !== undefined) return named;
    const { certificate } = signer;
    return this.#bundles.find(
      ({ configMap, certificates }) =>
        roleOf(configMap.metadata?.labels) === 'ca-bundle' &&
        certificates.some(({ der }) => certificate !== undefined && der.equals(certificate.der)),
    );
  }
}

/** The certificates of a PEM text, as `certificatesIn` of pki gives them, remembered. */
export function certificatesIn(text: string | undefined): readonly Certificate[] {
  return text ? readPem(text).certificates : [];
}

/** What a PEM text holds, and what is wrong with it. */
export interface PemContent {
  readonly certificates: readonly Certificate[];
  readonly problem?: string | undefined;
}

/** The same texts are asked for again and again: by rule, by bundle, by drawing. */
const MOST_REMEMBERED = 2000;
const remembered = new Map<string, PemContent>();

export function readPem(text: string): PemContent {
  let content = remembered.get(text);
  if (content !== undefined) return content;
  try {
    content = { certificates: readCertificates(text).certificates };
  } catch (error) {
    content = { certificates: [], problem: (error as Error).message };
  }
  if (remembered.size >= MOST_REMEMBERED) remembered.clear();
  remembered.set(text, content);
  return content;
}
