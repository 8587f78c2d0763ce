import { posix } from 'node:path';
import type { KubeadmChain, KubeadmSigner } from '../../kubeadm/chains.ts';
import { type KnownFile, knownFilesOf, type NodeFolder, nodeFoldersIn } from '../../kubeadm/files.ts';
import { KUBELET_CLIENT_FILE, KUBELET_DIRECTORY } from '../../kubeadm/names.ts';
import { recognise } from '../../kubeadm/recognise.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { readFolder } from './folder.ts';
import { AT_END_OF_CA, type Sighting, seenItem } from './item.ts';
import type { Look } from './look.ts';
import { type CertificateFile, type CertificateFiles, certificateFilesIn } from './pem-files.ts';
import { isSelfIssued, isSignedByAny } from './signed-by.ts';

/** The certificates in the files of a folder, or of one file; what kubeadm's layout expects and is not there is among them. */
export function lookAtFolder(folder: string, now: Date): Look {
  const read = readFolder(folder);
  const files = certificateFilesIn(read);
  // Of one file nothing is expected to be beside it.
  const nodes = read.isFolder ? nodeFoldersIn(files.paths) : [];
  const known = nodes.flatMap(node => knownSightings(node, files, nodes.length > 1 ? prefixOf(node) : ''));
  const taken = new Set(known.flatMap(({ places }) => places));
  const others = files.found.filter(({ paths }) => !paths.some(path => taken.has(path)));
  const sightings = [...known, ...otherSightings(others, files)];
  const links = read.links.filter(({ path }) => sightings.length > 0 || /(?:^|\/)pki$|\.(?:crt|pem|conf)$/.test(path));
  return {
    layout: nodes.length > 0 ? 'kubeadm' : undefined,
    items: sightings.map(sighting => seenItem(sighting, now)),
    unseen: [
      ...links.map(({ path, problem }) => `${path}: ${problem}`),
      ...files.elsewhere.map(({ path, file }) => elsewhereText(path, file)),
      ...nodes.filter(node => !hasKeys(node, files.paths)).map(keysText),
      ...(read.passedOver === 0 || sightings.length === 0
        ? []
        : [`${read.passedOver} files beyond the limits were not looked at: point at a part of the folder`]),
    ],
  };
}

/** One item for each file that kubeadm's layout knows and that is there, or ought to be. */
function knownSightings(node: NodeFolder, files: CertificateFiles, prefix: string): Sighting[] {
  const { found, paths, elsewhere } = files;
  const at = (path: string) => found.find(file => file.paths.includes(path));
  const list = knownFilesOf(node);
  const signers = new Map(list.flatMap(file => ('signer' in file ? [[file.signer.name, file] as const] : [])));
  const keysAreHere = hasKeys(node, paths);
  const isExternal = (signer: KnownFile | undefined) =>
    signer !== undefined && keysAreHere && paths.has(signer.path) && !paths.has(keyOf(signer.path));
  return list.flatMap((known): Sighting[] => {
    const { path, isExpected } = known;
    const file = at(path);
    const isThere = paths.has(path);
    const isOptional = 'chain' in known && known.chain.isOptional === true;
    if (!isThere && !isExpected) return [];
    // What it names instead is said apart.
    if (isThere && file === undefined && elsewhere.some(other => other.path === path)) return [];
    const signer = 'signer' in known ? known : signers.get(known.chain.signer);
    const external = isThere && isExternal(signer);
    const common = {
      name: prefix + ('signer' in known ? known.signer.name : known.chain.name),
      knownAs: 'signer' in known ? known.signer.name : known.chain.name,
      places: file?.paths ?? [path],
      certificates: file?.certificates ?? [],
      isExternal: external,
      isMissing: !isThere,
      isNormal: isOptional && !isThere,
      problem: isThere
        ? file === undefined
          ? 'no certificate can be read in it'
          : file.problem
        : missingText(isOptional),
    };
    if ('signer' in known) {
      const count = common.certificates.length;
      return [
        {
          ...common,
          role: 'signer',
          purpose: known.signer.purpose,
          renewal: external ? 'owner' : 'nobody',
          mismatch: wrongAuthority(common.certificates[0]) ?? file?.keyProblem,
          notes: count > 1 ? [`${count} certificates are in it: the first is the one its key belongs to`] : [],
          atItsEnd: AT_END_OF_CA,
        },
      ];
    }
    const { chain } = known;
    const authorities = at(signer?.path ?? '')?.certificates ?? [];
    const isKubelets = chain.renewedBy === 'kubelet';
    return [
      {
        ...common,
        role: 'target',
        purpose: chain.purpose,
        authority: chain.signer,
        renewal: isKubelets ? 'kubelet' : external ? 'owner' : 'by-hand',
        ...(isKubelets || external ? {} : { renewWith: renewCommand(chain.name, node) }),
        mismatch:
          wrongSigner(common.certificates[0], authorities, signer?.path ?? '') ??
          wrongTrust(file, authorities, signer?.path ?? '') ??
          (file?.kind === 'pem' && keysAreHere && !paths.has(keyOf(path))
            ? `its key ${posix.basename(keyOf(path))} is missing`
            : file?.keyProblem),
        atItsEnd: chain.atItsEnd,
      },
    ];
  });
}

