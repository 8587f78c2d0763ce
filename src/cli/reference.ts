/**
 * Writes docs/cli.md from the program itself: `node src/cli/reference.ts > docs/cli.md`. A test compares the two.
 */
import type { Argument, Command } from 'commander';
import { buildProgram } from './program.ts';

/** The reference of every command people type, as Markdown. */
export function referenceOf(program: Command): string {
  const commands = program
    .createHelp()
    .visibleCommands(program)
    .filter(command => command.name() !== 'help');
  const list = commands.map(
    command => `| [\`${command.name()}\`](#${anchorOf(command)}) | ${cell(command.summary())} |`,
  );
  return [
    '# Command reference',
    '',
    'Made from the program by `node src/cli/reference.ts > docs/cli.md`; a test keeps it up to date.',
    '',
    program.description(),
    '',
    'Results go to standard output, everything else to standard error. Exit codes: 0 fine; 1 something needs a person, was not found,',
    'was refused or did not happen in time, or the call or its input was wrong.',
    '',
    'As a kubectl plugin: with `kubectl-rotunda` on the PATH, every command is also `kubectl rotunda <command>`.',
    '',
    '| command | what it does |',
    '|---|---|',
    ...list,
    '',
    ...commands.flatMap(sectionOf),
  ].join('\n');
}

function sectionOf(command: Command): string[] {
  const options = command.options.filter(({ hidden }) => !hidden);
  const rows = options.map(({ flags, description, defaultValue }) => {
    const value = defaultValue === undefined || defaultValue === true ? '' : `; default \`${String(defaultValue)}\``;
    return `| \`${flags}\` | ${cell(description)}${value} |`;
  });
  const args = command.registeredArguments.map(argumentText).join(' ');
  return [
    `## rotunda ${command.name()}`,
    '',
    '```',
    ['rotunda', command.name(), args, options.length > 0 ? '[flags]' : ''].filter(Boolean).join(' '),
    '```',
    '',
    command.description(),
    '',
    ...(rows.length > 0 ? ['| flag | meaning |', '|---|---|', ...rows, ''] : []),
  ];
}

function argumentText(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? '...' : ''}`;
  return argument.required ? `<${name}>` : `[${name}]`;
}

function anchorOf(command: Command): string {
  return `rotunda-${command.name()}`;
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ');
}

if (import.meta.main) process.stdout.write(referenceOf(buildProgram('rotunda')));
