import type { Command } from 'commander';

/** Flags of every process that works as long as it leads. */
export function withOperatorFlags(command: Command): Command {
  return withProcessFlags(command)
    .option('--no-leader-elect', 'work without asking who leads; for a single instance only')
    .option(
      '--leader-elect-lease-duration <duration>',
      'how long a leader may be silent before another takes over',
      '137s',
    )
    .option('--leader-elect-renew-deadline <duration>', 'how long a leader that cannot renew goes on', '107s')
    .option(
      '--leader-elect-retry-period <duration>',
      'how long between two attempts to take or renew the lease',
      '26s',
    );
}

/** Flags of every process that works on a cluster. */
export function withProcessFlags(command: Command): Command {
  return command
    .option(
      '--kubeconfig <file>',
      'how to reach the cluster (default: KUBECONFIG, ~/.kube/config, the service account of the pod)',
    )
    .option('--context <name>', 'context of the kubeconfig')
    .option('--listen <address>', 'where health and metrics are served', '127.0.0.1:0')
    .option('--log-level <level>', 'debug, info, warn or error', 'info');
}
