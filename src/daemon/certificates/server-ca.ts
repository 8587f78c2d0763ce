import type { Host, HostFiles } from '../../host/port.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { type ShakeHands, stillNeeded } from './api-trust.ts';
import { type Bundle, bundleText, endingInLineFeed, readBundle, within, without } from './bundle.ts';
import { Kubeconfig } from './kubeconfig.ts';
import { KubeletRestart, type KubeletRestartDue } from './kubelet.ts';
import { KubeletCas } from './kubelet-cas.ts';
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
  /** Only what is not loaded yet asks for a restart, and what leaves asks for nothing (D-10). */
  readonly restart: KubeletRestartDue;
}

/** What a kubeconfig that trusts `current` needs to trust `wanted`; `loaded` is what of it the kubelet has read. */
export function decideServerCa(
  wanted: Bundle,
  current: Bundle,
  loaded: readonly Certificate[] = current.certificates,
): ServerCaDecision {
  const added = without(wanted, current);
  const removed = without(current, wanted);
  const unread = without(wanted, { certificates: loaded });
  const isDeferred = ({ subject }: Certificate) => DEFERRED_SIGNERS.some(name => subject.commonName.includes(name));
  const restart = unread.length === 0 ? 'none' : unread.every(isDeferred) ? 'deferred' : 'now';
  return { added, removed, write: added.length + removed.length > 0, restart };
}

export interface ServerCaOutcome {
  readonly written: readonly string[];
  readonly restarted: boolean;
  /** The kubelet needs a restart, and something else on the node is being restarted (spec 90, HO-5). */
  readonly isHeld: boolean;
  /** CAs that have left the bundle and stay in kubeconfigs, because the API server may still need them (spec 90, HO-8). */
  readonly kept: number;
}

/**
 * Brings the server CA into both kubeconfigs of the kubelet and restarts it where that is needed. What is to be done follows
 * from the disk each time, so a pass that died anywhere is simply repeated; only a restart that has begun, and what the kubelet was
 * started with, are recorded. Throws where the bundle is not in place and in use in the end, unless the restart is held up by others. Without
 * `shakeHands` nobody asks the API server which CAs it still needs.
 */
export async function ensureServerCa(
  host: Host,
  data: Uint8Array,
  problems: CertificateProblem[],
  shakeHands?: ShakeHands,
  mayRestart: () => Promise<boolean> = async () => true,
): Promise<ServerCaOutcome> {
  const bundle = readBundle(data);
  if (bundle.certificates.length === 0) {
    throw new InputError(
      'EmptyTrustBundle',
      'the bundle in kubeconfig-data holds no certificate; kubeconfigs were kept',
    );
  }
  reportMalformed(bundle, problems);
  const { files } = host;
  const kubelet = new KubeletRestart(host);
  const failures: CertificateProblem[] = [];
  const live = await attempt('server-ca', failures, () => readKubeconfig(files, LIVE_KUBECONFIG));
  const isLiveReadable = failures.length === 0;
  const bootstrap = await attempt('server-ca', failures, () => readKubeconfig(files, BOOTSTRAP_KUBECONFIG));
  // The kubelet works with the live one; before that exists, with the other.
  const used = live ?? bootstrap;
  const kept = await keptOf(used, bundle, shakeHands);
  const wanted = { ...bundle, certificates: [...bundle.certificates, ...kept] };
  const due = await kubelet.due();
  const loaded = await loadedOf(host, isLiveReadable ? used : undefined, wanted, due);
  const needed = moreUrgent(due, used === undefined ? 'none' : decideServerCa(wanted, used.current, loaded).restart);
  if (needed !== due) await kubelet.record(needed);
  const written: string[] = [];
  const place = async (found: FoundKubeconfig | undefined) => {
    const content = found && contentFor(found, wanted);
    if (found === undefined || content === undefined) return;
    await files.write(found.path, content, { mode: SECRET_MODE, takesOver: true });
    written.push(found.path);
  };
  await attempt('server-ca', failures, () => place(bootstrap));
  const isDue = needed === 'now' && isLiveReadable;
  const restarts = isDue && (await mayRestart());
  if (restarts) {
    const rewrite = async () => {
      const found = await readKubeconfig(files, LIVE_KUBECONFIG);
      await place(found);
      const isInUse = found !== undefined || (bootstrap !== undefined && failures.length === 0);
      return isInUse ? wanted.certificates : [];
    };
    await attempt('server-ca', failures, () => kubelet.restart(rewrite, live && contentFor(live, wanted)));
  } else if (!isDue) await attempt('server-ca', failures, () => place(live));
  problems.push(...failures);
  if (failures.length > 0) throw new ServerCaNotTaken();
  return { written, restarted: restarts, isHeld: isDue && !restarts, kept: kept.length };
}

