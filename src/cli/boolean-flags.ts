import { Command, type ParseOptionsResult } from 'commander';
import { UsageError } from './usage-error.ts';

/** A command that takes `=` where kubectl does: `--all=true`, `--dry-run=false`, `--dry-run=server`, `-o=json`. */
export class KubectlCommand extends Command {
  override createCommand(name?: string): KubectlCommand {
    return new KubectlCommand(name);
  }

  override parseOptions(args: string[]): ParseOptionsResult {
    const end = args.indexOf('--');
    const flags = end < 0 ? args : args.slice(0, end);
    return super.parseOptions([...flags.flatMap(word => this.#plain(word)), ...args.slice(flags.length)]);
  }

  /** The flag alone where it is set, nothing where it is not; flags with values and any other word stay. */
  #plain(word: string): string[] {
    const [, flag, value = ''] = /^(--?[a-z][-a-z]*)=(.*)$/is.exec(word) ?? [];
    const option = this.options.find(({ short, long }) => flag !== undefined && (flag === short || flag === long));
    if (flag === undefined || option === undefined) return [word];
    if (option.required || option.optional) return flag === option.short ? [flag, value] : [word];
    const isDryRun = option.long === '--dry-run';
    if (value === 'true' || (isDryRun && value === 'server')) return [flag];
    if (value === 'false' || (isDryRun && value === 'none')) return [];
    throw new UsageError(
      `${flag} must be ${isDryRun ? 'true, false, none or server' : 'true or false'}, found "${value}"`,
    );
  }
}
