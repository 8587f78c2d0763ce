import type { Command } from 'commander';
import { type ClusterFlags, withClusterFlags } from '../cluster-flags.ts';
import { type LayoutFlags, withLayoutFlag } from '../look/layout-flag.ts';
import { withOutputFlag } from '../output/format.ts';

export interface VerifyFlags extends ClusterFlags, LayoutFlags {
  readonly output: string;
  readonly serverOnly?: boolean | undefined;
  readonly ignoreUnreachable?: boolean | undefined;
  readonly nodes?: string | undefined;
  readonly timeout: string;
}

/** `rotunda verify`: real handshakes over every edge of the trust graph. */
export function addVerify(program: Command): void {
  withLayoutFlag(
    withOutputFlag(
      withClusterFlags(
        program
          .command('verify')
          .summary('make real TLS handshakes over every connection of the trust graph')
          .description(
            'Connects to every server of the trust graph, as each of its clients would, and says which side refuses which. Where the disks of nodes\n' +
              'can be seen, which is so for the nodes of `rotunda up` beside its kubeconfig, the bundles and client certificates are those on the\n' +
              'disk, kubeconfigs of kubelets included. Elsewhere they are those that are published, and the result says AcceptedAsPublished: what\n' +
              'a node really has is not known then. Private keys of clients are read into memory, and nowhere else; --server-only does without.\n' +
              'Exit code 1 when somebody refuses somebody, and when a server does not answer.\n' +
              'Of a control plane that kubeadm made, connections whose CA is in files only are listed as Skipped, with where those are.',
          )
          .argument('[edges...]', 'only connections whose name contains one of these texts'),
      ),
    ),
  )
    .option('--server-only', 'show no client certificate: only the servers are checked')
    .option('--ignore-unreachable', 'a server that does not answer is no failure')
    .option('--nodes <folder>', 'where the root file systems of nodes are, each in a folder of its name')
    .option('--timeout <duration>', 'longest wait for one handshake', '5s')
    .action(async (edges: string[], flags: VerifyFlags) => {
      const { runVerify } = await import('./run.ts');
      await runVerify(edges, flags);
    });
}
