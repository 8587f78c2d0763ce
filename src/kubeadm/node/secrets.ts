import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { dataText, loadSecret, TLS_KEY, TLS_SECRET, withCertificate } from '../../certrotation/secret.ts';
import { nextKey, previousKey } from '../../hand-over/family.ts';
import { createIfMissing } from '../../kube/create-if-missing.ts';
import { getIfPresent } from '../../kube/get.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, SECRETS } from '../../kube/resource.ts';
import type { CertificateAndKey } from '../../pki/authority.ts';
import { isPkiError } from '../../pki/error.ts';
import { readPrivateKey } from '../../pki/pem.ts';
import { caDigest } from '../../trust/receipts.ts';
import { KUBEADM_SIGNERS, type SignerName } from '../chains.ts';
import { CLUSTER_RECORD } from '../cluster-record.ts';
import { PKI_NAMESPACE } from '../names.ts';
import type { Wanted } from '../wanted.ts';
import { keyDigest } from './look.ts';
import type { NodeSight } from './sight.ts';

/** Where the keys of service accounts are while they are replaced; the next and the previous one beside it, as those of signers. */
export const SERVICE_ACCOUNT_KEYS = { namespace: PKI_NAMESPACE, name: 'service-account-keys' } as const;
/** In these, the private key as PEM. */
export const SERVICE_ACCOUNT_KEY = 'sa.key';
/** A signer is due at this part of its life (KA-2). */
const SIGNER_REFRESH = 0.8;

/** The same sight with what only the API knows: keys that are wanted and not on the node, and which CAs have a Secret. */
export async function withSecrets(sight: NodeSight, wanted: Wanted, kube: Kube): Promise<NodeSight> {
  const keys = new Map(sight.keys);
  for (const { name } of KUBEADM_SIGNERS) {
    const signs = wanted.signers[name]?.signs;
    if (sight.role === 'worker' || signs === undefined || keys.has(signs)) continue;
    for (const pair of await signerPairs(kube, name)) {
      const [ca] = pair.chain;
      if (ca !== undefined && caDigest(ca) === signs) keys.set(signs, { chain: [ca], key: pair.key });
    }
  }
  const tokenKeys = new Map(sight.tokenKeys);
  const token = wanted.serviceAccount?.signs;
  if (sight.role !== 'worker' && token !== undefined && !tokenKeys.has(token)) {
    for (const text of await tokenKeyTexts(kube)) {
      if (digestIn(text) === token) tokenKeys.set(token, text);
    }
  }
  const published = new Set<SignerName>();
  for (const name of wanted.publishes) {
    if ((await getIfPresent(kube, SECRETS, { namespace: PKI_NAMESPACE, name })) !== undefined) published.add(name);
  }
  return { ...sight, keys, tokenKeys, published };
}

/** Copies a CA into its Secret where there is none (KA-2); its key too, unless keys are to stay on the nodes. */
export async function publishSigner({ signers }: NodeSight, name: SignerName, kube: Kube): Promise<void> {
  const files = signers.get(name);
  const [ca] = files?.cas ?? [];
  if (files?.key === undefined || ca === undefined) throw new RangeError(`${name} has no key to publish`);
  const refreshMs = SIGNER_REFRESH * (ca.notAfter.getTime() - ca.notBefore.getTime());
  const bare: Secret = { metadata: { namespace: PKI_NAMESPACE, name }, type: TLS_SECRET };
  const secret = withCertificate(bare, { chain: [ca], key: files.key }, 'signer', Math.floor(refreshMs / 1000) * 1000);
  const isKept = await keepsKeysOnNodes(kube);
  await createIfMissing(kube, SECRETS, isKept ? { ...secret, data: { ...secret.data, [TLS_KEY]: '' } } : secret);
}

async function keepsKeysOnNodes(kube: Kube): Promise<boolean> {
  const record = await getIfPresent(kube, CONFIG_MAPS, CLUSTER_RECORD);
  // Without a word about it a key does not leave its node.
  return record?.data?.['keysOnNodes'] !== 'false';
}

async function signerPairs(kube: Kube, name: SignerName): Promise<CertificateAndKey[]> {
  return (await generations(kube, { namespace: PKI_NAMESPACE, name })).flatMap(secret => {
    try {
      return [loadSecret(secret)];
    } catch (error) {
      if (isPkiError(error)) return [];
      throw error;
    }
  });
}

async function tokenKeyTexts(kube: Kube): Promise<string[]> {
  return (await generations(kube, SERVICE_ACCOUNT_KEYS))
    .map(secret => dataText(secret, SERVICE_ACCOUNT_KEY))
    .filter(text => text !== undefined);
}

/** What is in use, what comes next, and what was before. */
async function generations(kube: Kube, key: { namespace: string; name: string }): Promise<Secret[]> {
  const found: Secret[] = [];
  for (const one of [key, nextKey(key), previousKey(key)]) {
    const secret = await getIfPresent(kube, SECRETS, one);
    if (secret !== undefined) found.push(secret);
  }
  return found;
}

function digestIn(text: string): string | undefined {
  try {
    return keyDigest(readPrivateKey(text));
  } catch (error) {
    if (isPkiError(error)) return undefined;
    throw error;
  }
}
