import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { BUNDLE_KEY } from '../../certrotation/bundle.ts';
import { dataText, TLS_CERT } from '../../certrotation/secret.ts';
import { certificatesIn } from '../../inventory/relations.ts';
import { getIfPresent } from '../../kube/get.ts';
import { listAll } from '../../kube/list.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, SECRETS } from '../../kube/resource.ts';
import { CLUSTER, INFRASTRUCTURES } from '../../kube-apiserver/resources.ts';
import { KUBE_SYSTEM_NAMESPACE, MACHINE_API_NAMESPACE, MCO_NAMESPACE } from '../../machine-config-api/names.ts';
import { unexpired } from '../../pki/bundle.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { encodeCertificates } from '../../pki/pem.ts';
import { ignitionWithCa } from './ignition-ca.ts';
import type { Outcome } from './outcome.ts';

/** The signer of the machine-config server's certificate, and the bundle of the same name. */
export const JOIN_SIGNER = { namespace: MCO_NAMESPACE, name: 'machine-config-server-ca' };
/** What the server shows. */
export const JOIN_SERVING = { namespace: MCO_NAMESPACE, name: 'machine-config-server-tls' };
const ROOT_CA = { namespace: KUBE_SYSTEM_NAMESPACE, name: 'root-ca' };
const ROOT_CA_KEY = 'ca.crt';
/** Their content is rendered by the machine-config operator itself, one for each pool. */
const MANAGED_USER_DATA = /-user-data-managed$/;

export function isManagedUserData(name: string): boolean {
  return MANAGED_USER_DATA.test(name);
}

export async function joinCaIfThere(kube: Kube): Promise<Certificate | undefined> {
  const signer = await getIfPresent(kube, SECRETS, JOIN_SIGNER);
  return certificatesIn(signer && dataText(signer, TLS_CERT))[0];
}

/** The CA that new machines are to trust. */
export async function currentJoinCa(kube: Kube): Promise<Certificate> {
  const current = await joinCaIfThere(kube);
  if (current !== undefined) return current;
  throw new Error(`secret/${JOIN_SIGNER.name} in ${JOIN_SIGNER.namespace} holds no CA certificate`);
}

/**
 * Brings the CA to where new machines take it from. Every CA that they trust until now and that is still valid stays beside it: the
 * server may show its old certificate for a while (spec 70, 9.9). One object that cannot be read or written keeps no other from
 * being right (9.8).
 */
export async function distributeJoinCa(
  kube: Kube,
  current: Certificate,
  { dryRun, updateRootCa = false, withdrawn }: Distribution,
): Promise<Outcome[]> {
  const bundle = certificatesIn((await getIfPresent(kube, CONFIG_MAPS, JOIN_SIGNER))?.data?.[BUNDLE_KEY]);
  const wanted = [current, ...unexpired(bundle, new Date())].filter(({ der }) => !withdrawn?.der.equals(der));
  const caFor = (stored: string) => withCa(withoutCa(stored, withdrawn), wanted, new Date());
  const { items } = await listAll(kube, SECRETS, { namespace: MACHINE_API_NAMESPACE });
  const outcomes: Outcome[] = [];
  for (const secret of items) outcomes.push(await updateUserData(kube, secret, caFor, dryRun));
  return [...outcomes, ...(await writeRootCa(kube, caFor, { dryRun, updateRootCa }))];
}

interface Distribution {
  readonly dryRun: boolean;
  /** Also where it reboots all nodes and the platform does not need it. */
  readonly updateRootCa?: boolean | undefined;
  /** A CA that was taken back: it has signed nothing. */
  readonly withdrawn?: Certificate | undefined;
}

type CaFor = (stored: string) => string;

function withoutCa(stored: string, withdrawn: Certificate | undefined): string {
  const trusted = certificatesIn(stored);
  const left = trusted.filter(({ der }) => !withdrawn?.der.equals(der));
  return left.length === trusted.length ? stored : encodeCertificates(left);
}

/** The wanted CAs, then what else is there and still valid. A text that has all of them stays as it is, whatever its order. */
export function withCa(stored: string, wanted: readonly Certificate[], now: Date): string {
  const trusted = certificatesIn(stored);
  const isIn = (certificates: readonly Certificate[], { der }: Certificate) =>
    certificates.some(other => other.der.equals(der));
  if (wanted.every(certificate => isIn(trusted, certificate))) return stored;
  const all = [...wanted, ...unexpired(trusted, now)];
  return encodeCertificates(all.filter((certificate, index) => !isIn(all.slice(0, index), certificate)));
}

async function updateUserData(kube: Kube, secret: Secret, caFor: CaFor, dryRun: boolean): Promise<Outcome> {
  const name = secret.metadata?.name ?? '';
  const object = { kind: 'Secret', namespace: MACHINE_API_NAMESPACE, name };
  if (isManagedUserData(name)) return { object, outcome: 'skipped', text: 'the machine-config operator writes it' };
  try {
    const userData = dataText(secret, 'userData');
    if (userData === undefined) return { object, outcome: 'skipped', text: 'it has no userData' };
    const update = ignitionWithCa(userData, caFor);
    switch (update.do) {
      case 'skip':
        return { object, outcome: 'skipped', text: update.because, isNoted: true };
      case 'refuse':
        return { object, outcome: 'failed', text: update.because };
      case 'keep':
        return { object, outcome: 'unchanged', text: 'is current', isNoted: true };
      default: {
        const data = { ...secret.data, userData: Buffer.from(update.text).toString('base64') };
        await kube.update(SECRETS, { ...secret, data }, { dryRun });
        return { object, outcome: 'done', text: 'updated' };
      }
    }
  } catch (error) {
    return { object, outcome: 'failed', text: (error as Error).message };
  }
}

/** Bare metal machines take the CA from here as well; a change reboots every node (spec 70, 2.5). */
async function writeRootCa(kube: Kube, caFor: CaFor, { dryRun, updateRootCa }: Distribution): Promise<Outcome[]> {
  const { platformStatus, platform } = (await getIfPresent(kube, INFRASTRUCTURES, CLUSTER))?.status ?? {};
  if ((platformStatus?.type || platform) !== 'BareMetal' && !updateRootCa) return [];
  const found = await getIfPresent(kube, CONFIG_MAPS, ROOT_CA);
  if (found === undefined) return [];
  const object = { kind: 'ConfigMap', ...ROOT_CA };
  const stored = found.data?.[ROOT_CA_KEY] ?? '';
  const ca = caFor(stored);
  if (ca === stored) return [{ object, outcome: 'unchanged', text: 'is current', isNoted: true }];
  try {
    await kube.update(CONFIG_MAPS, { ...found, data: { ...found.data, [ROOT_CA_KEY]: ca } }, { dryRun });
    return [{ object, outcome: 'done', text: 'updated: all nodes will reboot' }];
  } catch (error) {
    return [{ object, outcome: 'failed', text: (error as Error).message }];
  }
}
