import { createHash, type KeyObject } from 'node:crypto';
import { posix } from 'node:path';
import type { CertificateSigningRequest } from 'kubernetes-types/certificates/v1.d.ts';
import type { Host } from '../../host/port.ts';
import { days } from '../../kube/duration.ts';
import { isAlreadyExists } from '../../kube/error.ts';
import { getIfPresent } from '../../kube/get.ts';
import type { Kube } from '../../kube/port.ts';
import { CERTIFICATE_SIGNING_REQUESTS } from '../../kube/resource.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { createCertificateRequest, encodeCertificateRequest } from '../../pki/csr.ts';
import { isPkiError } from '../../pki/error.ts';
import { type Keys, keyAlgorithmOf } from '../../pki/keys.ts';
import { encodeCertificates, encodePrivateKey, readCertificates, readPrivateKey } from '../../pki/pem.ts';
import { publicKeyInfoOf } from '../../pki/signature.ts';
import { caDigest } from '../../trust/receipts.ts';
import { noteKubeletRestart, replaceClient } from './carry-out.ts';
import { NodeFault } from './file-text.ts';
import { belongsTo, isMadeSince, renewLeaf, signerOf } from './leaf.ts';
import { KEY_MODE, KUBELET_CLIENT, KUBELET_CONF, OWN_MODE } from './places.ts';
import type { NodeSight } from './sight.ts';
import type { Step } from './step.ts';

const SIGNER = 'kubernetes.io/kube-apiserver-client-kubelet';
const NODE_USER = 'system:node:';
const NODES_GROUP = 'system:nodes';

export interface KubeletCertificateOptions {
  readonly host: Host;
  readonly keys: Keys;
  readonly now: Date;
  /** The API as this agent, and with the node's own credentials. */
  readonly kube: Kube;
  readonly nodeKube: Kube;
}

type Renewal = Extract<Step, { do: 'renew-kubelet' }>;

/**
 * Gets the kubelet another client certificate (spec 80, 5): signed here, or through a request. False: it has been asked for and has not
 * come yet. The key of a request is on the disk before the request is made, so that whoever dies in between is followed by somebody who
 * has it.
 */
export async function renewKubelet(
  sight: NodeSight,
  step: Renewal,
  options: KubeletCertificateOptions,
): Promise<boolean> {
  const { leaf, from, how } = step;
  const { keys, now } = options;
  if (how.by !== 'sign') return askForCertificate(sight, step, how, options);
  const signer = sight.keys.get(how.signs);
  if (signer === undefined)
    throw new RangeError("the key that is to sign the kubelet's certificate was not looked for");
  const defaultLifetimeMs = days(leaf.chain.validityDays);
  const { certificate, signedBy: oldSigner } = leaf;
  const { isStopgap } = how;
  const made = await renewLeaf(certificate, { keys, now, from, signer, oldSigner, defaultLifetimeMs, isStopgap });
  await install(sight, step, encodeCertificates(made.chain), encodePrivateKey(made.key), options);
  return true;
}

async function askForCertificate(
  sight: NodeSight,
  step: Renewal,
  how: Exclude<Renewal['how'], { by: 'sign' }>,
  options: KubeletCertificateOptions,
): Promise<boolean> {
  const { host, kube, nodeKube } = options;
  const asker = how.by === 'ask-as-node' ? nodeKube : kube;
  const key = await keyToAskWith(sight, step, options);
  const name = requestName(key);
  const request = await getIfPresent(asker, CERTIFICATE_SIGNING_REQUESTS, { name });
  if (request === undefined) {
    await ask(asker, name, key, sight.nodeName, options.keys);
    return false;
  }
  const refused = request.status?.conditions?.find(({ type }) => type === 'Denied' || type === 'Failed');
  if (refused !== undefined) {
    await host.files.remove(sight.places.kubeletKey);
    throw new NodeFault(
      `the request ${name} for the kubelet's certificate was refused: ${refused.message ?? refused.type}`,
    );
  }
  const { certificate: issued } = request.status ?? {};
  if (issued === undefined || issued === '') return false;
  const text = Buffer.from(issued, 'base64').toString('latin1');
  const problem = problemOf(sight, step, how.signs, text, key, options.now);
  if (problem !== undefined) {
    await host.files.remove(sight.places.kubeletKey);
    throw new NodeFault(`the certificate that was issued for ${name} cannot be used: ${problem}`);
  }
  await install(sight, step, text, encodePrivateKey(key), options);
  return true;
}

