import { days } from '../../kube/duration.ts';
import type { LifeReport } from './lives.ts';
import type { BrokenStory } from './worker.ts';

export interface Asked {
  readonly seed: string;
  readonly lives: number;
  readonly days: number;
  readonly hasFaults: boolean;
  /** The flags with which one life is played again, but for its seed. */
  readonly again: string;
  readonly seconds: number;
  readonly isStopped: boolean;
}

/** The verdict first, then the story if there is one, then how to see it again. */
export function twinText(reports: readonly LifeReport[], asked: Asked): string {
  const total = totalsOf(reports);
  const seconds = `${asked.seconds < 10 ? asked.seconds.toFixed(1) : counted(Math.round(asked.seconds))} s`;
  const when = asked.isStopped ? ', stopped by you' : '';
  const seen = `${number(total.handOvers, 'hand-over')}, ${counted(total.checked)} sides of connections verified`;
  const bad = reports.find(({ life }) => (life?.violations.length ?? 0) > 0);
  const faults = asked.hasFaults
    ? `${number(total.faults, 'fault')}, ${number(total.inevitable, 'refusal')} that they made inevitable; `
    : '';
  if (bad === undefined) {
    const which =
      asked.lives === 1 ? `seed ${asked.seed}` : `${counted(reports.length)} lives, seeds ${seedsText(asked)}`;
    return `nobody was refused in ${yearsText(total.livedMs)}: ${faults}${seconds}${when}\n${which}: ${seen}\n`;
  }
  const { seed, life, story } = bad;
  const [first] = life?.violations ?? [];
  return (
    `broken after ${yearsText(total.livedMs)}: ${first?.rule}: ${first?.what}\n` +
    storyText(story) +
    `all of it again: rotunda twin ${asked.again} --seed ${seed} --trace\n` +
    `${faults}${seen}; ${seconds}${when}\n`
  );
}

function storyText(story: BrokenStory | undefined): string {
  if (story === undefined) return 'there was no time to look for the shortest story of it\n';
  const { lines, faults, days: inDays, lives } = story;
  return (
    `the shortest story of it (${number(faults, 'fault')}, ${number(inDays, 'day')}; ${number(lives, 'life', 'lives')} to find it):\n` +
    lines.map((line, index) => `${String(index + 1).padStart(2)}. ${line}\n`).join('')
  );
}

export function totalsOf(reports: readonly LifeReport[]) {
  const sum = (of: (report: LifeReport) => number) => reports.reduce((all, report) => all + of(report), 0);
  return {
    livedMs: sum(({ sofar }) => sofar.livedMs),
    faults: sum(({ sofar }) => sofar.faults),
    inevitable: sum(({ sofar }) => sofar.inevitable),
    looks: sum(({ sofar }) => sofar.looks),
    checked: sum(({ sofar }) => sofar.checked),
    handOvers: sum(({ sofar }) => sofar.handOvers),
  };
}

/** The seed of one of several lives: the first has the one that was given. */
export function seedOf(seed: string, index: number): string {
  return index === 0 ? seed : `${seed}.${index}`;
}

function seedsText({ seed, lives }: Asked): string {
  return `${seed} to ${seedOf(seed, lives - 1)}`;
}

export function yearsText(ms: number): string {
  const inDays = Math.round(ms / days(1));
  if (inDays < 365) return number(inDays, 'day');
  const years = Math.round((inDays / 365) * 10) / 10;
  return `${counted(years)} ${years === 1 ? 'year' : 'years'}`;
}

function number(count: number, one: string, many = `${one}s`): string {
  return `${counted(count)} ${count === 1 ? one : many}`;
}

function counted(count: number): string {
  return count.toLocaleString('en-US');
}
