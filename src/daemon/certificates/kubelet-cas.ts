import type { Host } from '../../host/port.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { caDigest } from '../../trust/receipts.ts';
import { readRecord, writeRecord } from './boot-record.ts';
import type { KubeletRestartDue } from './kubelet.ts';
import { KUBELET_CAS_RECORD } from './paths.ts';

/**
 * The CAs that the running kubelet verifies the API server with: it reads its kubeconfig when it starts, so the file may hold more by
 * now (spec 90, section 3). What it was started with is on disk, because the agent may be started anew at any moment, and never says
 * more than is certain: a CA leaves it before it leaves the kubeconfig, and comes to it when the kubelet has been started with it.
 */
export class KubeletCas {
  readonly #host: Host;

  constructor(host: Host) {
    this.#host = host;
  }

  /** Of the CAs in its kubeconfig those that the kubelet has loaded; undefined where nobody can know. */
  async loaded(inFile: readonly Certificate[], due: KubeletRestartDue): Promise<readonly Certificate[] | undefined> {
    const known = await this.#read();
    // The agent that changes the file makes a record first; before it came, the file was there when the kubelet began.
    if (known === undefined) return due === 'none' ? inFile : undefined;
    return inFile.filter(certificate => known.has(caDigest(certificate)));
  }

  /** Keeps what the kubelet has loaded. */
  async keep(certificates: readonly Certificate[]): Promise<void> {
    const cas = [...new Set(certificates.map(caDigest))].toSorted();
    const known = await this.#read();
    if (known?.size === cas.length && cas.every(ca => known.has(ca))) return;
    await writeRecord(this.#host, KUBELET_CAS_RECORD, { cas });
  }

  /** Undefined where nothing is recorded; a reboot since then has started the kubelet with what is on disk. */
  async #read(): Promise<ReadonlySet<unknown> | undefined> {
    const record = await readRecord(this.#host, KUBELET_CAS_RECORD);
    if (record?.isOfThisBoot !== true) return undefined;
    const { cas } = record.fields;
    // A record that cannot be read says of no CA that it is loaded.
    return new Set(Array.isArray(cas) ? cas : []);
  }
}
