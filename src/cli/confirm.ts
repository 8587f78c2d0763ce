import { createInterface } from 'node:readline/promises';
import { UsageError } from './usage-error.ts';

/**
 * Asks before something that cannot be undone. `--yes` answers beforehand; where nobody can be asked, it is required. Throws when the
 * answer is no.
 */
export async function confirm(question: string, yes: boolean | undefined): Promise<void> {
  if (yes) return;
  if (!process.stdin.isTTY || !process.stderr.isTTY) {
    throw new UsageError(`${question} This cannot be undone: say --yes, or look first with --dry-run`);
  }
  const prompt = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await prompt.question(`${question} This cannot be undone. Type yes to go on: `);
    if (answer.trim().toLowerCase() !== 'yes') throw new Error('stopped: nothing was written');
  } finally {
    prompt.close();
  }
}
