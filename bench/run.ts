/** `npm run bench -- <question>`: runs one bench file; without a name, lists them. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { basename } from 'node:path';

const here = new URL('.', import.meta.url).pathname;
const [name, ...rest] = process.argv.slice(2);
if (name === undefined || !existsSync(`${here}${basename(name)}.ts`)) {
  const names = globSync('*.ts', { cwd: here }).map(file => basename(file, '.ts'));
  console.log(`usage: npm run bench -- <${names.filter(other => other !== 'run').join(' | ')}>`);
  process.exit(name === undefined ? 0 : 2);
}
const release = readFileSync('/etc/os-release', 'utf8').match(/PRETTY_NAME="(.*)"/)?.[1] ?? 'unknown system';
console.log(
  `machine: ${cpus().length} x ${cpus()[0]?.model.trim()}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${release}, Node ${process.version}`,
);
const { bench } = (await import(`./${basename(name)}.ts`)) as { bench: (args: string[]) => Promise<void> };
await bench(rest);
