import { posix } from 'node:path';
import type { FileOwner, HostFiles } from '../../host/port.ts';
import { isPkiError } from '../../pki/error.ts';
import { certificatesIn, readPrivateKey } from '../../pki/pem.ts';
import { type FileText, readFileText } from './file-text.ts';
import { belongsTo } from './leaf.ts';
import { KEY_MODE, OWN_MODE, type PairPlace } from './places.ts';
import type { BegunPair } from './sight.ts';

/** Beside its place, until it is moved there. */
const BEGUN = '.rotunda-next';
const CERTIFICATE_MODE = 0o644;

export interface NewPair {
  /** PEM. */
  readonly certificate: string;
  readonly key: string;
  /** Those that are there, with their modes and owners. */
  readonly files: { readonly certificate: FileText | undefined; readonly key: FileText | undefined };
}

/**
 * Puts a certificate and its key in place of others: both are written beside, then moved, the key first. A process that dies in between
 * leaves a certificate beside that belongs to the key in place, and the next one moves it (spec 80, KA-6).
 */
export async function placePair(files: HostFiles, place: PairPlace, pair: NewPair): Promise<void> {
  const real = realOf(place, pair.files);
  const { certificate, key } = pair.files;
  await write(files, `${real.key}${BEGUN}`, pair.key, KEY_MODE, key?.owner);
  await write(
    files,
    `${real.certificate}${BEGUN}`,
    pair.certificate,
    certificate?.mode ?? CERTIFICATE_MODE,
    certificate?.owner,
  );
  await files.rename(`${real.key}${BEGUN}`, real.key);
  await files.rename(`${real.certificate}${BEGUN}`, real.certificate);
}

export interface PairFiles {
  readonly place: PairPlace;
  readonly there: NewPair['files'];
}

/** Of which of these pairs a change was begun, and how far it came. */
export async function begunPairs(files: HostFiles, pairs: readonly PairFiles[]): Promise<BegunPair[]> {
  const reals = pairs.map(({ place, there }) => realOf(place, there));
  const folders = new Set(reals.flatMap(({ certificate, key }) => [posix.dirname(certificate), posix.dirname(key)]));
  const beside = new Set<string>();
  for (const folder of folders) {
    for (const name of (await files.list(folder)) ?? []) beside.add(posix.join(folder, name));
  }
  const found: BegunPair[] = [];
  for (const [index, { there }] of pairs.entries()) {
    const real = reals[index] as PairPlace;
    if (!beside.has(`${real.certificate}${BEGUN}`) && !beside.has(`${real.key}${BEGUN}`)) continue;
    const begun = await begunPair(files, real, there);
    if (begun !== undefined) found.push(begun);
  }
  return found;
}

async function begunPair(files: HostFiles, real: PairPlace, there: NewPair['files']): Promise<BegunPair | undefined> {
  const certificate = await readFileText(files, `${real.certificate}${BEGUN}`);
  const key = await readFileText(files, `${real.key}${BEGUN}`);
  if (certificate === undefined && key === undefined) return undefined;
  const [next] = certificatesIn(certificate?.text);
  const isKeyInPlace = key === undefined && next !== undefined && there.key !== undefined && fits(there.key.text, next);
  return { place: real, isKeyInPlace };
}

/** Ends what was begun: what is half in place is completed, what is not is dropped. */
export async function endPair(files: HostFiles, { place, isKeyInPlace }: BegunPair): Promise<void> {
  if (isKeyInPlace) return files.rename(`${place.certificate}${BEGUN}`, place.certificate);
  await files.remove(`${place.key}${BEGUN}`);
  await files.remove(`${place.certificate}${BEGUN}`);
}

function fits(keyText: string, certificate: Parameters<typeof belongsTo>[1]): boolean {
  try {
    return belongsTo(readPrivateKey(keyText), certificate);
  } catch (error) {
    if (isPkiError(error)) return false;
    throw error;
  }
}

function realOf(place: PairPlace, { certificate, key }: NewPair['files']): PairPlace {
  return { certificate: certificate?.real ?? place.certificate, key: key?.real ?? place.key };
}

function write(files: HostFiles, path: string, text: string, mode: number, owner: FileOwner | undefined) {
  return files.write(path, Buffer.from(text), { mode, directoryMode: OWN_MODE, ...(owner && { owner }) });
}
