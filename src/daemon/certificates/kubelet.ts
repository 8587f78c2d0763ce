import { errorText } from '../../controller/aggregate-error.ts';
import type { Host } from '../../host/port.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { readRecord, writeRecord } from './boot-record.ts';
import { KubeletCas } from './kubelet-cas.ts';
import { KUBELET, KUBELET_RESTART_RECORD, LIVE_KUBECONFIG, SECRET_MODE } from './paths.ts';

/** When the kubelet is to be restarted for a server CA it does not know yet. */
export type KubeletRestartDue = 'none' | 'deferred' | 'now';

/** Proves before the kubelet is stopped that the file system takes another kubeconfig. */
const REHEARSAL = `${LIVE_KUBECONFIG}.rotunda-next`;

/**
 * The restart of the kubelet for a new server CA (spec 60, 4.8). That one is due is on disk before anything is changed and
 * until the kubelet has been started, so it survives a crash at any point, and so does one that was put off (D-11).
 */
export class KubeletRestart {
  readonly #host: Host;

  constructor(host: Host) {
    this.#host = host;
  }

  /** What is recorded. A reboot since then has started the kubelet, with what is on disk. */
  async due(): Promise<KubeletRestartDue> {
    const record = await readRecord(this.#host, KUBELET_RESTART_RECORD);
    if (record === undefined) return 'none';
    if (!record.isOfThisBoot) {
      await this.record('none');
      return 'none';
    }
    // A record that cannot be read was written for a reason.
    return record.fields.restart === 'deferred' ? 'deferred' : 'now';
  }

  async record(due: KubeletRestartDue): Promise<void> {
    if (due === 'none') return this.#host.files.remove(KUBELET_RESTART_RECORD);
    await writeRecord(this.#host, KUBELET_RESTART_RECORD, { restart: due });
  }

  /** Whether there is a kubelet that could be started; where there is none, nobody has read its files. */
  async isThere(): Promise<boolean> {
    return !['not-found', 'masked'].includes(await this.#host.services.isEnabled(KUBELET));
  }

  /** Starts a kubelet that a restart left stopped when the agent died in it. Needs no API; the next pass does the rest. */
  async resume(): Promise<void> {
    const { files, services } = this.#host;
    if ((await this.due()) === 'now' && !(await services.isActive(KUBELET))) await services.start(KUBELET);
    await files.remove(REHEARSAL);
  }

  /**
   * Stop, `rewrite` the kubeconfig, reload units, start. The kubelet is started whatever happens in between; what went wrong is
   * thrown afterwards, and the record stays for the next attempt. `rewrite` gives the CAs that are in the file then, `next` is what
   * will be written, as far as it is known.
   */
  async restart(rewrite: () => Promise<readonly Certificate[]>, next: Buffer | undefined): Promise<void> {
    const { files, services } = this.#host;
    let found: readonly Certificate[] = [];
    const place = async () => {
      found = await rewrite();
    };
    const end = async () => {
      await new KubeletCas(this.#host).keep(found);
      await this.record('none');
    };
    // Where none can be started there is none to restart.
    if (!(await this.isThere())) {
      await place();
      return end();
    }
    if (next !== undefined) {
      await files.write(REHEARSAL, next, { mode: SECRET_MODE });
      await files.remove(REHEARSAL);
    }
    const errors: unknown[] = [];
    const step = (work: () => Promise<void>) => work().catch((error: unknown) => void errors.push(error));
    await step(() => services.stop(KUBELET));
    await step(place);
    await step(() => services.daemonReload());
    await step(() => services.start(KUBELET));
    if (errors.length > 0) throw errors[0];
    await end();
  }
}

/** What a connection that failed means for a restart that was put off (spec 60, 1.6 and 4.8). */
export function decideOnConnectionError(due: KubeletRestartDue, error: unknown): { readonly restartsKubelet: boolean } {
  return { restartsKubelet: due === 'deferred' && isAboutCertificates(error) };
}

/** OpenSSL's verdicts on a chain, as Node names them. */
const VERDICTS =
  /^(CERT_|UNABLE_TO_(VERIFY|GET_ISSUER|DECODE)|SELF_SIGNED_CERT|DEPTH_ZERO_SELF_SIGNED|INVALID_CA|ERR_TLS_CERT)/;

/** Whether an error, or what caused it, is that the API server's certificate was not believed. */
export function isAboutCertificates(error: unknown): boolean {
  let current = error;
  for (let depth = 0; depth < DEEPEST_CAUSE && current !== undefined && current !== null; depth++) {
    if (/x509/i.test(errorText(current))) return true;
    const { code, cause } = current as { code?: unknown; cause?: unknown };
    if (typeof code === 'string' && VERDICTS.test(code)) return true;
    current = cause;
  }
  return false;
}

const DEEPEST_CAUSE = 8;
