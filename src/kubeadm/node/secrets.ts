import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { dataText, loadSecret, TLS_KEY, TLS_SECRET, withCertificate } from '../../certrotation/secret.ts';
import { nextKey, previousKey } from '../../hand-over/family.ts';
import { createIfMissing } from '../../kube/create-if-missing.ts';
import { getIfPresent } from '../../kube/get.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, SECRETS } from '../../kube/resource.ts';
import type { CertificateAndKey } from '../../pki/authority.ts';
import { isPkiError } from '../../pki/error.ts';
import { caDigest } from '../../trust/receipts.ts';
import { KUBEADM_SIGNERS, type SignerName } from '../chains.ts';
import { CLUSTER_RECORD } from '../cluster-record.ts';
import type { Published } from '../exchange.ts';
import { PKI_NAMESPACE } from '../names.ts';
import {
  CURRENT_SLOT,
  KEY_SLOTS,
  privateKeyDigest,
  SERVICE_ACCOUNT,
  SERVICE_ACCOUNT_KEYS,
} from '../service-account-keys.ts';
import type { Wanted } from '../wanted.ts';
import { NodeFault } from './file-text.ts';
import type { NodeSight } from './sight.ts';

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
      if (privateKeyDigest(text) === token) tokenKeys.set(token, text);
    }
  }
  const published = new Set<Published>();
  for (const name of wanted.publishes) {
    const key = name === SERVICE_ACCOUNT ? SERVICE_ACCOUNT_KEYS : { namespace: PKI_NAMESPACE, name };
    if ((await getIfPresent(kube, SECRETS, key)) !== undefined) published.add(name);
  }
  return { ...sight, keys, tokenKeys, published };
}

/** Copies what is asked for into its Secret where there is none (KA-2). */
export async function publish(sight: NodeSight, what: Published, kube: Kube): Promise<void> {
  return what === SERVICE_ACCOUNT ? publishAccountKeys(sight, kube) : publishSigner(sight, what, kube);
}

/** Both files as they are: what comes back when others are taken back is every byte of them. */
async function publishAccountKeys({ serviceAccount }: NodeSight, kube: Kube): Promise<void> {
  const { keyFile, publicFile } = serviceAccount ?? {};
  if (keyFile === undefined || publicFile === undefined) throw new RangeError('there is no sa.key to publish');
  if (await keepsKeysOnNodes(kube))
    throw new NodeFault(
      'the key of service accounts is wanted in a Secret, and keys stay on the nodes (--keys-on-nodes)',
    );
  const data = { [CURRENT_SLOT.key]: base64(keyFile.text), [CURRENT_SLOT.pub]: base64(publicFile.text) };
  await createIfMissing(kube, SECRETS, { metadata: { ...SERVICE_ACCOUNT_KEYS }, type: 'Opaque', data });
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

/** Its key too, unless keys are to stay on the nodes. */
async function publishSigner({ signers }: NodeSight, name: SignerName, kube: Kube): Promise<void> {
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
  const secret = await getIfPresent(kube, SECRETS, SERVICE_ACCOUNT_KEYS);
  return KEY_SLOTS.flatMap(({ key }) => (secret && dataText(secret, key)) ?? []);
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
