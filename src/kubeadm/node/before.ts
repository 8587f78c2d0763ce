import { posix } from 'node:path';
import type { HostFiles } from '../../host/port.ts';
import { isDigest, readJson } from '../exchange.ts';
import { digestOf, type FileText, readFileText } from './file-text.ts';
import { KEY_MODE, OWN_MODE, type Places } from './places.ts';

/** A file as it was before a hand-over changed it, so that the hand-over can be taken back without a trace (KA-12). */
export interface BeforeCopy {
  readonly copy: FileText;
  /** What we wrote in its place, by digest. */
  readonly wrote: readonly string[];
}

/** Of one file in the course of a hand-over; older ones are forgotten. */
const MOST_WRITES = 32;
const LONGEST_RECORD = 16 * 1024;

/** Whether a file is as we left it: what others wrote is not taken back. */
export function isOurs({ text }: FileText, { copy, wrote }: BeforeCopy): boolean {
  const digest = digestOf(text);
  return wrote.includes(digest) || digest === digestOf(copy.text);
}

/** Reads what is kept of a file; undefined where nothing is. */
export async function readBefore(files: HostFiles, places: Places, real: string): Promise<BeforeCopy | undefined> {
  const copy = await readFileText(files, copyOf(places, real));
  if (copy === undefined) return undefined;
  const record = await readFileText(files, recordOf(places, real));
  return { copy, wrote: readJson(record?.text, LONGEST_RECORD, isRecord) ?? [] };
}

/** Notes, before a file is written, how it was and what it will be. */
export async function keepBefore(files: HostFiles, places: Places, file: FileText, next: string): Promise<void> {
  const known = await readBefore(files, places, file.real);
  const isKnown = known !== undefined && isOurs(file, known);
  await files.makeDirectory(places.own, OWN_MODE);
  // The record of an older copy must not speak for a new one.
  if (!isKnown) await files.remove(recordOf(places, file.real));
  if (!isKnown) {
    await files.makeDirectory(posix.dirname(copyOf(places, file.real)), OWN_MODE);
    await files.copy(file.real, copyOf(places, file.real));
  }
  await noteWrite(files, places, file, next);
}

/** The same where a copy is there; otherwise nothing is noted. */
export async function noteWrite(files: HostFiles, places: Places, file: FileText, next: string): Promise<void> {
  const known = await readBefore(files, places, file.real);
  const digest = digestOf(next);
  if (known === undefined || !isOurs(file, known) || known.wrote.at(-1) === digest) return;
  const wrote = [...known.wrote.filter(other => other !== digest), digest].slice(-MOST_WRITES);
  await files.write(recordOf(places, file.real), Buffer.from(JSON.stringify(wrote)), { mode: KEY_MODE });
}

/** Puts a file back as it was, with its mode, owner and times. */
export async function putBack(files: HostFiles, places: Places, real: string): Promise<void> {
  await files.copy(copyOf(places, real), real);
}

function copyOf({ before }: Places, real: string): string {
  return posix.join(before, real);
}

function recordOf(places: Places, real: string): string {
  return `${copyOf(places, real)}.written`;
}

function isRecord(value: unknown): value is string[] {
  return Array.isArray(value) && value.length <= MOST_WRITES && value.every(isDigest);
}