function renewCommand(name: string, { certificates }: NodeFolder): string {
  const isUsual = certificates === '' || posix.basename(certificates) === 'pki';
  return `kubeadm certs renew ${name}${isUsual ? '' : ` --cert-dir <folder>/${certificates}`}`;
}

/** Files that the layout does not know, or of a folder that has none. */
function otherSightings(others: readonly CertificateFile[], { found }: CertificateFiles): Sighting[] {
  const authorities = found.filter(({ kind, certificates }) => kind === 'pem' && certificates[0]?.isCA === true);
  return others.map(file => {
    const { path, user, certificates, problem, keyProblem } = file;
    const [certificate] = certificates;
    const known = certificate === undefined ? undefined : recognise(certificate, path);
    const isKubelets =
      posix.basename(path) === KUBELET_CLIENT_FILE || (known !== undefined && isRenewedByKubelet(known));
    const issuer =
      certificate === undefined || isSelfIssued(certificate)
        ? undefined
        : (authorities.find(authority => isSignedByAny(certificate, authority.certificates))?.path ??
          certificate.issuer.commonName);
    const isOneOfSeveral = others.filter(other => other.path === path).length > 1;
    return {
      name: isOneOfSeveral ? `${path} (${user})` : path,
      places: file.paths,
      role: 'unmanaged',
      certificates,
      problem,
      mismatch: keyProblem,
      authority: issuer,
      renewal: isKubelets ? 'kubelet' : 'nobody',
      ...(known === undefined ? {} : factsOfKnown(known)),
      ...(user === '' ? { notes: ['a CA inside a kubeconfig whose user shows no certificate'] } : {}),
    };
  });
}

/** What kubeadm's table says of a certificate that was recognised by its names. */
function factsOfKnown(known: KubeadmChain | KubeadmSigner): Partial<Sighting> {
  const { purpose, name: knownAs } = known;
  if (!('signer' in known)) return { purpose, knownAs, atItsEnd: AT_END_OF_CA };
  const { atItsEnd } = known;
  if (isRenewedByKubelet(known)) return { purpose, knownAs, atItsEnd };
  return { purpose, knownAs, atItsEnd, renewal: 'by-hand', renewWith: `kubeadm certs renew ${knownAs}` };
}

function isRenewedByKubelet(known: KubeadmChain | KubeadmSigner): boolean {
  return 'renewedBy' in known && known.renewedBy === 'kubelet';
}

function wrongAuthority(certificate: Certificate | undefined): string | undefined {
  return certificate === undefined || certificate.isCA ? undefined : 'it is no CA';
}

function wrongSigner(
  leaf: Certificate | undefined,
  authorities: readonly Certificate[],
  path: string,
): string | undefined {
  if (leaf === undefined || authorities.length === 0 || isSignedByAny(leaf, authorities)) return undefined;
  return `it is signed by ${JSON.stringify(leaf.issuer.commonName)} and not by the key of ${path}`;
}

/** A kubeconfig that verifies with another CA than the one on the disk. */
function wrongTrust(
  file: CertificateFile | undefined,
  authorities: readonly Certificate[],
  path: string,
): string | undefined {
  if (file?.kind !== 'kubeconfig' || authorities.length === 0 || file.authorities.length === 0) return undefined;
  const isThere = file.authorities.some(({ der }) => authorities.some(authority => authority.der.equals(der)));
  return isThere ? undefined : `the CA inside it is not ${path}`;
}

function missingText(isOptional: boolean): string {
  return isOptional ? 'it is not there, which is normal on all nodes but the first' : 'it ought to be there and is not';
}

function keyOf(path: string): string {
  return path.replace(/\.crt$/, '.key');
}

/** A copy without any keys does not tell which CAs are external. */
function hasKeys({ certificates, role }: NodeFolder, paths: ReadonlySet<string>): boolean {
  const below = certificates === '' ? '' : `${certificates}/`;
  return role === 'control-plane' && [...paths].some(path => path.startsWith(below) && path.endsWith('.key'));
}

function keysText({ role, certificates }: NodeFolder): string {
  const where = certificates || 'the folder';
  return role === 'worker'
    ? `${where} is of a node that is no control plane: its kubelet's own certificates are in ${KUBELET_DIRECTORY}`
    : `no key is in ${where}: whether a CA is external, and whether keys fit, cannot be told`;
}

function elsewhereText(path: string, file: string): string {
  return `${path} names ${file}, which is not in this folder: rotunda get certs --from ${posix.dirname(file)}`;
}

function prefixOf({ certificates, kubeconfigs }: NodeFolder): string {
  const folder = kubeconfigs ?? certificates;
  return folder === '' ? '' : `${folder}/`;
}
