import type { Kube } from '../kube/port.ts';
import { CONFIG_MAPS } from '../kube/resource.ts';
import type { CertificateAndKey } from '../pki/authority.ts';
import type { Certificate } from '../pki/certificate.ts';
import { encodeCertificates, readCertificates } from '../pki/pem.ts';

/** The CAs whose client certificates are taken: our own, and those somebody adds. */
export class ClientTrust {
  readonly #own: CertificateAndKey;
  #certificates: readonly Certificate[];

  constructor(own: CertificateAndKey) {
    this.#own = own;
    this.#certificates = own.chain;
  }

  get certificates(): readonly Certificate[] {
    return this.#certificates;
  }

  get pem(): string {
    return encodeCertificates(this.#certificates);
  }

  add(bundle: string): void {
    this.#certificates = [...this.#own.chain, ...readCertificates(bundle).certificates];
  }

  /** Tells servers behind this one whom to trust. There is no proxy in front, so nothing is said about its headers. */
  async publish(kube: Kube): Promise<void> {
    const key = { namespace: 'kube-system', name: 'extension-apiserver-authentication' };
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: key, data: { 'client-ca-file': this.pem } };
    await kube.patch(CONFIG_MAPS, key, { type: 'apply', body }, { fieldManager: 'kube-apiserver', force: true });
  }
}
