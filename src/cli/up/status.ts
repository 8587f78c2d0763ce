import { resolve } from 'node:path';
import type { Command } from 'commander';
import { UsageError } from '../usage-error.ts';

/** Exit codes: the cluster is ready; it is not, or does not run. */
const READY = 0;
const NOT_READY = 1;

/** `rotunda status`: how the cluster of a folder is. */
export function addStatus(program: Command): void {
  program
    .command('status')
    .summary('say how the cluster that `rotunda up` runs in a folder is')
    .description('Exit code 0: it runs and is ready; 1: it is not ready or does not run.')
    .option('--dir <folder>', 'where everything is kept', '.rotunda')
    .option('-o, --output <format>', 'table or json', 'table')
    .action(async (flags: { dir: string; output: string }) => {
      const dir = resolve(flags.dir);
      if (!['table', 'json'].includes(flags.output))
        throw new UsageError(`--output must be table or json, found "${flags.output}"`);
      const { readClusterRecord } = await import('../../local/cluster-record.ts');
      const found = readClusterRecord(dir);
      if (found === undefined) throw new Error(`there is no cluster in ${dir}`);
      const { record, isRunning } = found;
      const ready = isRunning && record.parts.every(part => part.ready);
      process.exitCode = ready ? READY : NOT_READY;
      if (flags.output === 'json') {
        process.stdout.write(`${JSON.stringify({ running: isRunning, ready, ...record }, null, 2)}\n`);
        return;
      }
      const { url, kubeconfig, layout = 'openshift', standIns, parts, startedAt, process: own } = record;
      const head = isRunning
        ? [
            `${ready ? 'ready' : 'not ready'}: ${url}, kubeconfig ${kubeconfig}`,
            `process ${own.pid}, since ${startedAt}, layout ${layout}`,
          ]
        : [`not running; last started at ${startedAt}, layout ${layout}`];
      const width = Math.max(...parts.map(({ name }) => name.length));
      const lines = parts.map(
        ({ name, ready: isReady, text }) => `${isReady ? 'ok ' : '...'} ${name.padEnd(width)}  ${text}`,
      );
      const note = standIns.length === 0 ? [] : [`stand-ins: ${standIns.join(', ')}`];
      process.stdout.write(`${[...head, ...(isRunning ? [...lines, ...note] : [])].join('\n')}\n`);
    });
}
