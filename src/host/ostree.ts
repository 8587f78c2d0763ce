import { commandOutput, type RunCommand } from './command.ts';

/**
 * What kept the last boot from finalizing the deployment that was staged in it, as its journal has it (spec 60, 5.3.5); empty where
 * nothing did. Throws where there is no such journal.
 */
export async function finalizeFailure(run: RunCommand): Promise<string> {
  const unit = 'ostree-finalize-staged.service';
  const journal = await commandOutput(run, ['journalctl', '-b', '-1', '-o', 'cat', '_UID=0', '-u', unit]);
  return journal.split('\n').find(line => line.startsWith('error:')) ?? '';
}

/** Objects are flushed one by one, so that a new deployment does not hold up etcd on the same disk (spec 60, 5.2.4). */
export async function flushEachObject(run: RunCommand): Promise<void> {
  await commandOutput(run, ['ostree', '--repo=/sysroot/ostree/repo', 'config', 'set', 'core.per-object-fsync', 'true']);
}
