import { Argument, type Command } from 'commander';
import type { Published } from '../../kubeadm/exchange.ts';
import { type ClusterFlags, withClusterFlags } from '../cluster-flags.ts';
import { withExamples } from '../examples.ts';

export interface RotateFlags extends ClusterFlags {
  readonly plan?: boolean | undefined;
  readonly retire?: boolean | undefined;
  readonly takeBack?: boolean | undefined;
  readonly follow: boolean;
  readonly yes?: boolean | undefined;
}

const ROTATABLE: readonly Published[] = ['ca', 'front-proxy-ca', 'etcd-ca', 'sa'];

/** `rotunda rotate`: another CA for an adopted kubeadm cluster, or other keys of service accounts (spec 80, 6 and 7). */
export function addRotate(program: Command): void {
  const command = withClusterFlags(
    program
      .command('rotate')
      .summary('replace a CA of a cluster that kubeadm made, or the keys of its service accounts')
      .description(
        'A new CA, or with sa a new key for tokens of service accounts, is made known everywhere first; it signs only when everybody has loaded\n' +
          'it, and the one before it stays trusted until its end (sa: until its tokens have ended) or until --retire. Shows what will happen where, asks, and follows. It may be stopped and run again at any time: the operator goes\n' +
          'on by itself. Needs a cluster adopted with rotunda adopt kubeadm.',
      )
      .addArgument(new Argument('<what>', 'which one').choices([...ROTATABLE])),
  )
    .option('--plan', 'show what would happen, and write nothing')
    .option('--take-back', 'end it while it is only made known; hand over to the one before once it signs')
    .option('--retire', 'take what is older out of all files, once nothing shows it any more')
    .option('--no-follow', 'ask for it and return')
    .option('-y, --yes', 'do not ask')
    .action(async (what: Published, flags: RotateFlags) => {
      const { runRotate } = await import('./run.ts');
      await runRotate(what, flags);
    });
  withExamples(
    command,
    'rotunda rotate ca --plan',
    'rotunda rotate ca',
    'rotunda rotate ca --take-back',
    'rotunda rotate ca --retire',
    'rotunda rotate sa --plan',
  );
}
