import { CommanderError } from 'commander';
import { buildProgram } from './program.ts';
import { visible } from './table.ts';

/** Runs the command line of this process; failures become one line on standard error and exit code 1. */
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
      process.exitCode = error.exitCode === 0 ? 0 : 1;
      return;
    }
    const text = error instanceof Error ? error.message : String(error);
    process.stderr.write(`error: ${text.split('\n').map(visible).join('\n')}\n`);
    process.exitCode = 1;
  }
}
