import type { Command } from 'commander';
import { GET_KINDS } from '../get/words.ts';

/** Three shells, and kubectl itself, which asks a program of its own about a plugin. */
export const SHELLS = ['bash', 'zsh', 'fish', 'kubectl'] as const;
export type Shell = (typeof SHELLS)[number];

/** What can follow a command: its flags and the words it knows. */
interface Completed {
  readonly name: string;
  readonly summary: string;
  readonly flags: readonly { readonly text: string; readonly description: string }[];
  readonly words: readonly string[];
}

/** The script for a shell, made from the commands themselves. */
export function completionScript(program: Command, shell: Shell): string {
  const commands = program.commands
    // Programs of nodes are started by manifests, not by people; commander hides nothing from us, so ask its help.
    .filter(command => program.createHelp().visibleCommands(program).includes(command))
    .map(completedOf);
  switch (shell) {
    case 'bash':
      return bash(commands);
    case 'zsh':
      return zsh(commands);
    case 'fish':
      return fish(commands);
    case 'kubectl':
      return kubectl(commands);
  }
}

function completedOf(command: Command): Completed {
  const flags = command.options
    .filter(({ hidden }) => !hidden)
    .flatMap(({ short, long, description }) =>
      [short, long].filter(text => text !== undefined).map(text => ({ text, description })),
    );
  const name = command.name();
  const words = name === 'get' || name === 'describe' ? [...GET_KINDS] : name === 'completion' ? [...SHELLS] : [];
  return { name, summary: command.summary(), flags: [...flags, { text: '--help', description: 'help' }], words };
}

function bash(commands: readonly Completed[]): string {
  const cases = casesOf(commands, '    ');
  return `# bash completion for rotunda
_rotunda() {
  local word="\${COMP_WORDS[COMP_CWORD]}" command="" choices="" i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "\${COMP_WORDS[i]}" in
      -*) ;;
      *) command="\${COMP_WORDS[i]}"; break ;;
    esac
  done
  case "$command" in
    "") choices="${commands.map(({ name }) => name).join(' ')} --help --version" ;;
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$choices" -- "$word"))
}
complete -o default -F _rotunda rotunda kubectl-rotunda
`;
}

/** What may follow each command, as branches of a shell's `case`. */
function casesOf(commands: readonly Completed[], indent: string): string[] {
  return commands.map(
    ({ name, flags, words }) =>
      `${indent}${name}) choices="${[...words, ...flags.map(({ text }) => text)].join(' ')}" ;;`,
  );
}

/** kubectl runs it with the words after `kubectl rotunda`, the last one unfinished; `:0` lets shells offer files where nothing fits. */
function kubectl(commands: readonly Completed[]): string {
  const cases = casesOf(commands, '  ');
  return `#!/bin/sh
# completion of "kubectl rotunda": an executable file on the PATH called kubectl_complete-rotunda
command="" last="" left=$#
for word in "$@"; do
  left=$((left - 1))
  if [ "$left" -eq 0 ]; then last="$word"; break; fi
  case "$word" in
    -*) ;;
    *) [ -n "$command" ] || command="$word" ;;
  esac
done
case "$command" in
  "") choices="${commands.map(({ name }) => name).join(' ')} --help --version" ;;
${cases.join('\n')}
  *) choices="" ;;
esac
for choice in $choices; do
  case "$choice" in "$last"*) echo "$choice" ;; esac
done
echo ":0"
`;
}

function zsh(commands: readonly Completed[]): string {
  const quoted = (text: string) => text.replaceAll("'", "'\\''").replaceAll(':', '\\:').replaceAll('\n', ' ');
  const list = commands.map(({ name, summary }) => `    '${name}:${quoted(summary)}'`);
  const cases = commands.map(({ name, flags, words }) => {
    const values = [...words.map(quoted), ...flags.map(({ text, description }) => `${text}:${quoted(description)}`)];
    return `    ${name}) choices=(${values.map(value => `'${value}'`).join(' ')}) ;;`;
  });
  return `#compdef rotunda kubectl-rotunda
_rotunda() {
  local -a choices
  if (( CURRENT == 2 )); then
    choices=(
${list.join('\n')}
    )
    _describe 'command' choices
    return
  fi
  case "\${words[2]}" in
${cases.join('\n')}
  esac
  _describe 'argument' choices || _files
}
compdef _rotunda rotunda kubectl-rotunda
`;
}

function fish(commands: readonly Completed[]): string {
  const quoted = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\n', ' ')}'`;
  const lines = commands.flatMap(({ name, summary, flags, words }) => [
    `complete -c rotunda -n __fish_use_subcommand -a ${name} -d ${quoted(summary)}`,
    ...words.map(word => `complete -c rotunda -n '__fish_seen_subcommand_from ${name}' -a ${word}`),
    ...flags.map(({ text, description }) => {
      const flag = text.startsWith('--') ? `-l ${text.slice(2)}` : `-s ${text.slice(1)}`;
      return `complete -c rotunda -n '__fish_seen_subcommand_from ${name}' ${flag} -d ${quoted(description)}`;
    }),
  ]);
  return `# fish completion for rotunda\n${lines.join('\n')}\ncomplete -c kubectl-rotunda -w rotunda\n`;
}
