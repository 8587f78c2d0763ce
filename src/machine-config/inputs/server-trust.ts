import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { loadSecret, TLS_CERT, TLS_KEY, TLS_SECRET } from '../../certrotation/secret.ts';
import type { Clock } from '../../kube/clock.ts';
import { createIfMissing } from '../../kube/create-if-missing.ts';
import { days } from '../../kube/duration.ts';
import { getIfPresent } from '../../kube/get.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, SECRETS } from '../../kube/resource.ts';
import { KUBE_SYSTEM_NAMESPACE, MCO_NAMESPACE } from '../../machine-config-api/names.ts';
import type { CertificateAndKey } from '../../pki/authority.ts';
import { issueServing, issueSigner } from '../../pki/issue.ts';
import type { KeyAlgorithm, Keys } from '../../pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../../pki/pem.ts';
import { holdsCertificate } from '../source/trust-bundle.ts';

export interface ServerTrust {
  readonly kube: Kube;
  readonly clock: Clock;
  readonly keys: Keys;
  /** The name new machines call the machine-config server by. */
  readonly host: string;
  readonly keyAlgorithm?: KeyAlgorithm | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** As long as the installer's (spec 50, MS-6): a new one reaches machines by a reboot. */
const LIFETIME_MS = days(3650);
/** The names 4.19 gives them. */
const SIGNER = { namespace: MCO_NAMESPACE, name: 'machine-config-server-ca' };
const SERVING = { namespace: MCO_NAMESPACE, name: 'machine-config-server-tls' };
const ROOT_CA = { namespace: KUBE_SYSTEM_NAMESPACE, name: 'root-ca' };

/**
 * What machines trust from their first boot on: the cluster's own CA and that of the machine-config server, whose certificate is
 * made with it. Where somebody else has said what the root CA is, the server's certificate is theirs to make.
 */
export async function ensureServerTrust(trust: ServerTrust): Promise<void> {
  const { kube, signal } = trust;
  const found = await getIfPresent(kube, SECRETS, SIGNER, { signal });
  const isTheirs = found === undefined && (await getIfPresent(kube, CONFIG_MAPS, ROOT_CA, { signal })) !== undefined;
  if (isTheirs) return;
  const signer = loadSecret(found ?? (await createSigner(trust)));
  if ((await getIfPresent(kube, SECRETS, SERVING, { signal })) === undefined) {
    const pair = await issueServing({ ...issuing(trust), signer, hostnames: [trust.host, 'localhost'] });
    await createIfMissing(kube, SECRETS, tlsSecret(SERVING, pair), signal);
  }
  const bundle = (await clusterCa(kube, signal)) + encodeCertificates(signer.chain);
  await createIfMissing(kube, CONFIG_MAPS, { metadata: ROOT_CA, data: { 'ca.crt': bundle } }, signal);
}

async function createSigner(trust: ServerTrust): Promise<Secret> {
  const pair = await issueSigner({ ...issuing(trust), commonName: 'machine-config-server-ca' });
  return trust.kube.create(SECRETS, tlsSecret(SIGNER, pair), { signal: trust.signal });
}

/** The CA of the API, which the controller manager puts into every namespace; empty where nobody does. */
async function clusterCa(kube: Kube, signal: AbortSignal | undefined): Promise<string> {
  const key = { namespace: KUBE_SYSTEM_NAMESPACE, name: 'kube-root-ca.crt' };
  const text = (await getIfPresent(kube, CONFIG_MAPS, key, { signal }))?.data?.['ca.crt'] ?? '';
  if (!holdsCertificate(Buffer.from(text))) return '';
  return text.endsWith('\n') ? text : `${text}\n`;
}

function issuing({ keys, clock, keyAlgorithm }: ServerTrust) {
  return { keys, now: clock.now(), lifetimeMs: LIFETIME_MS, algorithm: keyAlgorithm };
}

function tlsSecret(metadata: typeof SIGNER, { chain, key }: CertificateAndKey): Secret {
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  const data = { [TLS_CERT]: base64(encodeCertificates(chain)), [TLS_KEY]: base64(encodePrivateKey(key)) };
  return { metadata, type: TLS_SECRET, data };
}
