import { caDigest } from '../../trust/receipts.ts';
import { signerNamed } from '../chains.ts';
import type { LeafFiles, NodeSight } from './sight.ts';

/** What is wrong with a leaf so that it has to be made anew; undefined: it is as kubeadm would have it. */
export function leafProblem(sight: NodeSight, leaf: LeafFiles): string | undefined {
  return refusalOf(sight, leaf) ?? (leaf.keyFits ? undefined : keyProblem(leaf));
}

function keyProblem({ file, keyFile, place }: LeafFiles): string {
  if (place !== undefined && keyFile === undefined) return `${place.key} is missing`;
  return `${file.path} and its key do not belong together`;
}

/** What is wrong with a leaf so that nobody but its owner can say what it ought to be; undefined: it can be made anew. */
export function refusalOf(sight: NodeSight, leaf: LeafFiles): string | undefined {
  const { chain, certificate, count, file, signedBy } = leaf;
  if (count > 1) return `${file.path} holds ${count} certificates; expected one`;
  const expected = commonNameOf(sight, leaf);
  const found = certificate.subject.commonName;
  if (found !== expected) return `${file.path} is for ${quoted(found)}; expected ${quoted(expected)}`;
  if (signedBy !== undefined) return undefined;
  const { base } = signerNamed(chain.signer);
  return `${file.path} is signed by ${quoted(certificate.issuer.commonName)}, which is not in ${base}.crt of this node`;
}

function commonNameOf({ nodeName }: NodeSight, { chain: { creator } }: LeafFiles): string {
  const name = creator.kind === 'client' ? creator.user.name : creator.commonName;
  return name.replace('<node>', nodeName);
}

/** A CA for people: by name and the beginning of its digest. */
export function caText(ca: Parameters<typeof caDigest>[0] & { readonly subject: { readonly commonName: string } }) {
  return `${ca.subject.commonName} (${caDigest(ca).slice(0, 12)})`;
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, LONGEST_NAME));
}

const LONGEST_NAME = 100;
