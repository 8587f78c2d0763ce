import { type Proof, proveHandOver } from '../../twin/prove/prove.ts';
import { REMOVABLE, type RemovableRule } from '../../twin/prove/rules.ts';
import { wholeNumberFrom } from '../flag-values.ts';
import { machineFormatFrom } from '../output/format.ts';
import { API_VERSION, printDocument, refuseBadTemplate } from '../output/print.ts';
import { UsageError } from '../usage-error.ts';
import type { ProveFlags } from './command.ts';

const MOST_NODES = 3;
const MOST_FAULTS = 3;

export async function runProve(what: string, flags: ProveFlags): Promise<void> {
  if (what !== 'hand-over') throw new UsageError(`what can be proved is hand-over, found "${what}"`);
  const options = {
    nodes: wholeNumberFrom('--nodes', flags.nodes, 1, MOST_NODES),
    crashes: wholeNumberFrom('--crashes', flags.crashes, 0, MOST_FAULTS),
    losses: wholeNumberFrom('--losses', flags.losses, 0, MOST_FAULTS),
    happenings: wholeNumberFrom(
      '--happenings',
      flags.happenings ?? (flags.without === undefined ? '0' : '1'),
      0,
      MOST_FAULTS,
    ),
    without: flags.without === undefined ? undefined : ruleFrom(flags.without),
  };
  const format = machineFormatFrom(flags.output);
  if (format !== undefined) refuseBadTemplate(format);
  const startedAt = performance.now();
  const proof = proveHandOver({ ...options, onProgress: tellProgress });
  const seconds = (performance.now() - startedAt) / 1000;
  if (format === undefined) process.stdout.write(proofText(proof, seconds));
  else
    process.stdout.write(
      printDocument({ apiVersion: API_VERSION, kind: 'Proof', ...options, ...proof, seconds }, format),
    );
  if (proof.verdict !== 'proved') process.exitCode = 1;
}

function ruleFrom(text: string): RemovableRule {
  if (Object.hasOwn(REMOVABLE, text)) return text as RemovableRule;
  throw new UsageError(`--without must be one of ${Object.keys(REMOVABLE).join(', ')}, found "${text}"`);
}

/** The verdict first. */
export function proofText({ verdict, states, transitions, depth, refusal, story }: Proof, seconds: number): string {
  const counts = `${counted(states)} states, ${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const lines = story.map((line, index) => `${String(index + 1).padStart(2)}. ${line}\n`).join('');
  switch (verdict) {
    case 'proved':
      return (
        `no refusal reachable: ${counts}\n` +
        `from each of them the hand-over ends; ${counted(transitions)} steps between them, the farthest ${depth} away\n`
      );
    case 'refuted':
      return `a refusal is reachable: ${refusal}\nthe shortest way there, after ${counts}:\n${lines}`;
    case 'endless':
      return `no refusal reachable, but the hand-over does not end: ${counts}\nfrom here on, although nothing fails any more:\n${lines}`;
    case 'unfinished':
      return `not known: ${counts}, and more than memory is meant to hold; no refusal up to there\n`;
  }
}

function counted(number: number): string {
  return number.toLocaleString('en-US');
}

function tellProgress(states: number, waiting: number): void {
  process.stderr.write(`${counted(states)} states, ${counted(waiting)} of them to be looked at\n`);
}
