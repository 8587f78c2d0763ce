import type { Certificate } from '../../pki/certificate.ts';
import type { Host, HostFiles } from '../host.ts';
import { type Bundle, bundleText, endingInLineFeed, readBundle, without } from './bundle.ts';
import { Kubeconfig } from './kubeconfig.ts';
import { KubeletRestart, type KubeletRestartDue } from './kubelet.ts';
import { BOOTSTRAP_KUBECONFIG, LARGEST_FILE_BYTES, LIVE_KUBECONFIG, SECRET_MODE } from './paths.ts';
import { attempt, type CertificateProblem, InputError } from './problem.ts';

/** Signers of endpoints the kubelet does not talk to: their rotation need not restart it now (spec 60, 4.7.7). */
export const DEFERRED_SIGNERS: readonly string[] = [
  'kube-apiserver-localhost-signer',
  'openshift-kube-apiserver-operator_localhost-recovery-serving-signer',
  'kube-apiserver-lb-signer',
];

export interface ServerCaDecision {
  readonly added: readonly Certificate[];
  readonly removed: readonly Certificate[];
  /** Whether the kubeconfig is to be written: whenever the set differs, also when it only shrinks (D-8, D-9). */
  readonly write: boolean;
  /** Only what is added asks for a restart, and nothing added asks for nothing (D-10). */
  readonly restart: KubeletRestartDue;
}

/** What a kubeconfig that trusts `current` needs to trust `wanted`. */
export function decideServerCa(wanted: Bundle, current: Bundle): ServerCaDecision {
  const added = without(wanted, current);
  const removed = without(current, wanted);
  const isDeferred = ({ subject }: Certificate) => DEFERRED_SIGNERS.some(name => subject.commonName.includes(name));
  const restart = added.length === 0 ? 'none' : added.every(isDeferred) ? 'deferred' : 'now';
  return { added, removed, write: added.length + removed.length > 0, restart };
}

export interface ServerCaOutcome {
  readonly written: readonly string[];
  readonly restarted: boolean;
}

/**
 * Brings the server CA into both kubeconfigs of the kubelet and restarts it where that is needed. What is to be done follows
 * from the disk each time, so a pass that died anywhere is simply repeated; only a restart that has begun is recorded. Throws
 * where the bundle is not in place and in use in the end.
 */
export async function ensureServerCa(
  host: Host,
  data: Uint8Array,
  problems: CertificateProblem[],
): Promise<ServerCaOutcome> {
  const wanted = readBundle(data);
  if (wanted.certificates.length === 0) {
    throw new InputError(
      'EmptyTrustBundle',
      'the bundle in kubeconfig-data holds no certificate; kubeconfigs were kept',
    );
  }
  reportMalformed(wanted, problems);
  const { files } = host;
  const kubelet = new KubeletRestart(host);
  const failures: CertificateProblem[] = [];
  const live = await attempt('server-ca', failures, () => planFor(files, LIVE_KUBECONFIG, wanted));
  const isLiveReadable = failures.length === 0;
  const bootstrap = await attempt('server-ca', failures, () => planFor(files, BOOTSTRAP_KUBECONFIG, wanted));
  const due = await kubelet.due();
  // The kubelet works with the live one; before that exists, with the other.
  const needed = moreUrgent(due, (live ?? bootstrap)?.restart ?? 'none');
  if (needed !== due) await kubelet.record(needed);
  const written: string[] = [];
  const place = async (plan: Plan | undefined) => {
    if (plan?.content === undefined) return;
    await files.write(plan.path, plan.content, { mode: SECRET_MODE, takesOver: true });
    written.push(plan.path);
  };
  await attempt('server-ca', failures, () => place(bootstrap));
  const restarts = needed === 'now' && isLiveReadable;
  if (restarts) {
    const rewrite = async () => place(await planFor(files, LIVE_KUBECONFIG, wanted));
    await attempt('server-ca', failures, () => kubelet.restart(rewrite, live?.content));
  } else await attempt('server-ca', failures, () => place(live));
  problems.push(...failures);
  if (failures.length > 0) throw new ServerCaNotTaken();
  return { written, restarted: restarts };
}

/** Carries out a restart that was put off, with the server CA this node has on disk: it needs no API. */
export async function restartForKnownServerCa(host: Host): Promise<void> {
  const kubelet = new KubeletRestart(host);
  await kubelet.record('now');
  const bytes = await host.files.read(BOOTSTRAP_KUBECONFIG, LARGEST_FILE_BYTES);
  if (bytes === undefined) return kubelet.restart(async () => {}, undefined);
  const problems: CertificateProblem[] = [];
  try {
    await ensureServerCa(host, new Kubeconfig(bytes, BOOTSTRAP_KUBECONFIG).authorities, problems);
  } catch (error) {
    throw new Error(problems.map(({ message }) => message).join('; '), { cause: error });
  }
}

/** The reasons are among the problems already. */
export class ServerCaNotTaken extends Error {
  override readonly name = 'ServerCaNotTaken';
}

interface Plan {
  readonly path: string;
  readonly restart: KubeletRestartDue;
  /** Undefined: the file is right. */
  readonly content: Buffer | undefined;
}

/** Undefined where there is no such file: nothing is trusted by it. */
async function planFor(files: HostFiles, path: string, wanted: Bundle): Promise<Plan | undefined> {
  const bytes = await files.read(path, LARGEST_FILE_BYTES);
  if (bytes === undefined) return undefined;
  const kubeconfig = new Kubeconfig(bytes, path);
  const { write, restart } = decideServerCa(wanted, readBundle(kubeconfig.authorities));
  if (write) return { path, restart, content: endingInLineFeed(kubeconfig.withAuthorities(bundleText(wanted))) };
  const isPrivate = (await files.stat(path))?.mode === SECRET_MODE;
  return { path, restart, content: isPrivate ? undefined : bytes };
}

function moreUrgent(a: KubeletRestartDue, b: KubeletRestartDue): KubeletRestartDue {
  return URGENCY.indexOf(a) > URGENCY.indexOf(b) ? a : b;
}

const URGENCY: readonly KubeletRestartDue[] = ['none', 'deferred', 'now'];

function reportMalformed({ malformed, certificates }: Bundle, problems: CertificateProblem[]): void {
  if (malformed === 0) return;
  const message = `Malformed Cert, not syncing: ${malformed} of ${malformed + certificates.length} parts of kubeconfig-data`;
  problems.push({ part: 'server-ca', code: 'MalformedCertificate', message, isPassing: false });
}
