import type { Command } from 'commander';
import { UsageError } from '../usage-error.ts';

/** `rotunda completion`: a script that makes a shell complete commands, flags and types. */
export function addCompletion(program: Command): void {
  program
    .command('completion')
    .summary('print a script that teaches a shell to complete commands and flags')
    .description(
      'Prints the completion script of a shell.\n' +
        '  bash:  source <(rotunda completion bash)\n' +
        '  zsh:   source <(rotunda completion zsh)\n' +
        '  fish:  rotunda completion fish | source\n' +
        'kubectl completes its plugins by programs on the PATH; kubectl_complete-rotunda is the one for this plugin:\n' +
        '  rotunda completion kubectl > ~/.local/bin/kubectl_complete-rotunda && chmod +x ~/.local/bin/kubectl_complete-rotunda',
    )
    .argument('<shell>', 'bash, zsh, fish or kubectl')
    .action(async (shell: string) => {
      const { completionScript, SHELLS } = await import('./script.ts');
      const known = SHELLS.find(candidate => candidate === shell);
      if (known === undefined) throw new UsageError(`there is completion for ${SHELLS.join(', ')}, not for "${shell}"`);
      process.stdout.write(completionScript(program, known));
    });
}
