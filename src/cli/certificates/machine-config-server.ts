import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { BUNDLE_KEY } from '../../certrotation/bundle.ts';
import type { RotationUnit } from '../../certrotation/config.ts';
import type { Decision } from '../../certrotation/decision.ts';
import { dataText, TLS_CERT } from '../../certrotation/secret.ts';
import { decideSigner } from '../../certrotation/signer.ts';
import { decideTarget } from '../../certrotation/target.ts';
import { certificatesIn } from '../../inventory/relations.ts';
import { isNotFound } from '../../kube/error.ts';
import { getIfPresent } from '../../kube/get.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, PODS, SECRETS } from '../../kube/resource.ts';
import { MCO_NAMESPACE } from '../../machine-config-api/names.ts';
import { ownCertificate } from '../../pki/authority.ts';
import { mergeBundle } from '../../pki/bundle.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { issueSigner } from '../../pki/issue.ts';
import { systemKeys } from '../../pki/keys.ts';
import { withCluster } from '../cluster.ts';
import { confirm } from '../confirm.ts';
import { UsageError } from '../usage-error.ts';
import type { MachineConfigServerFlags } from './command.ts';
import { currentJoinCa, distributeJoinCa, JOIN_SERVING, JOIN_SIGNER } from './join-ca.ts';
import { type Outcome, printOutcomes, verbFormat } from './outcome.ts';
import { handServerOver, SERVER_LIFETIME, serverNames, serverUnit } from './server-hand-over.ts';

const SIGNER = { kind: 'Secret', ...JOIN_SIGNER };
const SERVING = { kind: 'Secret', ...JOIN_SERVING };
const POD_SELECTOR = 'k8s-app=machine-config-server';
/** `regenerate-machine-config-server-serving-cert`. */
export async function runRegenerateServingCert(flags: MachineConfigServerFlags): Promise<void> {
  const updateIgnition = booleanFrom('--update-ignition', flags.updateIgnition);
  await reporting(flags, async (kube, outcomes) => {
    const unit = serverUnit(await serverNames(kube));
    const { updateRootCa = false } = flags;
    if (flags.dryRun) return foresee(kube, unit, { updateIgnition, updateRootCa }, outcomes);
    await confirm(
      'The certificate that new machines meet first may be replaced, and its server is restarted.',
      flags.yes,
    );
    await handServerOver(kube, { unit, updateIgnition, updateRootCa }, outcomes);
    await restartServer(kube, outcomes);
  });
}

/** `update-ignition-ca-bundle-for-machine-config-server`. */
export async function runUpdateIgnition(flags: MachineConfigServerFlags): Promise<void> {
  const { dryRun = false, updateRootCa = false } = flags;
  await reporting(flags, async (kube, outcomes) => {
    if (!dryRun) await confirm('The CAs that new machines trust from their first boot on will change.', flags.yes);
    outcomes.push(...(await distributeJoinCa(kube, await currentJoinCa(kube), { dryRun, updateRootCa })));
  });
}

/** Runs a verb over a cluster and prints what it did, also where it could not go on to the end. */
async function reporting(
  flags: MachineConfigServerFlags,
  work: (kube: Kube, outcomes: Outcome[]) => Promise<void>,
): Promise<void> {
  const format = verbFormat(flags.output);
  const { dryRun = false, verbose = false } = flags;
  await withCluster(flags, async ({ kube }) => {
    const outcomes: Outcome[] = [];
    try {
      await work(kube, outcomes);
    } catch (error) {
      if (outcomes.length > 0) printOutcomes(outcomes, format, { dryRun, verbose });
      throw error;
    }
    printOutcomes(outcomes, format, { dryRun, verbose });
  });
}

