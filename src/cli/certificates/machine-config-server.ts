import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { BUNDLE_KEY } from '../../certrotation/bundle.ts';
import { rotationUnit } from '../../certrotation/config.ts';
import { servingCreator } from '../../certrotation/creator.ts';
import { liveObjects } from '../../certrotation/ensure.ts';
import { ObjectLocks } from '../../certrotation/locks.ts';
import { dataText, TLS_CERT } from '../../certrotation/secret.ts';
import { decideSigner } from '../../certrotation/signer.ts';
import { decideTarget } from '../../certrotation/target.ts';
import { syncUnit } from '../../certrotation/unit.ts';
import { systemClock } from '../../kube/clock.ts';
import { days } from '../../kube/duration.ts';
import { getIfPresent } from '../../kube/get.ts';
import { listAll } from '../../kube/list.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, PODS, SECRETS } from '../../kube/resource.ts';
import { CLUSTER, INFRASTRUCTURES, internalUrlOf } from '../../kube-apiserver/resources.ts';
import { hostOfUrl } from '../../kube-apiserver/rotation/hostnames.ts';
import { KUBE_SYSTEM_NAMESPACE, MACHINE_API_NAMESPACE, MCO_NAMESPACE } from '../../machine-config-api/names.ts';
import { unexpired } from '../../pki/bundle.ts';
import { systemKeys } from '../../pki/keys.ts';
import { encodeCertificates } from '../../pki/pem.ts';
import { withCluster } from '../cluster.ts';
import { confirm } from '../confirm.ts';
import { certificatesIn } from '../inventory/relations.ts';
import { visible } from '../table.ts';
import { UsageError } from '../usage-error.ts';
import type { MachineConfigServerFlags } from './command.ts';
import { type IgnitionUpdate, ignitionWithCa } from './ignition-ca.ts';

const SIGNER = { namespace: MCO_NAMESPACE, name: 'machine-config-server-ca' };
const SERVING = { namespace: MCO_NAMESPACE, name: 'machine-config-server-tls' };
const POD_SELECTOR = 'k8s-app=machine-config-server';
/** Ten years, replaced after nine (spec 70, 2.4). */
const LIFETIME = { validityMs: days(3650), refreshMs: days(3285) };
/** Their content is rendered by the machine-config operator itself. */
const MANAGED_USER_DATA = ['worker-user-data-managed', 'master-user-data-managed'];

type PlatformAddresses = Readonly<
  Record<string, { apiServerInternalIP?: string; apiServerInternalIPs?: readonly string[] } | undefined>
>;
const PLATFORMS_WITH_ADDRESSES = ['baremetal', 'ovirt', 'openstack', 'vsphere', 'nutanix'] as const;

/** `regenerate-machine-config-server-serving-cert`. */
export async function runRegenerateServingCert(flags: MachineConfigServerFlags): Promise<void> {
  const updateIgnition = booleanFrom('--update-ignition', flags.updateIgnition);
  await withCluster(flags, async ({ kube }) => {
    const hostnames = await serverNames(kube);
    const unit = rotationUnit({
      name: 'MachineConfigServer',
      signer: { ...SIGNER, ...LIFETIME },
      bundle: SIGNER,
      target: { ...SERVING, ...LIFETIME, creator: servingCreator({ hostnames }) },
    });
    if (flags.dryRun) {
      const [signer, serving] = [await getIfPresent(kube, SECRETS, SIGNER), await getIfPresent(kube, SECRETS, SERVING)];
      const now = new Date();
      const chain = certificatesIn(signer && dataText(signer, TLS_CERT));
      const bundle = certificatesIn((await getIfPresent(kube, CONFIG_MAPS, SIGNER))?.data?.[BUNDLE_KEY]);
      const decisions = {
        [SIGNER.name]: decideSigner(signer, LIFETIME, now),
        [SERVING.name]: decideTarget(serving, chain, bundle, unit.target, now),
      };
      for (const [name, decision] of Object.entries(decisions)) {
        say(
          decision.action === 'keep'
            ? `secret/${name} would stay`
            : `secret/${name} would be made anew (dry run: nothing was written)`,
        );
      }
      if (updateIgnition) await updateUserData(kube, flags);
      return;
    }
    await confirm(
      'The certificate that new machines meet first may be replaced, and its server is restarted.',
      flags.yes,
    );
    const rotation = {
      kube,
      objects: liveObjects(kube),
      clock: systemClock,
      keys: systemKeys,
      events: { event: () => {} },
      locks: new ObjectLocks(),
    };
    const result = await syncUnit(unit, rotation);
    if (result.outcome === 'lost')
      throw new Error(`somebody else wrote the ${result.object} at the same time: try again`);
    for (const part of ['signer', 'bundle', 'target'] as const) {
      const name =
        part === 'bundle' ? `configmap/${SIGNER.name}` : `secret/${part === 'signer' ? SIGNER.name : SERVING.name}`;
      say(`${name} ${result.regenerated.includes(part) ? 'regenerated' : 'unchanged'}`);
    }
    await restartServer(kube);
    if (updateIgnition) await updateUserData(kube, flags);
  });
}

