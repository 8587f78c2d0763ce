import type { Command } from 'commander';
import { type SourceFlags, withNamespaceFlags, withSourceFlags } from '../cluster-flags.ts';
import { withExamples } from '../examples.ts';
import { listed } from '../flag-values.ts';
import { withOutputFlag } from '../output/format.ts';
import { UsageError } from '../usage-error.ts';

export interface ExplainFlags extends SourceFlags {
  readonly filename?: readonly string[] | undefined;
  readonly now?: string | undefined;
  readonly output: string;
  readonly refresh?: string | undefined;
  readonly rotationDay?: string | undefined;
  readonly recovery?: boolean | undefined;
  readonly pool?: string | undefined;
}

/** `rotunda explain`: keep or regenerate, why, and when that changes. */
export function addExplain(program: Command): void {
  const command = program
    .command('explain')
    .summary('say for certificates: keep or regenerate, why, until when; for a MachineConfig: what it does to nodes')
    .description(
      'Runs the decisions of the rotation controllers over the objects of a cluster, or over Secrets and ConfigMaps from files or\n' +
        'folders (-f; a must-gather works too) without a cluster. Nothing is written. Exit code 0 when everything is fine, 1 when an\n' +
        'object needs a person (action "fail"), a name is not found or the input cannot be read.\n\n' +
        'A PEM file or a kubeconfig (-f apiserver.crt) is explained too: what it is in a control plane that kubeadm made, who reads it,\n' +
        'who renews it, when it ends and what ends with it; and of sa.key and sa.pub, which have no end, who is refused when they are replaced.\n\n' +
        'machineconfig/NAME says what that MachineConfig does to nodes instead: which would be drained, rebooted, reloaded or only\n' +
        'written, by the functions that render and roll out. With -f as if that file had been applied.',
    )
    .argument('[names...]', 'only these: NAME, secret/NAME or configmap/NAME; or one machineconfig/NAME')
    .option('-f, --filename <path>', 'file, folder, or - for standard input; repeatable, or joined by commas', listed);
  withOutputFlag(withNamespaceFlags(withSourceFlags(command)))
    .option('--now <time>', 'decide as of this moment, RFC 3339 (default: the clock)')
    .option('--refresh <duration>', 'refresh time of objects that do not say theirs, such as 360h')
    .option('--rotation-day <duration>', 'length of one rotation day (default: what the cluster says, else 24h)')
    .option('--recovery', 'decide as the recovery process does: only what is expired or unusable')
    .option('--pool <name>', 'for a machineconfig: only the nodes of this pool (default: of all pools that select it)')
    .action(async (names: string[], flags: ExplainFlags) => {
      const machineConfig = machineConfigOf(names, flags);
      if (machineConfig !== undefined) {
        const { explainMachineConfig } = await import('./machine-config.ts');
        return explainMachineConfig(machineConfig, flags);
      }
      const { runExplain } = await import('./run.ts');
      await runExplain(names, flags);
    });
  withExamples(
    command,
    'rotunda explain aggregator-client',
    'oc get secrets,configmaps -A -o yaml | rotunda explain -f - --now 2027-01-01T00:00:00Z',
    'rotunda explain -f /etc/kubernetes/pki/apiserver.crt',
    'rotunda explain machineconfig/99-worker-chrony --pool worker -f chrony.yaml',
  );
}

/** The MachineConfig that is asked about, if one is. */
function machineConfigOf(names: readonly string[], { pool }: ExplainFlags): string | undefined {
  const [found] = names.flatMap(name => /^(?:machineconfigs?|mc)\/(.+)$/.exec(name)?.slice(1) ?? []);
  if (found === undefined) {
    if (pool !== undefined) throw new UsageError('--pool goes with machineconfig/NAME only');
    return undefined;
  }
  if (names.length > 1) throw new UsageError(`machineconfig/${found} is explained alone, found ${names.length} names`);
  return found;
}
