import type { Command } from 'commander';
import { type SourceFlags, withSourceFlags } from '../cluster-flags.ts';
import { withExamples } from '../examples.ts';

export interface GraphFlags extends SourceFlags {
  readonly output: string;
  readonly now?: string | undefined;
}

/** `rotunda graph`: who signs, holds, shows and verifies what. */
export function addGraph(program: Command): void {
  const command = program
    .command('graph')
    .summary('draw who signs, holds, shows and verifies which certificate')
    .description(
      'The trust graph of a cluster: signers, bundles, leaves and processes, and four kinds of edges: issued-by, contained-in,\n' +
        'presented-by, verified-with. Names narrow it down to what is connected with these objects. Of a control plane that kubeadm\n' +
        'made, or of its files (--from /etc/kubernetes), it is drawn by what kubeadm lays out and what can be seen of it from here.',
    )
    .argument('[names...]', 'only what is connected with these: NAME, secret/NAME, configmap/NAME or a process');
  withSourceFlags(command)
    .option('-o, --output <format>', 'text, dot, svg or json', 'text')
    .option('--now <time>', 'judge as of this moment, RFC 3339 (default: the clock)')
    .action(async (names: string[], flags: GraphFlags) => {
      const { runGraph } = await import('./run.ts');
      await runGraph(names, flags);
    });
  withExamples(
    command,
    'rotunda graph loadbalancer-serving-signer',
    'rotunda graph -o svg > trust.svg',
    'rotunda graph --from /etc/kubernetes etcd-ca',
  );
}