/** The one that is on the disk already, or a new one of the kind that the kubelet has. */
async function keyToAskWith(
  { places, kubelet }: NodeSight,
  { leaf }: Renewal,
  { host, keys }: KubeletCertificateOptions,
): Promise<KeyObject> {
  try {
    if (kubelet.askedWith !== undefined) return readPrivateKey(kubelet.askedWith);
  } catch (error) {
    if (!isPkiError(error)) throw error;
  }
  const key = await keys.generate(keyAlgorithmOf(leaf.certificate.publicKey) ?? 'P-256');
  await host.files.makeDirectory(places.own, OWN_MODE);
  await host.files.write(places.kubeletKey, Buffer.from(encodePrivateKey(key)), { mode: KEY_MODE });
  return key;
}

/** The same key asks once. */
function requestName(key: KeyObject): string {
  return `rotunda-kubelet-${createHash('sha256').update(publicKeyInfoOf(key)).digest('hex').slice(0, 32)}`;
}

async function ask(asker: Kube, name: string, key: KeyObject, nodeName: string, keys: Keys): Promise<void> {
  const subject = { commonName: `${NODE_USER}${nodeName}`, organizations: [NODES_GROUP] };
  const request = encodeCertificateRequest(await createCertificateRequest({ keys, key, subject }));
  const isRsa = key.asymmetricKeyType === 'rsa';
  const object: CertificateSigningRequest = {
    metadata: { name },
    spec: {
      request: Buffer.from(request).toString('base64'),
      signerName: SIGNER,
      usages: ['digital signature', ...(isRsa ? ['key encipherment'] : []), 'client auth'],
    },
  };
  try {
    await asker.create(CERTIFICATE_SIGNING_REQUESTS, object);
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
}

function problemOf(
  sight: NodeSight,
  { leaf, from }: Renewal,
  signs: string | undefined,
  text: string,
  key: KeyObject,
  now: Date,
): string | undefined {
  let certificate: Certificate | undefined;
  try {
    [certificate] = readCertificates(text).certificates;
  } catch (error) {
    if (!isPkiError(error)) throw error;
    return error.message;
  }
  if (certificate === undefined || !belongsTo(key, certificate)) return 'it is for another key';
  if (certificate.subject.commonName !== `${NODE_USER}${sight.nodeName}`) return 'it is for another name';
  if (certificate.notAfter <= now) return 'it has ended';
  // A round says since when; without one any other will do.
  const isOld = signs === undefined ? certificate.der.equals(leaf.certificate.der) : !isMadeSince(certificate, from);
  if (isOld) return 'it is an older one';
  const signer = signerOf(certificate, sight.signers.get('ca')?.cas ?? []);
  if (signer === undefined) return 'it is signed by a CA that is not in ca.crt';
  return signs === undefined || caDigest(signer) === signs ? undefined : `it is signed by ${signer.subject.commonName}`;
}

/** In the form in which a kubelet keeps it: a dated file with both, and a link to it. */
async function install(
  sight: NodeSight,
  { leaf }: Renewal,
  certificate: string,
  key: string,
  { host, now }: KubeletCertificateOptions,
): Promise<void> {
  const { files } = host;
  const kubeconfig = sight.kubeconfigs.get(KUBELET_CONF);
  await noteKubeletRestart(files, sight);
  if (kubeconfig?.config.certificate !== undefined) {
    await replaceClient(files, sight, leaf, certificate, key);
  } else {
    const current = kubeconfig?.config.certificateFile ?? KUBELET_CLIENT;
    const pem = Buffer.from(certificate + key);
    if ((await files.readLink(current)) === undefined) {
      await files.write(current, pem, { mode: KEY_MODE });
    } else {
      const dated = posix.join(posix.dirname(current), `kubelet-client-${stampOf(now)}.pem`);
      await files.write(dated, pem, { mode: KEY_MODE });
      await files.symlink(dated, current);
    }
  }
  await files.remove(sight.places.kubeletKey);
}

/** `2026-01-31-23-59-59`, as client-go names them. */
function stampOf(now: Date): string {
  return now.toISOString().slice(0, 19).replaceAll(/[T:]/g, '-');
}
