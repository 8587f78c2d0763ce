import type { Command } from 'commander';
import { type ClusterFlags, withClusterFlags } from '../cluster-flags.ts';
import { withOutputFlag } from '../output/format.ts';

export interface VerifyFlags extends ClusterFlags {
  readonly output: string;
  readonly serverOnly?: boolean | undefined;
  readonly requireReachable?: boolean | undefined;
  readonly timeout: string;
}

/** `rotunda verify`: real handshakes over every edge of the trust graph. */
export function addVerify(program: Command): void {
  withOutputFlag(
    withClusterFlags(
      program
        .command('verify')
        .summary('make real TLS handshakes over every connection of the trust graph')
        .description(
          'Connects to every server of the trust graph that can be reached from here, with the bundles and client certificates the cluster\n' +
            'has now, and says which side refuses which. Private keys of clients are read into memory for that, and nowhere else;\n' +
            '--server-only does without. Exit code 1 when somebody refuses somebody.',
        )
        .argument('[edges...]', 'only connections whose name contains one of these texts'),
    ),
  )
    .option('--server-only', 'show no client certificate: only the servers are checked')
    .option('--require-reachable', 'a server that does not answer is a failure too')
    .option('--timeout <duration>', 'longest wait for one handshake', '5s')
    .action(async (edges: string[], flags: VerifyFlags) => {
      const { runVerify } = await import('./run.ts');
      await runVerify(edges, flags);
    });
}
