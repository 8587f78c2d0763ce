import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';

const SAID = {
  running: 'stopped',
  orphans: 'it was not running; processes that it had left were ended',
  nothing: 'nothing was running',
} as const;

/** `rotunda down`: stops the cluster of a folder. */
export function addDown(program: Command): void {
  program
    .command('down')
    .summary('stop the cluster that `rotunda up` runs in a folder')
    .description(
      'Stops the cluster as Ctrl-C would, and ends what a killed one has left. Its state stays for the next `rotunda up`.',
    )
    .option('--dir <folder>', 'where everything is kept', '.rotunda')
    .action(async (flags: { dir: string }) => {
      const dir = resolve(flags.dir);
      if (!existsSync(join(dir, 'nodes'))) throw new Error(`there is no cluster in ${dir}`);
      const { endCluster } = await import('../../local/cluster-record.ts');
      process.stdout.write(`${SAID[await endCluster(dir)]}\n`);
    });
}
