import type { Command } from 'commander';
import { beginLean } from './lean.ts';
import type { DaemonFlags } from './process.ts';

/** `rotunda machine-config-daemon`: the agent of one node. */
export function addMachineConfigDaemon(program: Command): void {
  program
    .command('machine-config-daemon')
    .summary('keep this node what its machine config says')
    .description(
      'Writes certificates, files, units and keys of this node, drains and reboots it when a change needs that, and watches for\n' +
        'drift and logins. Reads with the credentials of --kubeconfig, writes its own Node with those of --node-kubeconfig.',
    )
    .option('--node-name <name>', 'the Node this is (default: NODE_NAME)')
    .option('--root <directory>', 'root file system of the node', '/')
    .option(
      '--local',
      'the root is only a directory: what is asked of services and every reboot is written down there',
      false,
    )
    .option(
      '--kubeconfig <file>',
      'how to read the cluster (default: KUBECONFIG, ~/.kube/config, the service account of the pod)',
    )
    .option(
      '--node-kubeconfig <file>',
      "the node's own credentials (default: --kubeconfig where given, else var/lib/kubelet/kubeconfig below the root)",
    )
    .option('--no-kubelet-healthz-enabled', 'do not ask the kubelet how it is')
    .option('--kubelet-healthz-endpoint <url>', 'where the kubelet tells how it is', 'http://localhost:10248/healthz')
    .option('--metrics-listen <address>', 'where metrics are served', '127.0.0.1:8797')
    .option('--health-listen <address>', 'where the liveness probe is answered', '127.0.0.1:8798')
    .option('--log-level <level>', 'debug, info, warn or error', 'info')
    .action(async (flags: DaemonFlags) => {
      beginLean();
      const { runDaemon } = await import('./process.ts');
      await runDaemon(flags);
    });
}
