import type { Command } from 'commander';
import { withExamples } from '../examples.ts';
import { type ForecastFlags, withForecastFlags } from '../plan/command.ts';

export interface SimulateFlags extends ForecastFlags {
  readonly stoppedFor?: string | undefined;
}

/** `rotunda simulate`: is what will happen safe. */
export function addSimulate(program: Command): void {
  const command = program
    .command('simulate')
    .summary('live through the next days in memory and say when somebody would refuse somebody else')
    .description(
      "Runs the real rotation rules over a copy of the cluster's objects on a clock of its own, as plan does, and after every change\n" +
        'verifies every connection of the trust graph with what the objects then hold. Prints each refusal: since when, until when, who\n' +
        'refuses whom and why. With --force it answers whether a regeneration now is safe, with --stopped-for how long the operators may\n' +
        'be down. Roll-outs count as done the moment they begin. Writes nothing. Exit code 1 when somebody refuses somebody.',
    );
  withForecastFlags(command)
    .option('--stopped-for <duration>', 'as if no operator ran for this time from the beginning on, such as 720h')
    .action(async (flags: SimulateFlags) => {
      const { runSimulate } = await import('./run.ts');
      await runSimulate(flags);
    });
  withExamples(
    command,
    'rotunda simulate --days 365',
    'rotunda simulate --stopped-for 720h --from must-gather/',
    'rotunda simulate --force secret/openshift-kube-apiserver-operator/loadbalancer-serving-signer',
  );
}
