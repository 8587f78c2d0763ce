import { posix } from 'node:path';
import type { Certificate } from '../../pki/certificate.ts';
import { caDigest, type NodeReceipt } from '../../trust/receipts.ts';
import type { Host, HostFiles } from '../host.ts';
import { readBundle } from './bundle.ts';
import { Kubeconfig } from './kubeconfig.ts';
import { KubeletRestart } from './kubelet.ts';
import { KubeletCas } from './kubelet-cas.ts';
import { BOOTSTRAP_KUBECONFIG, LARGEST_FILE_BYTES, LIVE_KUBECONFIG, NODE_KUBECONFIGS } from './paths.ts';

/** What a node can say of itself, and the files that this depends on besides the kubeconfigs. */
export interface FoundReceipts {
  readonly receipts: readonly NodeReceipt[];
  readonly caFiles: readonly string[];
}

/** The processes by the names they have in the trust graph. */
const KUBELET_PROCESS = 'kubelet';
const NODE_ADMINISTRATOR = 'node administrator';
const SUFFIX = '.kubeconfig';
/** A control-plane node has four. */
const MOST_NODE_KUBECONFIGS = 16;

/**
 * Which CAs those who verify the API server on this node have loaded (spec 90, section 3): the kubelet those it was started with, an
 * administrator those in the kubeconfig that he will open. What cannot be read is left out: nothing is said rather than something wrong.
 */
export async function findReceipts(host: Host): Promise<FoundReceipts> {
  const kubelet = await kubeletReceipt(host).catch(() => undefined);
  const names = (await host.files.list(NODE_KUBECONFIGS).catch(() => undefined)) ?? [];
  const administrators = await Promise.all(
    names
      .filter(name => name.endsWith(SUFFIX))
      .slice(0, MOST_NODE_KUBECONFIGS)
      .map(async name => {
        const found = await authoritiesIn(host.files, `${NODE_KUBECONFIGS}/${name}`);
        return found && { ...found, receipt: receiptOf(NODE_ADMINISTRATOR, 'on-use', found, found.cas) };
      }),
  );
  const found = [kubelet, ...administrators].filter(one => one !== undefined);
  return {
    receipts: found.flatMap(({ receipt }) => receipt ?? []),
    caFiles: found.flatMap(({ caFile }) => caFile ?? []),
  };
}

async function kubeletReceipt(host: Host): Promise<(Authorities & { receipt: NodeReceipt | undefined }) | undefined> {
  const { files } = host;
  const isThere = async (path: string) => (await files.stat(path).catch(() => undefined)) !== undefined;
  const path = (await isThere(LIVE_KUBECONFIG)) ? LIVE_KUBECONFIG : BOOTSTRAP_KUBECONFIG;
  const found = await authoritiesIn(files, path);
  if (found === undefined) return undefined;
  const kubelet = new KubeletRestart(host);
  const loaded = await new KubeletCas(host).loaded(found.cas, await kubelet.due());
  // A kubelet that is not there yet reads the file when it comes.
  if (loaded?.length !== found.cas.length && !(await kubelet.isThere())) {
    return { ...found, receipt: receiptOf(KUBELET_PROCESS, 'on-use', found, found.cas) };
  }
  return { ...found, receipt: loaded && receiptOf(KUBELET_PROCESS, 'started', found, loaded) };
}

interface Authorities {
  readonly path: string;
  readonly cas: readonly Certificate[];
  /** The file that they are in where that is another one. */
  readonly caFile?: string | undefined;
}

/** The CAs of a kubeconfig; undefined where nobody could verify anything with it. */
async function authoritiesIn(files: HostFiles, path: string): Promise<Authorities | undefined> {
  try {
    const bytes = await files.read(path, LARGEST_FILE_BYTES);
    if (bytes === undefined) return undefined;
    const kubeconfig = new Kubeconfig(bytes, path);
    const { authorityFile } = kubeconfig;
    if (authorityFile === undefined) return { path, cas: readBundle(kubeconfig.authorities).certificates };
    const caFile = posix.resolve(posix.dirname(path), authorityFile);
    const bundle = await files.read(caFile, LARGEST_FILE_BYTES).catch(() => undefined);
    return { path, caFile, cas: readBundle(bundle ?? Buffer.alloc(0)).certificates };
  } catch {
    // Among the problems of the pass already where it is the kubelet's; the text might quote the file.
    return undefined;
  }
}

function receiptOf(
  process: string,
  kind: NodeReceipt['kind'],
  { path: file }: Authorities,
  cas: readonly Certificate[],
): NodeReceipt {
  return { process, file, kind, cas: cas.map(caDigest) };
}
