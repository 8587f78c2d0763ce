import type { Command } from 'commander';
import { type ClusterFlags, withClusterFlags } from '../cluster-flags.ts';
import { withExamples } from '../examples.ts';

export interface AdoptFlags extends ClusterFlags {
  readonly image?: string | undefined;
  readonly keysOnNodes?: boolean | undefined;
  readonly refresh?: string | undefined;
  readonly pods?: string | undefined;
  readonly timeout: string;
  readonly output: string;
  readonly dryRun?: boolean | undefined;
  readonly yes?: boolean | undefined;
}

export interface ReleaseFlags extends ClusterFlags {
  readonly timeout: string;
  readonly dryRun?: boolean | undefined;
  readonly yes?: boolean | undefined;
}

/** `rotunda adopt` and `rotunda release`: whether Rotunda keeps the certificates of a control plane that others made (spec 80, 4). */
export function addAdoption(program: Command): void {
  const adopt = withClusterFlags(
    program
      .command('adopt')
      .summary('let Rotunda keep the certificates of a cluster that kubeadm made')
      .description(
        'Looks at the cluster, says what it found and what it would do, and writes nothing without --yes. With it an agent is installed on\n' +
          'every node, and an operator; what nodes report is compared, and when all agree the CAs are copied. Nothing is renewed or restarted by\n' +
          'it; plan shows what will be from then on. The same command again changes settings, or the image, and goes on where it was cut off.\n' +
          'release undoes it.',
      )
      .argument('<layout>', 'kubeadm'),
  )
    .option('--image <image>', 'where nodes get Rotunda from (default: that of what is installed)')
    .option('--keys-on-nodes', 'leave the keys of CAs on the control-plane nodes; CAs are then not replaced')
    .option('--refresh <fraction>', 'after which part of its life a leaf is renewed (default: 0.666)')
    .option(
      '--pods <what>',
      'what becomes of pods with older trust when a CA is replaced: wait, restart or ignore (default: wait)',
    )
    .option('--timeout <duration>', 'how long to wait until the cluster is adopted', '10m')
    .option('-o, --output <format>', 'text, or yaml: the objects that would be applied', 'text')
    .option('--dry-run', 'say what would happen; write nothing')
    .option('-y, --yes', 'do it')
    .action(async (layout: string, flags: AdoptFlags) => {
      const { runAdopt } = await import('./adopt.ts');
      await runAdopt(layout, flags);
    });
  withExamples(
    adopt,
    'rotunda adopt kubeadm --image registry.example.com/rotunda:1.2.3',
    'rotunda adopt kubeadm --image registry.example.com/rotunda:1.2.3 --yes',
    'rotunda adopt kubeadm --refresh 0.5 --yes',
  );
  const release = withClusterFlags(
    program
      .command('release')
      .summary('undo adopt: the files on nodes stay, everything else goes')
      .description(
        'Agents, operator, their rights and the copies of CAs go away. The files on nodes stay as they are, and are those of a kubeadm cluster:\n' +
          'kubeadm certs works as on the first day, and somebody has to run it again. Refused in the middle of a hand-over or a round, with what to\n' +
          'wait for. Writes nothing without --yes.',
      )
      .argument('<layout>', 'kubeadm'),
  )
    .option('--timeout <duration>', 'how long to wait until everything is gone', '10m')
    .option('--dry-run', 'say what would happen; write nothing')
    .option('-y, --yes', 'do it')
    .action(async (layout: string, flags: ReleaseFlags) => {
      const { runRelease } = await import('./release.ts');
      await runRelease(layout, flags);
    });
  withExamples(release, 'rotunda release kubeadm', 'rotunda release kubeadm --yes');
}