/** Carries out a restart that was put off, with the server CA this node has on disk: it needs no API. */
export async function restartForKnownServerCa(host: Host, shakeHands?: ShakeHands): Promise<void> {
  const { files } = host;
  const kubelet = new KubeletRestart(host);
  await kubelet.record('now');
  const bytes = await files.read(BOOTSTRAP_KUBECONFIG, LARGEST_FILE_BYTES);
  if (bytes === undefined) {
    const asItIs = async () => (await readKubeconfig(files, LIVE_KUBECONFIG))?.current.certificates ?? [];
    return kubelet.restart(asItIs, undefined);
  }
  const problems: CertificateProblem[] = [];
  try {
    await ensureServerCa(host, new Kubeconfig(bytes, BOOTSTRAP_KUBECONFIG).authorities, problems, shakeHands);
  } catch (error) {
    throw new Error(problems.map(({ message }) => message).join('; '), { cause: error });
  }
}

/** The reasons are among the problems already. */
export class ServerCaNotTaken extends Error {
  override readonly name = 'ServerCaNotTaken';
}

interface FoundKubeconfig {
  readonly path: string;
  readonly bytes: Buffer;
  readonly kubeconfig: Kubeconfig;
  readonly current: Bundle;
  readonly isPrivate: boolean;
}

/** Undefined where there is no such file: nothing is trusted by it. */
async function readKubeconfig(files: HostFiles, path: string): Promise<FoundKubeconfig | undefined> {
  const bytes = await files.read(path, LARGEST_FILE_BYTES);
  if (bytes === undefined) return undefined;
  const kubeconfig = new Kubeconfig(bytes, path);
  const isPrivate = (await files.stat(path))?.mode === SECRET_MODE;
  return { path, bytes, kubeconfig, current: readBundle(kubeconfig.authorities), isPrivate };
}

/** Undefined: the file is right. */
function contentFor({ bytes, kubeconfig, current, isPrivate }: FoundKubeconfig, wanted: Bundle): Buffer | undefined {
  if (decideServerCa(wanted, current).write) return endingInLineFeed(kubeconfig.withAuthorities(bundleText(wanted)));
  return isPrivate ? undefined : bytes;
}

/** The CAs that leave the bundle and stay in kubeconfigs. */
async function keptOf(
  used: FoundKubeconfig | undefined,
  bundle: Bundle,
  shakeHands: ShakeHands | undefined,
): Promise<readonly Certificate[]> {
  if (used === undefined || shakeHands === undefined) return [];
  return stillNeeded(used.kubeconfig.endpoint, bundle.certificates, without(used.current, bundle), shakeHands);
}

/** What the kubelet has loaded, put on record without what is about to leave its file; undefined where nobody can know. */
async function loadedOf(
  host: Host,
  used: FoundKubeconfig | undefined,
  wanted: Bundle,
  due: KubeletRestartDue,
): Promise<readonly Certificate[] | undefined> {
  if (used === undefined) return undefined;
  const cas = new KubeletCas(host);
  const loaded = await cas.loaded(used.current.certificates, due);
  if (loaded !== undefined) await cas.keep(within({ certificates: loaded }, wanted));
  return loaded;
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
