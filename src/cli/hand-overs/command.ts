import type { Command } from 'commander';
import { type ClusterFlags, withClusterFlags } from '../cluster-flags.ts';
import { withExamples } from '../examples.ts';

export interface WaiveFlags extends ClusterFlags {
  readonly remove?: boolean | undefined;
  readonly dryRun?: boolean | undefined;
  readonly yes?: boolean | undefined;
}

export interface TakeBackFlags extends ClusterFlags {
  readonly namespace?: string | undefined;
  readonly beginAgain?: boolean | undefined;
  readonly dryRun?: boolean | undefined;
  readonly yes?: boolean | undefined;
}

/** `rotunda waive` and `rotunda take-back`: what people may say in the middle of a hand-over (spec 90, HO-6 and HO-7). */
export function addHandOverVerbs(program: Command): void {
  const waive = withClusterFlags(
    program
      .command('waive')
      .summary('let hand-overs of signers go on without a node')
      .description(
        'Hand-overs wait for every process that verifies, on every node. From now on none waits for what runs on this node: what has not\n' +
          'loaded a new signer refuses what that signs, and is named before you are asked. Noted on the Node, with an event there and one in\n' +
          'the namespace of the operator. It ends by itself when the node becomes ready again; --remove ends it now. A node that will not come\n' +
          'back is better deleted.',
      )
      .argument('<nodes...>', 'node/NAME..., or node NAME...'),
  )
    .option('--remove', 'wait for it again')
    .option('--dry-run', 'say what would happen; write nothing')
    .option('-y, --yes', 'do not ask')
    .action(async (words: string[], flags: WaiveFlags) => {
      const { runWaive } = await import('./waive.ts');
      await runWaive(words, flags);
    });
  withExamples(waive, 'rotunda waive node/worker-7', 'rotunda waive node/worker-7 --remove');
  const takeBack = withClusterFlags(
    program
      .command('take-back')
      .summary('end the hand-over of a signer, or turn it round')
      .description(
        'While a new signer is only being made known (Distributing) it has signed nothing: it leaves the bundles and is forgotten, and so is the\n' +
          'request that began it. Once it signs, the pair before it is handed over to again, the same way, as long as it is kept. A signer that\n' +
          'is due by its own dates would begin again at once: that is refused, unless --begin-again says that another key pair is wanted.',
      )
      .argument('<signer>', 'NAME or secret/NAME'),
  )
    .option('-n, --namespace <name>', 'namespace of the signer')
    .option('--begin-again', 'also a signer that is due: its operator begins anew with another key pair')
    .option('--dry-run', 'say what would happen; write nothing')
    .option('-y, --yes', 'do not ask')
    .action(async (word: string, flags: TakeBackFlags) => {
      const { runTakeBack } = await import('./take-back.ts');
      await runTakeBack(word, flags);
    });
  withExamples(takeBack, 'rotunda take-back kube-control-plane-signer');
}
