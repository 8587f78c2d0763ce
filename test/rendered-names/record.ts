/**
 * Asks the code of 4.16 for the names anew: `node test/rendered-names/record.ts PROGRAM`. The program is built from a checkout of
 * machine-config-operator; it takes a JSON line `{ op: "merge", in }` each and answers with `{ out: { name } }`.
 */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { ANSWERS, recordedAnswers } from './answers.ts';

const [program] = process.argv.slice(2);
if (program === undefined) throw new Error('expected the program to ask');
const inputs = recordedAnswers().map(({ name: _name, ...input }) => input);
const input = inputs.map(line => `${JSON.stringify({ op: 'merge', in: line })}\n`).join('');
const { stdout, status } = spawnSync(program, { input, encoding: 'utf8', maxBuffer: 1 << 30 });
if (status !== 0) throw new Error(`${program} ended with ${status}`);
const answers = stdout
  .trim()
  .split('\n')
  .map((line, index) => ({ ...inputs[index], name: (JSON.parse(line) as { out: { name: string } }).out.name }));
if (answers.length !== inputs.length) throw new Error(`${answers.length} answers to ${inputs.length} questions`);
writeFileSync(ANSWERS, gzipSync(JSON.stringify(answers), { level: 9 }));
