import type { Command } from 'commander';
import { type ClusterFlags, withClusterFlags } from '../cluster-flags.ts';

export interface MonitorFlags extends ClusterFlags {
  readonly namespace?: string | undefined;
  readonly output: string;
  readonly timeout?: string | undefined;
  readonly allNamespaces?: boolean | undefined;
}

/** `rotunda monitor`, and upstream's `monitor-certificates`: a line for everything that happens to certificates. */
export function addMonitor(program: Command): void {
  for (const name of ['monitor', 'monitor-certificates']) {
    withClusterFlags(program.command(name))
      .summary(
        name === 'monitor'
          ? 'print what happens to certificates, bundles, revisions, nodes and operators, live'
          : 'the same as monitor',
      )
      .description(
        'Prints a line for each new certificate, each change of a CA bundle (which CA came, which went), each regeneration asked for and\n' +
          'done, each step of a hand-over (begun, who has loaded it, signing, taken back, whom it leaves behind), each revision, each node that reaches one or has new certificates on its disk, each pool and each operator whose condition\n' +
          'changes: OperatorStable, OperatorDestabilized, OperatorUnstable or OperatorStabilized. Runs until interrupted.',
      )
      .option('-n, --namespace <name>', 'only Secrets and ConfigMaps of this namespace')
      .option('-A, --all-namespaces', 'all namespaces (the default)')
      .option('-o, --output <format>', 'text, or json: one object a line', 'text')
      .option('--timeout <duration>', 'stop after this time (default: never)')
      .action(async (flags: MonitorFlags) => {
        const { runMonitor } = await import('./run.ts');
        await runMonitor(flags);
      });
  }
}
