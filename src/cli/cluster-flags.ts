import type { Command } from 'commander';
import { parseGoDuration, seconds } from '../kube/duration.ts';
import { UsageError } from './usage-error.ts';

/** How every command of the cockpit is told which cluster, or which folder, to look at. */
export interface ClusterFlags {
  readonly kubeconfig?: string | undefined;
  readonly context?: string | undefined;
  readonly namespace?: string | undefined;
  readonly allNamespaces?: boolean | undefined;
  readonly requestTimeout?: string | undefined;
}

export interface SourceFlags extends ClusterFlags {
  readonly from?: string | undefined;
}

export function withClusterFlags(command: Command): Command {
  return command
    .option('--kubeconfig <file>', 'how to reach the cluster (default: KUBECONFIG, ~/.kube/config, the pod itself)')
    .option('--context <name>', 'context of the kubeconfig')
    .option('--request-timeout <duration>', 'longest wait for one answer of the cluster', '30s');
}

export function withNamespaceFlags(command: Command): Command {
  return command
    .option('-n, --namespace <name>', 'only this namespace')
    .option('-A, --all-namespaces', 'all namespaces (the default: certificates live in many)');
}

export function withSourceFlags(command: Command): Command {
  return withClusterFlags(command).option(
    '--from <folder>',
    'read a must-gather or another folder of YAML and JSON, or one of PEM files and kubeconfigs, instead of a cluster',
  );
}

/** The one namespace asked for; undefined: all of them. */
export function namespaceFrom({ namespace, allNamespaces }: ClusterFlags): string | undefined {
  if (namespace !== undefined && allNamespaces) {
    throw new UsageError('--namespace and --all-namespaces contradict each other: give one of them');
  }
  if (namespace !== undefined && !/^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/.test(namespace)) {
    throw new UsageError(`--namespace must be the name of a namespace, found "${namespace}"`);
  }
  return namespace;
}

export function refuseBoth({ from, kubeconfig, context }: SourceFlags): void {
  if (from === undefined) return;
  if (kubeconfig !== undefined) throw new UsageError('--from and --kubeconfig contradict each other: give one of them');
  if (context !== undefined) throw new UsageError('--from and --context contradict each other: give one of them');
}

/** A Go duration above 0, such as `90s` or `2h`. */
export function positiveDurationFrom(flag: string, text: string): number {
  const duration = parseGoDuration(text);
  if (duration === undefined || duration <= 0) {
    throw new UsageError(`${flag} must be a duration above 0 such as 360h or 10s, found "${text}"`);
  }
  return duration;
}

export function requestTimeoutMs({ requestTimeout }: ClusterFlags): number {
  return requestTimeout === undefined ? seconds(30) : positiveDurationFrom('--request-timeout', requestTimeout);
}
