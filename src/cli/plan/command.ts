import type { Command } from 'commander';
import { type SourceFlags, withSourceFlags } from '../cluster-flags.ts';
import { withOutputFlag } from '../output/format.ts';

export interface PlanFlags extends SourceFlags {
  readonly days: string;
  readonly force?: readonly string[] | undefined;
  readonly now?: string | undefined;
  readonly output: string;
  readonly onlyEffects?: boolean | undefined;
}

/** `rotunda plan`: what will happen, before it does. */
export function addPlan(program: Command): void {
  const command = program
    .command('plan')
    .summary('say what will happen in the next days: objects, reasons, reloads, restarts and reboots, in order')
    .description(
      "Runs the real rotation rules over a copy of the cluster's objects on a clock of its own, and prints everything that will happen:\n" +
        'when, to which object, why, and which processes on which nodes reload or restart for it. With --force it answers "what if I\n' +
        'regenerate this now". Needs no private keys and writes nothing.',
    );
  withOutputFlag(withSourceFlags(command))
    .option(
      '--days <number>',
      'how far to look ahead, in days of 24 h or in rotation days where those are shorter',
      '90',
    )
    .option('--force <object...>', 'as if these were regenerated now: secret/<namespace>/<name>')
    .option('--only-effects', 'leave out what changes no process on any node')
    .option('--now <time>', 'begin at this moment, RFC 3339 (default: the clock)')
    .addHelpText(
      'after',
      '\nExamples:\n  rotunda plan --days 30\n' +
        '  rotunda plan --force secret/openshift-kube-apiserver-operator/loadbalancer-serving-signer\n' +
        '  rotunda plan --from must-gather/ -o json',
    )
    .action(async (flags: PlanFlags) => {
      const { runPlan } = await import('./run.ts');
      await runPlan(flags);
    });
}
