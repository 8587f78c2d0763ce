import { posix } from 'node:path';
import { certificatesOfKubeconfig } from '../../inventory/kubeconfig.ts';
import { readPem } from '../../inventory/relations.ts';
import { OWN_DIRECTORY } from '../../kubeadm/names.ts';
import { loadCertificateAndKey } from '../../pki/authority.ts';
import type { Certificate } from '../../pki/certificate.ts';
import type { ReadFile, ReadFolder } from './folder.ts';

/** The certificates of one file; those of a kubeconfig's users are told apart. */
export interface CertificateFile {
  /** The name that says most, and all of them. */
  readonly path: string;
  readonly paths: readonly string[];
  readonly kind: 'pem' | 'kubeconfig';
  /** Of a kubeconfig: the user whose certificate it is; empty: it has none, and this is its CA. */
  readonly user?: string | undefined;
  readonly certificates: readonly Certificate[];
  /** Of a kubeconfig: what its user verifies with. */
  readonly authorities: readonly Certificate[];
  readonly problem?: string | undefined;
  /** Key and certificate do not belong together. */
  readonly keyProblem?: string | undefined;
}

export interface CertificateFiles {
  readonly found: readonly CertificateFile[];
  /** Every path of the folder, keys too. */
  readonly paths: ReadonlySet<string>;
  /** Kubeconfigs that name a file which is not in the folder. */
  readonly elsewhere: readonly { readonly path: string; readonly file: string }[];
}

const PEM_NAME = /\.(?:crt|pem|cer|cert)$/i;
/** Texts in which certificates are quoted, and not kept. */
const QUOTING = /\.(?:ya?ml|json|log|txt|md|html?)$/i;
const STRUCTURED = /\.(?:ya?ml|json)$/i;
const KUBECONFIG_NAME = /\.(?:conf|kubeconfig)$/i;
const KEYS = /-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*-----END [A-Z ]*PRIVATE KEY-----/g;
const BEGIN = /^-----BEGIN ([A-Z0-9 ]+)-----/m;
/** What our agent keeps of files until a hand-over cannot be taken back any more. */
const BEFORE = new RegExp(`(?:^|/)${OWN_DIRECTORY}/before/`);
/** What a kubelet leaves behind when it has renewed its certificate. */
const DATED = /^(kubelet-(?:client|server))-\d{4}-.*\.pem$/;

/** Every file of a folder that holds certificates, or ought to. Keys are looked at once, and forgotten. */
export function certificateFilesIn(folder: ReadFolder): CertificateFiles {
  const files = folder.files.filter(({ paths }) => !paths.every(path => BEFORE.test(path)));
  const paths = new Set(files.flatMap(file => file.paths));
  const texts = new Map(files.flatMap(({ paths: names, text }) => names.map(name => [name, text] as const)));
  const elsewhere: { path: string; file: string }[] = [];
  const found = files
    .filter(file => !isHistory(file, paths))
    .flatMap((file): CertificateFile[] => {
      const kubeconfig = file.text === undefined ? undefined : certificatesOfKubeconfig(file.text);
      if (kubeconfig === undefined) return pemFile(file, texts);
      const path = bestOf(file.paths);
      for (const named of kubeconfig.clientFiles) {
        if (!paths.has(posix.normalize(posix.join(posix.dirname(path), named)))) elsewhere.push({ path, file: named });
      }
      const authorities = kubeconfig.authorities.flatMap(({ pem }) => readPem(pem).certificates);
      const common = { path, paths: file.paths, kind: 'kubeconfig' as const, authorities };
      if (kubeconfig.clients.length === 0) {
        return kubeconfig.clientFiles.length > 0 || authorities.length === 0
          ? []
          : [{ ...common, user: '', certificates: authorities }];
      }
      return kubeconfig.clients.map(({ name, pem }) => ({ ...common, user: name, ...readPem(pem) }));
    });
  return { found, paths, elsewhere };
}

function pemFile(file: ReadFile, texts: ReadonlyMap<string, string | undefined>): CertificateFile[] {
  const { paths, text, problem } = file;
  const path = bestOf(paths);
  const common = { path, paths, kind: 'pem' as const, certificates: [], authorities: [] };
  if (text === undefined) {
    return problem !== undefined && (PEM_NAME.test(path) || KUBECONFIG_NAME.test(path)) ? [{ ...common, problem }] : [];
  }
  if (KUBECONFIG_NAME.test(path)) {
    return /^\s*(?:"?kind"?:\s*"?Config|clusters:)/m.test(text)
      ? [{ ...common, kind: 'kubeconfig', problem: 'a kubeconfig in which no certificate can be read' }]
      : [];
  }
  const label = BEGIN.exec(text)?.[1];
  const isMeant = PEM_NAME.test(path);
  if (STRUCTURED.test(path) || (!isMeant && (QUOTING.test(path) || !text.includes('-----BEGIN CERTIFICATE-----'))))
    return [];
  // A file of keys alone is nothing to look at.
  if (label !== undefined && !text.includes('BEGIN CERTIFICATE')) return [];
  if (label === undefined) return [{ ...common, problem: 'no PEM block is in it' }];
  // What is remembered of it must not have a key in it.
  const content = readPem(text.replaceAll(KEYS, ''));
  const key = texts.get(path.replace(/\.[^./]+$/, '.key')) ?? (text.includes('PRIVATE KEY-----') ? text : undefined);
  const keyProblem = content.problem === undefined && key !== undefined ? problemOfKey(text, key) : undefined;
  return [{ ...common, ...content, keyProblem }];
}

function problemOfKey(certificate: string, key: string): string | undefined {
  try {
    loadCertificateAndKey(certificate, key);
    return undefined;
  } catch (error) {
    return `with its key: ${(error as Error).message}`;
  }
}

function isHistory({ paths }: ReadFile, all: ReadonlySet<string>): boolean {
  return paths.every(path => {
    const [, kind] = DATED.exec(posix.basename(path)) ?? [];
    return kind !== undefined && all.has(posix.join(posix.dirname(path), `${kind}-current.pem`));
  });
}

/** Of several names of one file the one that others look for: the shortest that is not dated. */
function bestOf(paths: readonly string[]): string {
  const [best = ''] = paths.toSorted(
    (a, b) => Number(DATED.test(posix.basename(a))) - Number(DATED.test(posix.basename(b))) || a.length - b.length,
  );
  return best;
}
