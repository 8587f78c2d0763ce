import type { Command } from 'commander';
import type { HandOverMode } from '../hand-over/sync.ts';
import { UsageError } from './usage-error.ts';

/** `--hand-over`: when a new signer begins to sign. */
export function withHandOverFlag(command: Command): Command {
  return command.option(
    '--hand-over <how>',
    'when a new signer signs: receipts (as soon as everybody who verifies has loaded it) or clock (after a tenth of the refresh time, as OpenShift 4.16 does)',
    'receipts',
  );
}

export function handOverFrom(text: string): HandOverMode {
  if (text === 'receipts' || text === 'clock') return text;
  throw new UsageError(`--hand-over must be receipts or clock, found "${text}"`);
}
