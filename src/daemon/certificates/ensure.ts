import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import type { Host } from '../../host/port.ts';
import { configMapBytes } from '../../machine-config-api/config-map.ts';
import type { ControllerConfigSpec } from '../../machine-config-api/controller-config.ts';
import { CA_BUNDLE_KEY, KUBECONFIG_DATA } from '../../machine-config-api/names.ts';
import { serverCaDigest } from '../../machine-config-api/server-ca-digest.ts';
import type { ShakeHands } from './api-trust.ts';
import { ensureCaFile } from './ca-file.ts';
import type { Achieved } from './decide.ts';
import { CLOUD_CA, KUBELET_CA, OS_PULL_SECRET, OSTREE_AUTH } from './paths.ts';
import { attempt, type CertificateProblem, InputError } from './problem.ts';
import { linkOsTreeAuth, type OsPullSecret } from './pull-secret.ts';
import { decideRegistryCas, ensureRegistryCas } from './registry-ca.ts';
import { ensureServerCa, ServerCaNotTaken } from './server-ca.ts';

export interface CertificateInputs {
  readonly spec: ControllerConfigSpec;
  /** ConfigMap `kubeconfig-data`. */
  readonly kubeconfigData: ConfigMap | undefined;
  /** A rotation of the server CA waits for this node. */
  readonly isRotationOpen: boolean;
  readonly nodeLabels: Readonly<Record<string, string>>;
  /** How the API server is asked for its certificate; absent: it is not. */
  readonly shakeHands?: ShakeHands | undefined;
  /** Asked before the kubelet is restarted; absent: it may be at any time. */
  readonly mayRestart?: (() => Promise<boolean>) | undefined;
}

export interface CertificateOutcome extends Achieved {
  readonly written: readonly string[];
  readonly problems: readonly CertificateProblem[];
  readonly kubeletRestarted: boolean;
  /** It has to be restarted, and something else on the node comes first. */
  readonly isRestartHeld: boolean;
  /** CAs that have left the bundle and that the API server still needs. */
  readonly keptServerCas: number;
}

/**
 * Brings everything the certificate writer keeps into the state of its inputs, by content: what is right is not touched. CAs
 * come first and the pull secret last; no part waits for another one to succeed (spec 60, 4.3 with D-1).
 */
export async function ensureCertificates(
  host: Host,
  pullSecret: OsPullSecret,
  inputs: CertificateInputs,
): Promise<CertificateOutcome> {
  const { files } = host;
  const { spec } = inputs;
  const problems: CertificateProblem[] = [];
  const written: string[] = [];
  const caFile = async (file: Parameters<typeof ensureCaFile>[1], data: string | null | undefined) => {
    const isWritten = await attempt(file.part, problems, () => ensureCaFile(files, file, bytesOf(data), problems));
    if (isWritten) written.push(file.path);
  };
  await caFile({ path: KUBELET_CA, part: 'kubelet-ca' }, spec.kubeAPIServerServingCAData);
  await caFile({ path: CLOUD_CA, part: 'cloud-ca', isOptional: true }, spec.cloudProviderCAData);
  const registries = decideRegistryCas(spec.imageRegistryBundleData ?? [], spec.imageRegistryBundleUserData ?? []);
  written.push(...(await ensureRegistryCas(files, registries, problems)).written);
  const serverCa = await takeServerCa(host, inputs, problems);
  written.push(...(serverCa?.written ?? []));
  await attempt('pull-secret', problems, async () => {
    const internal = bytesOf(spec.internalRegistryPullSecret);
    if (await pullSecret.sync({ labels: inputs.nodeLabels, internal })) written.push(OS_PULL_SECRET);
  });
  await attempt('pull-secret', problems, async () => {
    if (host.os !== undefined && (await linkOsTreeAuth(files))) written.push(OSTREE_AUTH);
  });
  return {
    written,
    problems,
    // Wrong input is reported, and handled as far as it can be; only the host's refusal leaves something to do.
    isComplete: problems.every(({ part, isPassing }) => part === 'server-ca' || !isPassing),
    serverCaDigest: serverCa?.isHeld ? undefined : serverCa?.digest,
    kubeletRestarted: serverCa?.restarted ?? false,
    isRestartHeld: serverCa?.isHeld ?? false,
    keptServerCas: serverCa?.kept ?? 0,
  };
}

/** Undefined: there is none to take, or it could not be taken. */
async function takeServerCa(
  host: Host,
  { kubeconfigData, isRotationOpen, shakeHands, mayRestart }: CertificateInputs,
  problems: CertificateProblem[],
) {
  const data = kubeconfigData && configMapBytes(kubeconfigData, CA_BUNDLE_KEY);
  const isMissing = data === undefined && isRotationOpen;
  return attempt('server-ca', problems, async () => {
    if (isMissing) {
      const expected = `expected ${CA_BUNDLE_KEY} in configmap ${KUBECONFIG_DATA}`;
      throw new InputError('ServerCANotFound', `${expected}, found none; the rotation waits`);
    }
    if (data === undefined) return undefined;
    try {
      const taken = await ensureServerCa(host, data, problems, shakeHands, mayRestart);
      return { ...taken, digest: serverCaDigest(data) };
    } catch (error) {
      if (error instanceof ServerCaNotTaken) return undefined;
      throw error;
    }
  });
}

function bytesOf(data: string | null | undefined): Buffer {
  return Buffer.from(data ?? '', 'base64');
}
