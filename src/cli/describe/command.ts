import type { Command } from 'commander';
import { type SourceFlags, withNamespaceFlags, withSourceFlags } from '../cluster-flags.ts';
import { MACHINE_FORMATS } from '../output/format.ts';

export interface DescribeFlags extends SourceFlags {
  readonly now?: string | undefined;
  readonly output: string;
}

/** `rotunda describe`: everything known about one object, with what a change of it does. */
export function addDescribe(program: Command): void {
  const command = program
    .command('describe')
    .summary('tell everything about a certificate, signer, bundle, node, revision, pool or hand-over')
    .description(
      'Tells what an object is, who signed it, who trusts it, what the rules will do next and when, and which processes on which nodes\n' +
        'reload or restart when it changes; of a signer also where its hand-over stands: who has loaded the next one, by which evidence, and\n' +
        'what would end the wait. Private keys are never shown.',
    )
    .argument('<type>', 'cert, signer, bundle, node, revision, pool or hand-over; also TYPE/NAME')
    .argument('[names...]', 'which ones');
  withNamespaceFlags(withSourceFlags(command))
    .option('-o, --output <format>', `text, or for machines ${MACHINE_FORMATS}`, 'text')
    .option('--now <time>', 'judge as of this moment, RFC 3339 (default: the clock)')
    .action(async (type: string, names: string[], flags: DescribeFlags) => {
      const { runDescribe } = await import('./run.ts');
      await runDescribe([type, ...names], flags);
    });
}
