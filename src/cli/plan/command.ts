import type { Command } from 'commander';
import { type SourceFlags, withSourceFlags } from '../cluster-flags.ts';
import { withExamples } from '../examples.ts';
import { listed } from '../flag-values.ts';
import { type LayoutFlags, withLayoutFlag } from '../look/layout-flag.ts';
import { withOutputFlag } from '../output/format.ts';

/** What every look into the future takes. */
export interface ForecastFlags extends SourceFlags {
  readonly days: string;
  readonly force?: readonly string[] | undefined;
  readonly now?: string | undefined;
  readonly handOver?: string | undefined;
  readonly output: string;
}

export interface PlanFlags extends ForecastFlags, LayoutFlags {
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
        'regenerate this now". A signer that is handed over is first distributed and then signs, as PHASE says, and everybody counts as\n' +
        'having loaded what was rolled out. Needs no private keys and writes nothing.\n\n' +
        'First come the ends of certificates that no controller renews, as warnings: those of TLS Secrets, and of a control plane that\n' +
        'kubeadm made those that can be seen from here, or in the files of a folder (--from /etc/kubernetes). Of an adopted\n' +
        'one the plan has the renewals, and when an older key of its service accounts leaves.',
    );
  withLayoutFlag(withForecastFlags(command))
    .option('--only-effects', 'leave out what changes no process on any node')
    .action(async (flags: PlanFlags) => {
      const { runPlan } = await import('./run.ts');
      await runPlan(flags);
    });
  withExamples(
    command,
    'rotunda plan --days 30',
    'rotunda plan --force secret/openshift-kube-apiserver-operator/loadbalancer-serving-signer',
    'rotunda plan --from must-gather/ -o json',
    'rotunda plan --from /etc/kubernetes --days 365',
  );
}

export function withForecastFlags(command: Command): Command {
  return withOutputFlag(withSourceFlags(command))
    .option(
      '--days <number>',
      'how far to look ahead, in days of 24 h or in rotation days where those are shorter',
      '90',
    )
    .option(
      '--force <object>',
      'as if secret/<namespace>/<name> were regenerated now; repeatable, or joined by commas',
      listed,
    )
    .option(
      '--hand-over <how>',
      'as if new signers signed by receipts (once everybody has loaded them) or by the clock (default: as the operator says it does)',
    )
    .option('--now <time>', 'begin at this moment, RFC 3339 (default: the clock)');
}
