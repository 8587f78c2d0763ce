import { X509Certificate } from 'node:crypto';
import { CORE_SCHEMA, load } from 'js-yaml';
import { encodeCertificates, readCertificates, readPrivateKey } from '../pki/pem.ts';

/** The text of files or of the entries of an object, by name. */
export type Texts = Readonly<Record<string, string>>;

export interface Pair {
  readonly cert: string;
  readonly key: string;
}

/**
 * The certificate and key in files: `tls.crt` and `tls.key`, one file with both, or a kubeconfig. Throws what is wrong with them;
 * the message never has content of them.
 */
export function pairIn(texts: Texts): Pair {
  const { cert, key } = inKubeconfig(texts) ?? { cert: joined(texts), key: joined(texts) };
  const names = Object.keys(texts).join(', ');
  const { certificates } = readCertificates(cert);
  const [leaf] = certificates;
  const [keyText] = KEY_BLOCK.exec(key) ?? [];
  if (leaf === undefined || keyText === undefined) throw new Error(`expected a certificate and its key in ${names}`);
  if (!new X509Certificate(leaf.der).checkPrivateKey(readPrivateKey(keyText))) {
    throw new Error(`the private key in ${names} does not belong to the certificate`);
  }
  return { cert: encodeCertificates(certificates), key: keyText };
}

/** The CA certificates in files: a bundle, or the one in a kubeconfig. Throws when there are none. */
export function bundleIn(texts: Texts): string {
  const ca = inKubeconfig(texts)?.ca ?? joined(texts);
  if (readCertificates(ca).certificates.length === 0) {
    throw new Error(`expected certificates in ${Object.keys(texts).join(', ')}`);
  }
  return ca;
}

const KEY_BLOCK = /-----BEGIN ([A-Z ]*PRIVATE KEY)-----[^-]*-----END \1-----/;

function joined(texts: Texts): string {
  return Object.keys(texts)
    .sort()
    .map(name => texts[name])
    .join('\n');
}

interface Kubeconfig {
  readonly clusters?: readonly { readonly cluster?: Readonly<Record<string, string>> }[];
  readonly users?: readonly { readonly user?: Readonly<Record<string, string>> }[];
}

/** What a YAML reader says of a text that it cannot read has pieces of that text in it. */
function parsed(text: string, name: string): Kubeconfig {
  try {
    return load(text, { schema: CORE_SCHEMA, maxAliases: 0 }) ?? {};
  } catch {
    throw new Error(`expected YAML in ${name}`);
  }
}

/** Of a kubeconfig that carries everything itself. */
function inKubeconfig(texts: Texts): { cert: string; key: string; ca: string } | undefined {
  const name = Object.keys(texts).find(file => /(^|[./])kubeconfig$/.test(file));
  if (name === undefined) return undefined;
  const { clusters = [], users = [] } = parsed(texts[name] ?? '', name);
  const decoded = (field: string | undefined) => Buffer.from(field ?? '', 'base64').toString();
  return {
    cert: decoded(users[0]?.user?.['client-certificate-data']),
    key: decoded(users[0]?.user?.['client-key-data']),
    ca: decoded(clusters[0]?.cluster?.['certificate-authority-data']),
  };
}
