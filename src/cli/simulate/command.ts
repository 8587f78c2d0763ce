import type { Command } from 'commander';
import { withExamples } from '../examples.ts';
import { type ForecastFlags, withForecastFlags } from '../plan/command.ts';

export interface SimulateFlags extends ForecastFlags {
  readonly stoppedFor?: string | undefined;
  readonly off?: string | undefined;
}

/** `rotunda simulate`: is what will happen safe. */
export function addSimulate(program: Command): void {
  const command = program
    .command('simulate')
    .summary('live through the next days in memory and say when somebody would refuse somebody else')
    .description(
      "Runs the real rotation rules over a copy of the cluster's objects on a clock of its own, as plan does, and after every change\n" +
        "Runs the real rotation rules over a copy of the cluster's objects on a clock of its own, as plan does, and after every change\n" +
        'verifies every connection of the trust graph with what the objects then hold. The verdict comes first, then each kind of\n' +
        'connection over which somebody is refused: since when, until when, where and why.\n\n' +
        '--force asks whether a regeneration now is safe; --stopped-for whether the operators may stand still so long, and how long they\n' +
        'may; --off whether the whole cluster may be switched off for that time: what is the last safe wake-up, what is refused after it,\n' +
        'and what needs a hand then. Until a cluster is switched off everything rotates as usual. An hour after the wake-up is left for\n' +
        'those who renew.\n\n' +
        'Roll-outs count as done the moment they begin. Writes nothing. Exit code 1 when somebody refuses somebody, or it is not safe.',
    );
  withForecastFlags(command)
    .option('--stopped-for <duration>', 'as if no operator ran for this time from the beginning on, such as 720h')
    .option(
      '--off <from..to>',
      'as if the whole cluster were switched off from one day or time to another, such as 2026-12-20..2027-02-01',
    )
    .action(async (flags: SimulateFlags) => {
      const { runSimulate } = await import('./run.ts');
      await runSimulate(flags);
    });
  withExamples(
    command,
    'rotunda simulate --days 365',
    'rotunda simulate --stopped-for 720h --from must-gather/',
    'rotunda simulate --off 2026-12-20..2027-02-01',
    'rotunda simulate --force secret/openshift-kube-apiserver-operator/loadbalancer-serving-signer',
  );
}
