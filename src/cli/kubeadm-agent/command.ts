import type { Command } from 'commander';
import { beginLean } from '../daemon/lean.ts';
import type { KubeadmAgentFlags } from './process.ts';

/** `rotunda kubeadm-agent`: the agent of one node of a cluster that kubeadm made. */
export function addKubeadmAgent(program: Command): void {
  program
    .command('kubeadm-agent')
    .summary('keep the certificates of a node that kubeadm made what is wanted of them')
    .description(
      'Says on its Node what is on this node, and makes it what ConfigMap rotunda-pki/node-<name> wants: leaves, CAs, kubeconfigs, static\n' +
        "pods, the kubelet. Without --kubeconfig it takes the pod's token, and server and CA of the node's own kubelet.conf.",
    )
    .option('--node-name <name>', 'the Node this is (default: NODE_NAME, else the name of this machine)')
    .option('--root <directory>', 'root file system of the node', '/')
    .option('--certificates-dir <directory>', 'where kubeadm keeps certificates on the node', '/etc/kubernetes/pki')
    .option('--kubeconfig <file>', 'how to reach the cluster')
    .option('--listen <address>', 'where health and metrics are served', '127.0.0.1:0')
    .option('--log-level <level>', 'debug, info, warn or error', 'info')
    .action(async (flags: KubeadmAgentFlags) => {
      beginLean();
      const { runKubeadmAgent } = await import('./process.ts');
      await runKubeadmAgent(flags);
    });
}
