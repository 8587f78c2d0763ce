import { posix } from 'node:path';
import type { Host, HostFiles } from '../../host/port.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { certificatesIn } from '../../pki/pem.ts';
import { caDigest, issuerKey, type NodeReceipt } from '../../trust/receipts.ts';
import { readBundle } from './bundle.ts';
import { Kubeconfig } from './kubeconfig.ts';
import { KubeletRestart } from './kubelet.ts';
import { KubeletCas } from './kubelet-cas.ts';
import {
  BOOTSTRAP_KUBECONFIG,
  CLIENT_CERTIFICATES,
  LARGEST_FILE_BYTES,
  LIVE_KUBECONFIG,
  NODE_KUBECONFIGS,
} from './paths.ts';

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
 * administrator those in the kubeconfig that he will open; and of whom the certificates are that they show. What cannot be read is left out: nothing is said rather than something wrong.
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
        if (found === undefined) return undefined;
        const receipt = receiptOf(NODE_ADMINISTRATOR, 'on-use', found, found.cas);
        return { ...found, receipt: { ...receipt, ...showing(found.clientCertificate) } };
      }),
  );
  const found = [kubelet, ...administrators].filter(one => one !== undefined);
  const clients = await Promise.all(CLIENT_CERTIFICATES.map(client => shownBy(host.files, client)));
  return {
    receipts: [...found.flatMap(({ receipt }) => receipt ?? []), ...clients.flatMap(receipt => receipt ?? [])],
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

/** What a process shows that takes the file as it is whenever it makes a connection, or when it changes. */
async function shownBy(
  files: HostFiles,
  { process, file }: (typeof CLIENT_CERTIFICATES)[number],
): Promise<NodeReceipt | undefined> {
  const bytes = await files.read(file, LARGEST_FILE_BYTES).catch(() => undefined);
  const shown = showing(bytes ?? Buffer.alloc(0));
  return shown && { process, file, kind: 'on-use', cas: [], ...shown };
}

/** Of whom a certificate is; undefined where nobody can tell. */
function showing(text: Uint8Array): Pick<NodeReceipt, 'shows'> | undefined {
  const [leaf] = certificatesIn(Buffer.from(text).toString('latin1'));
  const shows = leaf && issuerKey(leaf);
  return shows === undefined ? undefined : { shows };
}

interface Authorities {
  readonly path: string;
  readonly clientCertificate: Buffer;
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
    const { authorityFile, clientCertificate } = kubeconfig;
    if (authorityFile === undefined)
      return { path, clientCertificate, cas: readBundle(kubeconfig.authorities).certificates };
    const caFile = posix.resolve(posix.dirname(path), authorityFile);
    const bundle = await files.read(caFile, LARGEST_FILE_BYTES).catch(() => undefined);
    return { path, clientCertificate, caFile, cas: readBundle(bundle ?? Buffer.alloc(0)).certificates };
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
