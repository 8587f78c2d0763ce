import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Answer, Difference, Judged, Program } from './judged.ts';
import { random } from './random.ts';

/** Inputs of a function: the same seed, the same inputs. */
export async function inputsOf({ name, generate }: Judged, seed: number, count: number, at: Date): Promise<unknown[]> {
  const inputs: unknown[] = [];
  for (let i = 0; i < count; i++) inputs.push(await generate(random(`${name}/${seed}/${i}`), at));
  return inputs;
}

/** Asks the program of upstream that is in a folder. */
export async function askUpstream(programs: string, of: Judged, inputs: readonly unknown[]): Promise<Answer[]> {
  const { program, op, question = (input: unknown) => input, keep = (answer: Answer) => answer } = of;
  return withFolder(async folderOf => {
    const folders = inputs.map((_, i) => folderOf(i));
    const questions = inputs.map((input, i) => JSON.stringify({ op, in: question(input, folders[i] as string) }));
    const lines = (await answersTo(join(programs, program), `${questions.join('\n')}\n`)).trimEnd().split('\n');
    if (lines.length !== inputs.length) throw new Error(`${program} gave ${lines.length} answers to ${inputs.length}`);
    return lines.map((line, i) => keep(JSON.parse(line.replaceAll(folders[i] as string, '')) as Answer));
  });
}

/** One input on which ours and upstream disagree. */
export interface Disagreement extends Difference {
  readonly input: unknown;
}

export async function disagreements(
  of: Judged,
  inputs: readonly unknown[],
  answers: readonly Answer[],
  at: Date,
): Promise<Disagreement[]> {
  return withFolder(async folderOf => {
    const found: Disagreement[] = [];
    for (const [i, input] of inputs.entries()) {
      const answer = answers[i] as Answer;
      const differences = /^(?:panic|unknown op)/.test(answer.err ?? '')
        ? [{ class: `upstream: ${answer.err}`, mine: undefined, theirs: answer.err }]
        : await of.compare(input, answer, { folder: folderOf(i), at });
      found.push(...differences.map(difference => ({ ...difference, input })));
    }
    return found;
  });
}

/** The disagreements by class, the commonest first, each with its smallest input. */
export function classesOf(found: readonly Disagreement[]): { count: number; smallest: Disagreement }[] {
  const size = ({ input }: Disagreement) => JSON.stringify(input).length;
  return [...Map.groupBy(found, difference => difference.class).values()]
    .map(members => ({
      count: members.length,
      smallest: members.reduce((a, b) => (size(b) < size(a) ? b : a)),
    }))
    .sort((a, b) => b.count - a.count);
}

export function describeClass({ count, smallest }: { count: number; smallest: Disagreement }): string {
  const line = (value: unknown) => (JSON.stringify(value) ?? 'undefined').slice(0, 400);
  const { class: name, input, mine, theirs } = smallest;
  return `${count}x ${name}\n    input  ${line(input)}\n    mine   ${line(mine)}\n    theirs ${line(theirs)}`;
}

export const PROGRAMS: readonly Program[] = ['mcodiff', 'lgdiff', 'kasodiff', 'ceodiff'];

function answersTo(program: string, questions: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, { stdio: 'pipe' });
    const [out, err]: [Buffer[], Buffer[]] = [[], []];
    child.stdout.on('data', (part: Buffer) => out.push(part));
    child.stderr.on('data', (part: Buffer) => err.push(part));
    child.once('error', reject);
    child.stdin.on('error', () => {});
    child.once('close', status => {
      if (status === 0) resolve(Buffer.concat(out).toString());
      else reject(new Error(`${program} ended with ${status}: ${Buffer.concat(err).toString().slice(-2000)}`));
    });
    child.stdin.end(questions);
  });
}

async function withFolder<T>(work: (folderOf: (index: number) => string) => Promise<T>): Promise<T> {
  // Some of ours flush what they write: to memory that is free.
  const root = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'rotunda-upstream-'));
  try {
    return await work(index => {
      const folder = join(root, String(index));
      mkdirSync(folder);
      return folder;
    });
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}
