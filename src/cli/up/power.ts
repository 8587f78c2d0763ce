import { existsSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { UsageError } from '../usage-error.ts';

/** `rotunda power`: a worker of `rotunda up` goes away, and comes back. */
export function addPower(program: Command): void {
  program
    .command('power <on|off> <node>')
    .summary('switch a worker of a local cluster off, or on again')
    .description(
      'Off, the kubelet and the agent of the node are gone and its Node is not ready, as if the machine had lost its power; pods that run on it\n' +
        'stay. It stays off over a restart of the cluster. Nodes of the control plane cannot be switched off.',
    )
    .option('--dir <folder>', 'where everything is kept', '.rotunda')
    .action(async (to: string, node: string, flags: { dir: string }) => {
      if (to !== 'on' && to !== 'off') throw new UsageError(`expected on or off, found "${to}"`);
      const nodes = join(resolve(flags.dir), 'nodes');
      if (!existsSync(nodes)) throw new Error(`there is no cluster in ${resolve(flags.dir)}`);
      const workers = readdirSync(nodes).filter(name => name.startsWith('worker-'));
      if (!workers.includes(node))
        throw new UsageError(
          `expected one of the workers ${workers.join(', ') || '(there are none)'}, found "${node}"`,
        );
      const { Power } = await import('../../local/power.ts');
      new Power(join(nodes, node)).turn(to);
      process.stdout.write(`${node} is ${to}\n`);
    });
}
