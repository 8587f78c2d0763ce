import { withCluster } from '../cluster.ts';
import { positiveDurationFrom } from '../cluster-flags.ts';
import { UsageError } from '../usage-error.ts';
import type { ReleaseFlags } from './command.ts';
import { type ReleaseSight, readRelease } from './release-sight.ts';
import { lines, tell, untilInterrupted } from './saying.ts';
import { undo } from './undo.ts';

/** `rotunda release kubeadm`: looks, says, and with `--yes` undoes adoption (spec 80, KA-4). */
export async function runRelease(layout: string, flags: ReleaseFlags): Promise<void> {
  if (layout !== 'kubeadm')
    throw new UsageError(`only clusters that kubeadm made can be released: expected kubeadm, found "${layout}"`);
  const timeoutMs = positiveDurationFrom('--timeout', flags.timeout);
  await withCluster(flags, async ({ kube }) => {
    const sight = await readRelease(kube);
    if (sight.present.length === 0 && sight.noted.length === 0) {
      process.stdout.write(lines(['This cluster is not adopted: no object of an adoption is there.']));
      return;
    }
    refuse(sight);
    const isToBeDone = flags.yes === true && flags.dryRun !== true;
    process.stdout.write(lines(sayingOf(sight, isToBeDone)));
    if (!isToBeDone) return;
    await untilInterrupted(
      'stopped: the same command goes on from here, rotunda adopt kubeadm --yes takes the cluster back',
      signal => undo(kube, { signal, timeoutMs, onProgress: tell }),
    );
    process.stdout.write(
      lines([
        "Released. The certificates on the nodes are kubeadm's again, and somebody has to renew them:",
        'see kubeadm certs check-expiration on a control-plane node, or rotunda get certs.',
      ]),
    );
  });
}

function refuse({ decision: { refused } }: ReleaseSight): void {
  if (refused.length === 0) return;
  throw new Error(['this cluster cannot be released now:', ...refused.map(text => `- ${text}`)].join('\n'));
}

function sayingOf({ nodes, present, others, decision: { awaited } }: ReleaseSight, isToBeDone: boolean): string[] {
  const namespace = others.length === 0 ? [] : [`- namespace rotunda stays, because of ${others.join(', ')}`];
  return [
    'This cluster can be released: no hand-over and no round is under way.',
    isToBeDone ? 'What is done:' : 'With --yes:',
    ...(awaited.length === 0 ? [] : [`- first agents bring files back: ${awaited.join('; ')}`]),
    `- operator and agents go, with their rights and the copies of CAs: ${present.length} objects`,
    ...namespace,
    `- files on ${nodes.length === 1 ? 'the node' : `${nodes.length} nodes`} stay as they are; what we kept below pki/rotunda is read by nobody any more`,
    '- nobody renews certificates from then on',
    ...(isToBeDone ? [] : ['Nothing was written.']),
  ];
}