/** What would happen, by the rules themselves. Nothing is written. */
async function foresee(
  kube: Kube,
  unit: RotationUnit,
  { updateIgnition, updateRootCa }: { updateIgnition: boolean; updateRootCa: boolean },
  outcomes: Outcome[],
): Promise<void> {
  const [signer, bundle, serving] = await Promise.all([
    getIfPresent(kube, SECRETS, JOIN_SIGNER),
    getIfPresent(kube, CONFIG_MAPS, JOIN_SIGNER),
    getIfPresent(kube, SECRETS, SERVING),
  ]);
  const now = new Date();
  const { decisions, ca } = await foreseen(unit, { signer, bundle, serving }, now);
  outcomes.push(...decisions);
  // A real run would end here too.
  if (ca === undefined) return;
  if (updateIgnition) outcomes.push(...(await distributeJoinCa(kube, ca, { dryRun: true, updateRootCa })));
  for (const object of await serverPods(kube)) outcomes.push({ object, outcome: 'done', text: 'would be deleted' });
}

interface ServerObjects {
  readonly signer: Secret | undefined;
  readonly bundle: ConfigMap | undefined;
  readonly serving: Secret | undefined;
}

/** What becomes of signer and certificate, and the CA that machines would get; none where the signer needs a person. */
export async function foreseen(
  unit: RotationUnit,
  { signer, bundle, serving }: ServerObjects,
  now: Date,
): Promise<{ decisions: Outcome[]; ca?: Certificate | undefined }> {
  const decision = decideSigner(signer, SERVER_LIFETIME, now);
  const stored = certificatesIn(signer && dataText(signer, TLS_CERT));
  if (decision.action === 'fail') return { decisions: [foreseenOutcome(SIGNER, decision)] };
  const chain = decision.action === 'keep' ? stored : [await standInFor(now)];
  const [ca] = chain as [Certificate];
  const trusted = mergeBundle(certificatesIn(bundle?.data?.[BUNDLE_KEY]), ca, now);
  const next = decideTarget(serving, chain, trusted, unit.target, now);
  const decisions = [foreseenOutcome(SIGNER, decision), foreseenOutcome(SERVING, next)];
  const isHandedOver = decision.action === 'regenerate' && stored.length > 0;
  if (!isHandedOver) return { decisions, ca };
  const text = ['would be handed over to a new one', 'would be made anew when machines have the new CA'];
  return { decisions: decisions.map((outcome, index) => ({ ...outcome, text: text[index] ?? outcome.text })), ca };
}

/** A CA in the place of the one that a real run would make: rules and user data look at it, nobody keeps it. */
async function standInFor(now: Date): Promise<Certificate> {
  const commonName = `${JOIN_SIGNER.namespace}_${JOIN_SIGNER.name}@${Math.floor(now.getTime() / 1000)}`;
  const lifetimeMs = SERVER_LIFETIME.validityMs;
  return ownCertificate(await issueSigner({ commonName, lifetimeMs, now, keys: systemKeys, algorithm: 'P-256' }));
}

function foreseenOutcome(object: Outcome['object'], decision: Decision): Outcome {
  if (decision.action === 'fail') return { object, outcome: 'failed', text: decision.error };
  if (decision.action === 'keep') return { object, outcome: 'unchanged', text: 'would stay', isNoted: true };
  return { object, outcome: 'done', text: 'would be made anew' };
}

/** Deletes the pods, so that they start anew; one that is gone by itself is as good. */
export async function restartServer(kube: Kube, outcomes: Outcome[]): Promise<void> {
  for (const object of await serverPods(kube)) {
    const { namespace, name } = object;
    try {
      await kube.delete(PODS, { namespace, name });
      outcomes.push({ object, outcome: 'done', text: 'deleted' });
    } catch (error) {
      if (isNotFound(error)) outcomes.push({ object, outcome: 'unchanged', text: 'it is gone already' });
      else outcomes.push({ object, outcome: 'failed', text: (error as Error).message });
    }
  }
}

async function serverPods(kube: Kube): Promise<Outcome['object'][]> {
  const { items } = await kube.list(PODS, { namespace: MCO_NAMESPACE, labelSelector: POD_SELECTOR });
  return items.map(({ metadata }) => ({ kind: 'Pod', namespace: MCO_NAMESPACE, name: metadata?.name ?? '' }));
}

function booleanFrom(flag: string, value: boolean | string | undefined): boolean {
  if (value === undefined || value === true || value === 'true') return true;
  if (value === false || value === 'false') return false;
  throw new UsageError(`${flag} must be true or false, found "${value}"`);
}
