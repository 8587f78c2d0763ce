import type { Command } from 'commander';
import { type ClusterFlags, withClusterFlags } from '../cluster-flags.ts';
import { withExamples } from '../examples.ts';
import { listed, wholeNumberFrom } from '../flag-values.ts';
import { UsageError } from '../usage-error.ts';

export interface ConsoleFlags extends ClusterFlags {
  readonly host: string;
  readonly port: string;
  readonly tlsCert?: string | undefined;
  readonly tlsKey?: string | undefined;
  readonly hostname?: readonly string[] | undefined;
  readonly probe?: boolean | undefined;
}

/** `rotunda console`: the web page for a cluster. */
export function addConsole(program: Command): void {
  const command = program
    .command('console')
    .summary('serve the web console of a cluster')
    .description(
      'Serves a web page on this machine that shows what rotates when and why, the trust graph, roll-outs, pools and events, live, and\n' +
        'can force a rotation or pause a pool after showing the plan of it. Prints a URL that logs in once, as the user of the\n' +
        'kubeconfig; others log in with a bearer token of the cluster and see and do what they are allowed to. Shows no key material.',
    );
  withClusterFlags(command)
    .option('--host <address>', 'address to listen on; other than loopback needs TLS', '127.0.0.1')
    .option('--port <number>', 'port to listen on; 0 chooses a free one', '0')
    .option('--tls-cert <file>', 'serve HTTPS with this certificate, PEM; read again when it changes')
    .option('--tls-key <file>', 'its key')
    .option(
      '--hostname <name>',
      'further name under which browsers may call it; repeatable, or joined by commas',
      listed,
    )
    .option(
      '--probe',
      'try live handshakes over the trust graph every few seconds, with the certificates the kubeconfig may read',
    )
    .action(async (flags: ConsoleFlags) => {
      const port = wholeNumberFrom('--port', flags.port, 0, 65_535);
      const { tlsCert, tlsKey } = flags;
      if ((tlsCert === undefined) !== (tlsKey === undefined))
        throw new UsageError('--tls-cert and --tls-key go together');
      const tls = tlsCert === undefined || tlsKey === undefined ? undefined : { certFile: tlsCert, keyFile: tlsKey };
      const { runConsole } = await import('./run.ts');
      await runConsole({ flags, port, tls });
    });
  withExamples(
    command,
    'rotunda console',
    'rotunda console --host 0.0.0.0 --port 8443 --hostname console.example.com --tls-cert tls.crt --tls-key tls.key',
  );
}
