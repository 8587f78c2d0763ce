/**
 * `ROTUNDA_UPSTREAM=<folder> npm run upstream:compare [-- --seed N] [--count N] [part of a name ...]`: asks upstream now and prints every
 * class of differences with its smallest input, accepted or not. Without a folder the recorded answers are taken.
 */
import { parseArgs } from 'node:util';
import { acceptedAs } from './accepted.ts';
import { FUNCTIONS } from './functions.ts';
import { askUpstream, classesOf, describeClass, disagreements, inputsOf } from './judge.ts';
import type { Judged } from './judged.ts';
import { replay } from './recording.ts';

const { values, positionals } = parseArgs({
  options: { seed: { type: 'string', default: '1' }, count: { type: 'string', default: '2000' } },
  allowPositionals: true,
});
const programs = process.env['ROTUNDA_UPSTREAM'];
let unknown = 0;
for (const of of FUNCTIONS) {
  if (positionals.length > 0 && !positionals.some(part => of.name.includes(part))) continue;
  const { seed, count, found } = programs === undefined ? await recorded(of) : await live(of, programs);
  const classes = classesOf(found);
  console.log(`${of.name}: ${count} inputs of seed ${seed}, ${found.length} differences in ${classes.length} classes`);
  for (const each of classes) {
    const accepted = acceptedAs(of.name, each.smallest.class);
    if (accepted === undefined) unknown++;
    console.log(`  ${accepted === undefined ? '' : `(${accepted.documented}) `}${describeClass(each)}`);
  }
}
console.log(`${unknown} classes are not accepted`);
process.exitCode = unknown === 0 ? 0 : 1;

async function live(of: Judged, folder: string) {
  const [seed, count] = [Number(values.seed), Number(values.count)];
  const at = new Date(Math.floor(Date.now() / 1000) * 1000);
  const inputs = await inputsOf(of, seed, count, at);
  return { seed, count, found: await disagreements(of, inputs, await askUpstream(folder, of, inputs), at) };
}

async function recorded(of: Judged) {
  const { seed, count, given, answers, at } = await replay(of);
  return { seed, count, found: await disagreements(of, given, answers, new Date(at)) };
}
