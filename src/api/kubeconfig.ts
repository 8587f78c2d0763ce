import { dump } from 'js-yaml';
import type { CertificateAndKey } from '../pki/authority.ts';
import { encodeCertificates, encodePrivateKey } from '../pki/pem.ts';

/** A kubeconfig that holds everything inside: address, CA, client certificate and key. */
export function kubeconfigFor(server: string, ca: CertificateAndKey, client: CertificateAndKey): string {
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  return dump({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      { name: 'rotunda', cluster: { server, 'certificate-authority-data': base64(encodeCertificates(ca.chain)) } },
    ],
    users: [
      {
        name: 'admin',
        user: {
          'client-certificate-data': base64(encodeCertificates(client.chain)),
          'client-key-data': base64(encodePrivateKey(client.key)),
        },
      },
    ],
    contexts: [{ name: 'admin', context: { cluster: 'rotunda', user: 'admin', namespace: 'default' } }],
    'current-context': 'admin',
  });
}
