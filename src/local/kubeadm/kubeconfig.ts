import type { CertificateAndKey } from '../../pki/authority.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { encodeCertificates, encodePrivateKey } from '../../pki/pem.ts';
import { CLUSTER_NAME } from './names.ts';

export interface KubeconfigParts {
  readonly server: string;
  readonly cas: readonly Certificate[];
  readonly user: string;
  /** What is inside, or the file in which both are. */
  readonly client: CertificateAndKey | string;
}

/** A kubeconfig with the words and the order of kubeadm. */
export function kubeconfigText({ server, cas, user, client }: KubeconfigParts): string {
  const context = `${user}@${CLUSTER_NAME}`;
  const credentials =
    typeof client === 'string'
      ? [`client-certificate: ${client}`, `client-key: ${client}`]
      : [
          `client-certificate-data: ${base64(encodeCertificates(client.chain))}`,
          `client-key-data: ${base64(encodePrivateKey(client.key))}`,
        ];
  return [
    'apiVersion: v1',
    'clusters:',
    '- cluster:',
    `    certificate-authority-data: ${base64(encodeCertificates(cas))}`,
    `    server: ${server}`,
    `  name: ${CLUSTER_NAME}`,
    'contexts:',
    '- context:',
    `    cluster: ${CLUSTER_NAME}`,
    `    user: ${user}`,
    `  name: ${context}`,
    `current-context: ${context}`,
    'kind: Config',
    'users:',
    `- name: ${user}`,
    '  user:',
    ...credentials.map(line => `    ${line}`),
    '',
  ].join('\n');
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
