import { createPublicKey, type KeyObject, X509Certificate } from 'node:crypto';
import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { readCertificates, readPrivateKey } from '../pki/pem.ts';
import { pemBlocks } from '../pki/pem-block.ts';
import { Recent } from '../pki/recent.ts';

/** Says why no process could load the content of an object; undefined when one can, or when it is nothing of ours to judge. */
export type ContentCheck = (object: Secret | ConfigMap, kind: 'secret' | 'configmap') => string | undefined;

/** The cluster fills such a bundle with what its trust store has: one entry that we cannot read is its affair. */
const INJECTED = 'config.openshift.io/inject-trusted-cabundle';

/**
 * Judges certificates, keys and bundles by the names of their files, and as leniently as Go loads them: a server that is given less
 * does not start, or goes on refusing everybody. Keys of other names are not looked at. Never quotes content.
 */
export const unloadable: ContentCheck = (object, kind) => {
  const texts = textsOf(object, kind);
  for (const [name, text] of texts) {
    const problem = problemOf(name, text, texts, object);
    if (problem !== undefined) return `${name}: ${problem}`;
  }
  return undefined;
};

function problemOf(
  name: string,
  text: string,
  texts: ReadonlyMap<string, string>,
  { metadata }: Secret | ConfigMap,
): string | undefined {
  const stem = name.replace(/\.(crt|key|pub)$/, '');
  const [certificate, key] = [texts.get(`${stem}.crt`), texts.get(`${stem}.key`)];
  if (name.endsWith('ca-bundle.crt'))
    return failureOf(() => requireBundle(text, metadata?.labels?.[INJECTED] === 'true'));
  if (name === 'tls.crt' && key === undefined) return 'tls.key is missing';
  if (name === 'tls.key' && certificate === undefined) return 'tls.crt is missing';
  if (name.endsWith('.crt') && key !== undefined) return judged(`${text}\0${key}`, () => requirePair(text, key));
  if (name.endsWith('.pub')) return judged(`${text}\0${key ?? ''}`, () => requirePublicKey(text, key));
  return undefined;
}

function requireBundle(text: string, isInjected: boolean): void {
  if (isInjected && !isEmpty(text)) return;
  readCertificates(text);
}

function isEmpty(text: string): boolean {
  return pemBlocks(text).next().done === true;
}

/** As Go's X509KeyPair: the first certificate is read, and its key must be the first private key. */
function requirePair(certificate: string, key: string): void {
  for (const block of pemBlocks(certificate)) {
    if (!block.ok || block.type !== 'CERTIFICATE') continue;
    if (new X509Certificate(block.bytes).checkPrivateKey(readPrivateKey(key))) return;
    throw new Error('the private key belongs to another certificate');
  }
  throw new Error('there is no certificate in it');
}

function requirePublicKey(text: string, key: string | undefined): void {
  const found = readPublicKey(text);
  if (key === undefined || createPublicKey(readPrivateKey(key)).equals(found)) return;
  throw new Error('the private key beside it belongs to another public key');
}

/** Whatever the label says, as in Go: OpenShift has `RSA PUBLIC KEY` above a key in the other form. */
function readPublicKey(text: string): KeyObject {
  for (const block of pemBlocks(text)) {
    if (!block.ok) continue;
    for (const type of ['spki', 'pkcs1'] as const) {
      try {
        return createPublicKey({ key: block.bytes, format: 'der', type });
      } catch {
        // The other form, then.
      }
    }
    return new X509Certificate(block.bytes).publicKey;
  }
  throw new Error('there is no public key in it');
}

/** The same few pairs are judged in every pass of every controller that looks at them. */
const kept = new Recent<{ readonly problem: string | undefined }>(100);

function judged(texts: string, load: () => void): string | undefined {
  return kept.get(texts, () => ({ problem: failureOf(load) })).problem;
}

/** Messages of ours are told; those of OpenSSL may be anything. */
function failureOf(load: () => void): string | undefined {
  try {
    load();
    return undefined;
  } catch (error) {
    return 'opensslErrorStack' in (error as object) || (error as { code?: string }).code?.startsWith('ERR_') === true
      ? 'it cannot be read'
      : (error as Error).message;
  }
}

function textsOf({ data = {} }: Secret | ConfigMap, kind: 'secret' | 'configmap'): ReadonlyMap<string, string> {
  const values = Object.entries(data as Record<string, string | null>);
  const decode = (value: string | null) =>
    kind === 'secret' ? Buffer.from(value ?? '', 'base64').toString('latin1') : (value ?? '');
  return new Map(values.map(([name, value]) => [name, decode(value)]));
}