/** `update-ignition-ca-bundle-for-machine-config-server`. */
export async function runUpdateIgnition(flags: MachineConfigServerFlags): Promise<void> {
  await withCluster(flags, async ({ kube }) => {
    if (!flags.dryRun)
      await confirm('The CA that new machines trust from their first boot on will be replaced.', flags.yes);
    await updateUserData(kube, flags);
  });
}

async function serverNames(kube: Kube): Promise<string[]> {
  const infrastructure = await getIfPresent(kube, INFRASTRUCTURES, CLUSTER);
  const host = infrastructure && hostOfUrl(internalUrlOf(infrastructure));
  if (host === undefined) throw new Error('infrastructures.config.openshift.io/cluster names no internal API URL');
  const platform = (infrastructure?.status?.platformStatus ?? {}) as PlatformAddresses;
  const addresses = PLATFORMS_WITH_ADDRESSES.flatMap(name => {
    const { apiServerInternalIPs, apiServerInternalIP } = platform[name] ?? {};
    return apiServerInternalIPs ?? (apiServerInternalIP ? [apiServerInternalIP] : []);
  });
  return [...new Set([host, ...addresses])];
}

async function restartServer(kube: Kube): Promise<void> {
  const { items } = await kube.list(PODS, { namespace: MCO_NAMESPACE, labelSelector: POD_SELECTOR });
  for (const { metadata } of items) {
    await kube.delete(PODS, { namespace: MCO_NAMESPACE, name: metadata?.name ?? '' });
    say(`pod/${metadata?.name} deleted`);
  }
}

async function updateUserData(kube: Kube, { dryRun = false }: MachineConfigServerFlags): Promise<void> {
  const ca = await joinAuthorities(kube);
  const { items } = await listAll(kube, SECRETS, { namespace: MACHINE_API_NAMESPACE });
  for (const secret of items.filter(({ metadata }) => !MANAGED_USER_DATA.includes(metadata?.name ?? ''))) {
    const name = `secret/${secret.metadata?.name}`;
    const update = ignitionOf(secret, ca);
    if (update.do === 'skip') continue;
    if (update.do === 'refuse') {
      // One Secret that cannot be read does not keep the others from being right (spec 70, 9.8).
      process.stderr.write(`error: ${visible(`${name} in ${MACHINE_API_NAMESPACE}: ${update.because}`)}\n`);
      process.exitCode = 1;
    } else if (update.do === 'keep') {
      say(`${name} is current`);
    } else {
      const userData = Buffer.from(update.text).toString('base64');
      await kube.update(SECRETS, { ...secret, data: { ...secret.data, userData } }, { dryRun });
      say(`${name} updated${dryRun ? ' (dry run: nothing was written)' : ''}`);
    }
  }
  await updateRootCa(kube, ca, dryRun);
}

/** The new CA with those that are still valid beside it, until the server has switched (spec 70, 9.9). */
async function joinAuthorities(kube: Kube): Promise<string> {
  const signer = await getIfPresent(kube, SECRETS, SIGNER);
  const [current] = certificatesIn(signer && dataText(signer, TLS_CERT));
  if (current === undefined) throw new Error(`secret/${SIGNER.name} in ${SIGNER.namespace} holds no CA certificate`);
  const bundle = certificatesIn((await getIfPresent(kube, CONFIG_MAPS, SIGNER))?.data?.[BUNDLE_KEY]);
  const others = unexpired(bundle, new Date()).filter(({ der }) => !der.equals(current.der));
  return encodeCertificates([current, ...others]);
}

function ignitionOf(secret: Secret, ca: string): IgnitionUpdate {
  const userData = dataText(secret, 'userData');
  return userData === undefined ? { do: 'skip', because: 'it has no userData' } : ignitionWithCa(userData, ca);
}

/** Bare metal machines take the CA from here as well; a change reboots every node (spec 70, 2.5). */
async function updateRootCa(kube: Kube, ca: string, dryRun: boolean): Promise<void> {
  const infrastructure = await getIfPresent(kube, INFRASTRUCTURES, CLUSTER);
  if (infrastructure?.status?.platformStatus?.type !== 'BareMetal') return;
  const key = { namespace: KUBE_SYSTEM_NAMESPACE, name: 'root-ca' };
  const found = await getIfPresent(kube, CONFIG_MAPS, key);
  if (found === undefined || found.data?.['ca.crt'] === ca) return;
  await kube.update(CONFIG_MAPS, { ...found, data: { ...found.data, 'ca.crt': ca } }, { dryRun });
  say(`configmap/root-ca updated: all nodes will reboot${dryRun ? ' (dry run: nothing was written)' : ''}`);
}

function booleanFrom(flag: string, value: boolean | string | undefined): boolean {
  if (value === undefined || value === true || value === 'true') return true;
  if (value === false || value === 'false') return false;
  throw new UsageError(`${flag} must be true or false, found "${value}"`);
}

function say(text: string): void {
  process.stdout.write(`${visible(text)}\n`);
}
