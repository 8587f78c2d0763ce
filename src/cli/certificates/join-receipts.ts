import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { dataText, TLS_CERT } from '../../certrotation/secret.ts';
import type { Receipt, Receipts } from '../../hand-over/receipt.ts';
import { certificatesIn } from '../../inventory/relations.ts';
import type { Clock } from '../../kube/clock.ts';
import { isNotFound } from '../../kube/error.ts';
import { getIfPresent } from '../../kube/get.ts';
import { listAll } from '../../kube/list.ts';
import type { Kube } from '../../kube/port.ts';
import { type KubeObject, resource, SECRETS } from '../../kube/resource.ts';
import { floorToMs, parseRfc3339 } from '../../kube/time.ts';
import { MACHINE_API_NAMESPACE } from '../../machine-config-api/names.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { verifyChain } from '../../pki/chain.ts';
import { authoritiesIn } from './ignition-ca.ts';
import { isManagedUserData, JOIN_SERVING } from './join-ca.ts';

interface Machine extends KubeObject {
  spec?: { providerSpec?: { value?: { userDataSecret?: { name?: string } } } };
  status?: { nodeRef?: { name?: string }; phase?: string };
}

const MACHINES = resource<Machine>('machine.openshift.io/v1beta1', 'Machine', 'machines', true);
/** Ends that join nothing any more. */
const OVER = new Set(['Failed', 'Deleting']);

/**
 * Who verifies the machine-config server: machines at their first boot, with the CAs in the user data they were made with (spec 90,
 * section 3: `started`). Those are the user data that machines to come are made with, and machines that were made and have not joined yet.
 */
export function joinReceipts(kube: Kube, clock: Clock): Receipts {
  return {
    async of(_signer, ca) {
      const { items: secrets } = await listAll(kube, SECRETS, { namespace: MACHINE_API_NAMESPACE });
      const shown = await shownLeaf(kube);
      const userData = secrets.flatMap(secret => userDataIn(secret, shown, clock.now()));
      const machines = await joining(kube);
      const receipts = [
        ...userData.map(found => receiptOf(found, ca)),
        ...machines.map(machine => arrival(machine, userData, ca)),
      ];
      return receipts.toSorted((a, b) => (a.verifier < b.verifier ? -1 : 1));
    },
    // The server takes its certificate from the Secret with every connection, and nothing takes a CA of its out of user data.
    shown: async () => [],
  };
}

/** The user data of machines that accept the server, or are brought to do so. */
interface UserData {
  readonly name: string;
  readonly cas: readonly Certificate[];
  /** Since when it has been what it is; undefined: nobody knows. */
  readonly changedAt: Date | undefined;
}

/**
 * What we can write counts always. What is somebody else's counts where machines that begin with it accept the server as it is today:
 * others refuse it already, and are no worse off.
 */
function userDataIn(secret: Secret, shown: readonly Certificate[], now: Date): UserData[] {
  const name = secret.metadata?.name ?? '';
  const texts = authoritiesIn(dataText(secret, 'userData') ?? '');
  if (texts === undefined) return [];
  const cas = texts.flatMap(certificatesIn);
  const isOurs = texts.length === 1 && !isManagedUserData(name);
  if (!isOurs && !isAccepted(shown, cas, now)) return [];
  return [{ name, cas, changedAt: lastWrite(secret) }];
}

function isAccepted(
  [leaf, ...intermediates]: readonly Certificate[],
  roots: readonly Certificate[],
  now: Date,
): boolean {
  return leaf !== undefined && verifyChain({ leaf, intermediates, roots, now, usage: 'serverAuth' }).ok;
}

function receiptOf({ name, cas }: UserData, ca: Certificate): Receipt {
  const isLoaded = holds(cas, ca);
  const missing = isManagedUserData(name)
    ? 'the machine-config operator makes it of configmap/root-ca in kube-system, which does not have it: --update-root-ca'
    : 'does not have it: update-ignition-ca-bundle-for-machine-config-server';
  return receipt(`machines of secret/${name}`, isLoaded, isLoaded ? 'has it' : missing);
}

/** A machine has what its user data was when it was made. */
function arrival(machine: Machine, userData: readonly UserData[], ca: Certificate): Receipt {
  const { name = '', creationTimestamp } = machine.metadata ?? {};
  const from = machine.spec?.providerSpec?.value?.userDataSecret?.name;
  const made = parseRfc3339(creationTimestamp ?? '');
  const source = userData.find(found => found.name === from);
  const isYounger = made !== undefined && source?.changedAt !== undefined && floorToMs(made) > source.changedAt;
  const isLoaded = source !== undefined && holds(source.cas, ca) && isYounger;
  const evidence = isLoaded
    ? `was made with secret/${from} when that had it`
    : 'may have been made without it, and has not joined yet';
  return receipt(`machine ${name}`, isLoaded, evidence);
}

function receipt(verifier: string, isLoaded: boolean, evidence: string): Receipt {
  return { verifier, node: undefined, kind: 'started', isLoaded, evidence, isWaived: false };
}

function holds(cas: readonly Certificate[], { der }: Certificate): boolean {
  return cas.some(other => other.der.equals(der));
}

/** Machines on their way. A cluster without the machine API makes none that anybody would know of. */
async function joining(kube: Kube): Promise<Machine[]> {
  try {
    const { items } = await listAll(kube, MACHINES, { namespace: MACHINE_API_NAMESPACE });
    return items.filter(({ status }) => status?.nodeRef === undefined && !OVER.has(status?.phase ?? ''));
  } catch (error) {
    if (isNotFound(error)) return [];
    throw error;
  }
}

/** When anybody last wrote it. */
function lastWrite({ metadata }: Secret): Date | undefined {
  const times = (metadata?.managedFields ?? []).map(({ time }) => parseRfc3339(time ?? ''));
  const known = times.filter(time => time !== undefined).map(time => floorToMs(time).getTime());
  return known.length === 0 ? undefined : new Date(Math.max(...known));
}

async function shownLeaf(kube: Kube): Promise<readonly Certificate[]> {
  const serving = await getIfPresent(kube, SECRETS, JOIN_SERVING);
  return certificatesIn(serving && dataText(serving, TLS_CERT));
}
