import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { brotliCompressSync, brotliDecompressSync, constants } from 'node:zlib';
import { askUpstream, inputsOf } from './judge.ts';
import type { Answer, Judged } from './judged.ts';

/** What upstream answered to the inputs of a seed. The inputs are made anew; their digest says whether they are still the same. */
export interface Recording {
  readonly seed: number;
  readonly count: number;
  readonly at: string;
  readonly inputs: string;
  readonly answers: readonly Answer[];
}

export async function record(programs: string, of: Judged, seed: number, count: number): Promise<Recording> {
  const at = new Date(Math.floor(Date.now() / 1000) * 1000);
  const inputs = await inputsOf(of, seed, count, at);
  const answers = await askUpstream(programs, of, inputs);
  return { seed, count, at: at.toISOString(), inputs: digest(inputs), answers };
}

/** Returns the size of the file. */
export function store({ name }: Judged, recording: Recording): number {
  const params = { [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS };
  const bytes = brotliCompressSync(JSON.stringify(recording), { params });
  writeFileSync(fileOf(name), bytes);
  return bytes.length;
}

/** A recording with its inputs. Throws where there is none, or where the inputs are no longer those that were judged. */
export async function replay(of: Judged): Promise<Recording & { readonly given: readonly unknown[] }> {
  if (!existsSync(fileOf(of.name))) throw new Error(`nothing is recorded for "${of.name}": ${REMEDY}`);
  const recording = JSON.parse(brotliDecompressSync(readFileSync(fileOf(of.name))).toString()) as Recording;
  const { seed, count, at } = recording;
  const given = await inputsOf(of, seed, count, new Date(at));
  if (digest(given) !== recording.inputs)
    throw new Error(`the inputs of "${of.name}" are no longer those that upstream was asked about: ${REMEDY}`);
  return { ...recording, given };
}

const REMEDY = 'record anew (test/upstream/README.md)';

const digest = (inputs: readonly unknown[]): string =>
  createHash('sha256').update(JSON.stringify(inputs)).digest('hex');

const fileOf = (name: string): string =>
  new URL(`recorded/${name.replace(/[^\w.]+/g, '-')}.json.br`, import.meta.url).pathname;
