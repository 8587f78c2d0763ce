import type { Command } from 'commander';
import { UsageError } from '../usage-error.ts';
import type { Layout } from './look.ts';

export interface LayoutFlags {
  readonly layout?: string | undefined;
}

const LAYOUTS: readonly Layout[] = ['openshift', 'kubeadm'];

export function withLayoutFlag(command: Command): Command {
  return command.option(
    '--layout <name>',
    'whose names and files the control plane has, openshift or kubeadm (default: what the cluster shows)',
  );
}

/** `--layout`. */
export function saidLayout(text: string | undefined): Layout | undefined {
  const said = LAYOUTS.find(layout => layout === text);
  if (text !== undefined && said === undefined) {
    throw new UsageError(`--layout must be ${LAYOUTS.join(' or ')}, found "${text}"`);
  }
  return said;
}
