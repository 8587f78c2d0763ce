/**
 * `ROTUNDA_UPSTREAM=<folder> npm run upstream:record [-- --seed N] [--count N] [part of a name ...]`: asks upstream and keeps its answers.
 */
import { parseArgs } from 'node:util';
import { FUNCTIONS } from './functions.ts';
import { record, store } from './recording.ts';

const { values, positionals } = parseArgs({
  options: { seed: { type: 'string', default: '1' }, count: { type: 'string', default: '600' } },
  allowPositionals: true,
});
const programs = process.env['ROTUNDA_UPSTREAM'];
if (programs === undefined) throw new Error('expected in ROTUNDA_UPSTREAM the folder with the programs of upstream');
const [seed, count] = [Number(values.seed), Number(values.count)];
for (const of of FUNCTIONS) {
  if (positionals.length > 0 && !positionals.some(part => of.name.includes(part))) continue;
  const bytes = store(of, await record(programs, of, seed, count));
  console.log(`${of.name}: ${count} inputs of seed ${seed}, ${bytes} bytes`);
}
