import type { Command } from 'commander';
import { type ClusterFlags, withClusterFlags } from '../cluster-flags.ts';
import { MACHINE_FORMATS } from '../output/format.ts';

export interface WaitFlags extends ClusterFlags {
  readonly for: string;
  readonly timeout: string;
  readonly minimumStablePeriod?: string | undefined;
  readonly output: string;
  readonly namespace?: string | undefined;
}

/** `rotunda wait`: until the cluster has done what it was told. */
export function addWait(program: Command): void {
  withClusterFlags(
    program
      .command('wait')
      .summary('wait until the cluster is stable, a certificate is new, a roll-out is done or a pool is updated')
      .description(
        'Waits for one of:\n' +
          '  --for stable                     every ClusterOperator is Available, and neither Progressing nor Degraded\n' +
          '  --for regenerated secret/NAME    no regeneration is pending, and the certificate is good\n' +
          '  --for rolled-out OPERAND         every node runs the latest revision of kube-apiserver, etcd, ...\n' +
          '  --for updated pool/NAME          every machine of the pool is updated\n' +
          'Exit code 0 when it has come to pass, 1 when the time was over or nothing of that name is there.',
      )
      .argument('[objects...]', 'secret/NAME, an operand, or pool/NAME; none with --for stable'),
  )
    .requiredOption('--for <what>', 'stable, regenerated, rolled-out or updated')
    .option('-n, --namespace <name>', 'namespace of the Secrets')
    .option('-A, --all-namespaces', 'Secrets of these names in all namespaces (the default)')
    .option('--timeout <duration>', 'give up after this time', '1h')
    .option(
      '--minimum-stable-period <duration>',
      'it has to stay so for this time; 0s: once is enough (default: 5m with --for stable, else 0s)',
    )
    .option('-o, --output <format>', `text, or for machines ${MACHINE_FORMATS}`, 'text')
    .action(async (objects: string[], flags: WaitFlags) => {
      const { runWait } = await import('./run.ts');
      await runWait(objects, flags);
    });
}
