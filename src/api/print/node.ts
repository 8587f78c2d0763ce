import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { AGE, NAME, printerOf, text, wideText } from './column.ts';

export const nodePrinter = printerOf<Node>([
  NAME,
  text('Status', 'Whether the node is ready and takes new pods.', statusOf),
  text('Roles', 'What the node is for.', node => rolesOf(node).join(',') || '<none>'),
  AGE,
  text('Version', 'The version of the kubelet.', node => node.status?.nodeInfo?.kubeletVersion),
  wideText('Internal-IP', 'The address inside the cluster.', node => addressOf(node, 'InternalIP')),
  wideText('External-IP', 'The address from outside.', node => addressOf(node, 'ExternalIP')),
  wideText('OS-Image', 'The operating system.', node => node.status?.nodeInfo?.osImage || '<unknown>'),
  wideText('Kernel-Version', 'The kernel.', kernelOf),
  wideText('Container-Runtime', 'What runs the containers.', node => {
    return node.status?.nodeInfo?.containerRuntimeVersion || '<unknown>';
  }),
]);

const ROLE_PREFIX = 'node-role.kubernetes.io/';
const ROLE_LABEL = 'kubernetes.io/role';

function statusOf(node: Node): string {
  const ready = node.status?.conditions?.find(condition => condition.type === 'Ready');
  const health = ready === undefined ? 'Unknown' : ready.status === 'True' ? 'Ready' : 'NotReady';
  return node.spec?.unschedulable ? `${health},SchedulingDisabled` : health;
}

function rolesOf(node: Node): string[] {
  const roles = new Set<string>();
  for (const [label, value] of Object.entries(node.metadata?.labels ?? {})) {
    const role = label.startsWith(ROLE_PREFIX) ? label.slice(ROLE_PREFIX.length) : label === ROLE_LABEL ? value : '';
    if (role !== '') roles.add(role);
  }
  return [...roles].sort();
}

function addressOf(node: Node, type: string): string {
  return node.status?.addresses?.find(address => address.type === type)?.address ?? '<none>';
}

function kernelOf(node: Node): string {
  const { kernelVersion, architecture } = node.status?.nodeInfo ?? {};
  const kernel = kernelVersion || '<unknown>';
  return architecture ? `${kernel} (${architecture})` : kernel;
}
