import { seconds } from '../../kube/duration.ts';
import { formatRfc3339 } from '../../kube/time.ts';
import { caDigest, issuerKey } from '../../trust/receipts.ts';
import type { SignerName } from '../chains.ts';
import type { LeafSight, NodeReport, ProcessSight, SignerSight } from '../report.ts';
import type { FileText } from './file-text.ts';
import { leafProblem } from './judge.ts';
import { KUBELET_CONF, kubeconfigPlace } from './places.ts';
import { behindOf, digestsOf, type KubeconfigFile, type NodeSight, type SignerFiles, type StaticPod } from './sight.ts';

const KUBELET = 'kubelet';
/** The kernel tells the start of a process by a moment of boot that is known to a second or two only. */
const UNSURE_MS = seconds(3);

export interface ReportWords {
  readonly done: string | undefined;
  readonly problem: string | undefined;
  /** What was said last. */
  readonly previous: NodeReport | undefined;
}

/** What is told of a node: everything that may be known by all, and no key (spec 80; `NodeReport`). */
export function reportFrom(sight: NodeSight, { done, problem, previous }: ReportWords): NodeReport {
  const { role, etcd, signers, serviceAccount, leaves } = sight;
  const signing = signingOf(sight);
  return {
    role,
    etcd,
    ...(done !== undefined && { done }),
    ...(problem !== undefined && { problem }),
    signers: Object.fromEntries([...signers].map(([name, files]) => [name, signerSight(files)])),
    ...(signing !== undefined && { signing }),
    ...(serviceAccount !== undefined && {
      serviceAccount: {
        ...(serviceAccount.signs !== undefined && { signs: serviceAccount.signs }),
        accepts: serviceAccount.accepts,
      },
    }),
    kubeconfigs: Object.fromEntries([...sight.kubeconfigs].map(([name, file]) => [name, trustedBy(sight, file)])),
    leaves: Object.fromEntries([...leaves].map(([name, leaf]) => [name, leafSight(sight, leaf)])),
    processes: processesOf(sight, previous),
  };
}

function signerSight({ cas, key, keyFile }: SignerFiles): SignerSight {
  const [first] = cas;
  return {
    cas: digestsOf(cas),
    key: key !== undefined ? 'fits' : keyFile === undefined ? 'none' : 'wrong',
    ...(first !== undefined && { ends: formatRfc3339(first.notAfter) }),
  };
}

/** Those in the file; of files that it may name we write `ca.crt` alone. */
function trustedBy({ signers }: NodeSight, { config, authorities }: KubeconfigFile): readonly string[] {
  const ca = signers.get('ca');
  return digestsOf(config.authorityFile !== undefined && config.authorityFile === ca?.file.path ? ca.cas : authorities);
}

function leafSight(sight: NodeSight, leaf: Parameters<typeof leafProblem>[1]): LeafSight {
  const { certificate } = leaf;
  const [issuer, problem] = [issuerKey(certificate), leafProblem(sight, leaf)];
  return {
    digest: caDigest(certificate),
    ...(issuer !== undefined && { issuer }),
    notBefore: formatRfc3339(certificate.notBefore),
    notAfter: formatRfc3339(certificate.notAfter),
    ...(problem !== undefined && { problem }),
  };
}

/** What kube-controller-manager signs with, by its manifest and what is in the file that it names. */
function signingOf({ pods, places, signers, signing }: NodeSight): NodeReport['signing'] {
  const flags = pods.get('kube-controller-manager')?.manifest.flags;
  const path = flags?.get('cluster-signing-cert-file');
  const files = [signers.get('ca'), signing].find(pair => pair?.file.path === path);
  const [ca] = files?.cas ?? [];
  return ca && { ca: caDigest(ca), isSeparate: path === places.signing.certificate };
}

function processesOf(sight: NodeSight, previous: NodeReport | undefined): Record<string, ProcessSight> {
  const processes: Record<string, ProcessSight> = {};
  for (const [component, pod] of sight.pods) {
    if (pod.running === undefined) continue;
    const behind = behindOf(pod);
    processes[component] = {
      startedAt: formatRfc3339(pod.running.startedAt),
      behind: behind.map(({ path }) => path),
      began: beganOf(sight, pod, behind),
    };
  }
  const { startedAt, mustRestart } = sight.kubelet;
  const kubeconfig = sight.kubeconfigs.get(KUBELET_CONF);
  if (startedAt !== undefined) {
    processes[KUBELET] = {
      startedAt: settledTime(startedAt, previous?.processes[KUBELET]?.startedAt),
      behind: mustRestart ? [kubeconfigPlace(KUBELET_CONF)] : [],
      began: mustRestart || kubeconfig === undefined ? {} : { ca: digestsOf(kubeconfig.authorities) },
    };
  }
  return processes;
}

/** A moment that is not known exactly is told as it was told before. */
function settledTime(startedAt: Date, before: string | undefined): string {
  const isSame = before !== undefined && Math.abs(Date.parse(before) - startedAt.getTime()) <= UNSURE_MS;
  return isSame ? before : formatRfc3339(startedAt);
}

/** Of each CA that stands in files which it reads when it starts: what all these files held when it did. */
function beganOf(sight: NodeSight, { inputs }: StaticPod, behind: readonly FileText[]): ProcessSight['began'] {
  const read = new Map<SignerName, (readonly string[])[]>();
  const add = (name: SignerName, file: FileText, cas: readonly string[]) =>
    read.set(name, [...(read.get(name) ?? []), behind.includes(file) ? [] : cas]);
  for (const file of inputs) {
    for (const [name, signer] of sight.signers) {
      if (signer.file.path === file.path) add(name, file, digestsOf(signer.cas));
    }
    for (const kubeconfig of sight.kubeconfigs.values()) {
      if (kubeconfig.file.path === file.path) add('ca', file, digestsOf(kubeconfig.authorities));
    }
  }
  return Object.fromEntries(
    [...read].map(([name, lists]) => {
      const [first = [], ...others] = lists;
      return [name, first.filter(ca => others.every(list => list.includes(ca)))];
    }),
  );
}
