#!/usr/bin/env node
import { Command, CommanderError } from 'commander';
import { VERSION } from '../kube/version.ts';
import { addApi } from './api/command.ts';
import { addExplain } from './explain/command.ts';
import { addNodePrograms } from './node/command.ts';
import { addOperators } from './operator/command.ts';
import { addUp } from './up/command.ts';
import { UsageError } from './usage-error.ts';

const program = new Command('rotunda')
  .description(
    'Keeps every certificate of a Kubernetes control plane rotating by itself, and says beforehand what will happen.',
  )
  .version(VERSION)
  .showHelpAfterError('(run rotunda --help for the commands)')
  .exitOverride();
addUp(program);
addExplain(program);
addApi(program);
addOperators(program);
addNodePrograms(program);
// A reader that closes its end early (| head) is not an error of ours.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) {
    process.exitCode = error.exitCode === 0 ? 0 : 2;
  } else if (error instanceof UsageError) {
    process.stderr.write(`error: ${error.message}\n`);
    process.exitCode = 2;
  } else {
    process.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
}
