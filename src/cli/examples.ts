import type { Command } from 'commander';

/** Examples below the help of a command, written with `rotunda` and shown as the program was called: as a plugin it is `kubectl rotunda`. */
export function withExamples(command: Command, ...examples: readonly string[]): Command {
  return command.addHelpText('after', ({ command: called }) => {
    const name = called.parent?.name() ?? 'rotunda';
    return ['', 'Examples:', ...examples.map(line => `  ${line.replace(/\brotunda(?= [a-z])/, name)}`)].join('\n');
  });
}
