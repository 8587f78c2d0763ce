import { CommanderError } from 'commander';
import { buildProgram } from './program.ts';
import { visible } from './table.ts';
import { UsageError } from './usage-error.ts';

/** Runs the command line of this process; failures become one line on standard error and an exit code. */
export async function runProgram(): Promise<void> {
  // A reader that closes its end early (| head) is not an error of ours.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0);
    throw error;
  });
  try {
    await buildProgram().parseAsync();
  } catch (error) {
    if (error instanceof CommanderError) {
      process.exitCode = error.exitCode === 0 ? 0 : 2;
      return;
    }
    const text = error instanceof Error ? error.message : String(error);
    process.stderr.write(`error: ${text.split('\n').map(visible).join('\n')}\n`);
    process.exitCode = error instanceof UsageError ? 2 : 1;
  }
}
