import { days, minutes } from '../kube/duration.ts';
import { START } from './cluster.ts';
import type { Refusal } from './edges.ts';
import type { Violation } from './invariants.ts';
import { type LifeOptions, live } from './life.ts';

/** Longer stories are nobody's to read. */
const MOST_LINES = 14;
const LONGEST_LINE = 220;

/** Lives through a life once more and tells how it came to what was broken: when, what, who refused whom, and which rule allowed it. */
export async function storyOf(options: LifeOptions): Promise<string[]> {
  const told: Told[] = [];
  const life = await live({
    ...options,
    stopsAtFirst: true,
    tell: (atMs, what) => {
      if (told.at(-1)?.what !== what) told.push({ atMs, what });
    },
  });
  const [first] = life.violations;
  if (first === undefined) return [];
  const { controlPlane = 3, workers = 2 } = options;
  const about = wordsOf(first);
  const before = told.filter(({ atMs, what }) => atMs <= first.atMs && !what.startsWith('BROKEN'));
  const faults = before.filter(({ what }) => /^(?:FAULT|over): /.test(what));
  const ending = endingOf(life.violations.filter(({ atMs, rule }) => atMs === first.atMs && rule === first.rule));
  const steps = before.filter(({ atMs }) => atMs > BROUGHT_UP_MS);
  const matters = steps.filter(({ what }) => isAbout(what, about));
  const rule = ruleOf(steps.filter(({ what }) => isAbout(what, about) || what.includes('TargetUpdateRequired')));
  const left = MOST_LINES - 1 - ending.length - (rule === undefined ? 0 : 1);
  const chosen = chosenOf(faults, matters, left).map(
    ({ atMs, what }) => `${dayText(atMs)}  ${what.replace(/^FAULT: /, '')}`,
  );
  return [
    `a cluster of ${counted(controlPlane, 'control-plane node')} and ${counted(workers, 'worker')}`,
    ...chosen,
    ...ending.map(line => `${dayText(first.atMs)}  ${line}`),
    ...(rule === undefined ? [] : [`allowed by: ${rule}`]),
  ].map(line => (line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE - 1)}…` : line));
}

/** What happens while a cluster comes up is the same in every story. */
const BROUGHT_UP_MS = START.getTime() + minutes(10);

interface Told {
  readonly atMs: number;
  readonly what: string;
}

/** All faults as far as there is room, and the last that is told of what was refused. */
function chosenOf(faults: readonly Told[], matters: readonly Told[], most: number): Told[] {
  const kept = faults.slice(-Math.max(1, most - 3));
  const seen = new Set<string>();
  const others = matters.toReversed().filter(({ atMs, what }) => {
    const once = `${dayText(atMs)} ${what.replace(/\b(?:master|worker)-\d+\b/g, 'a node')}`;
    return !seen.has(once) && seen.add(once);
  });
  return [...kept, ...others.slice(0, most - kept.length)].toSorted((a, b) => a.atMs - b.atMs);
}

/** Names by which lines are found that have to do with it. */
function wordsOf({ refusal, what }: Violation): string[] {
  if (refusal === undefined) return [...what.matchAll(/\b(?:master|worker)-\d+\b/g)].map(([name]) => name);
  return [...`${refusal.shown} ${refusal.reason}`.matchAll(/_([a-z-]+signer)@/g)].map(([, name = '']) => name);
}

const MATTERS =
  /SignerUpdateRequired|SignerInUseChanged|HandOverWaiting|HandOverLeavesBehind|CABundleUpdateRequired|(?:stops|starts), revision|is killed/;

function isAbout(what: string, words: readonly string[]): boolean {
  return MATTERS.test(what) && words.some(word => what.includes(word));
}

/** Who refuses whom, those together that do it for one reason. */
function endingOf(violations: readonly Violation[]): string[] {
  const refusals = violations.flatMap(({ refusal }) => refusal ?? []);
  if (refusals.length === 0) return violations.slice(0, 3).map(({ rule, what }) => `BROKEN: ${rule}: ${what}`);
  const groups = [...Map.groupBy(refusals, ({ edge, by, reason }) => `${edge} ${by} ${reason}`).values()];
  const lines = groups.slice(0, 2).map(group => {
    const [{ edge, reason }] = group as [Refusal];
    const names = (side: 'refuser' | 'refused') => [...new Set(group.map(one => one[side]))].join(', ');
    return `${names('refuser')} refuses ${names('refused')} (${edge}): ${reason}`;
  });
  return groups.length > 2 ? [...lines, `and ${groups.length - 2} more like that`] : lines;
}

/** Which rule made the last step, in the words of the specs. */
const RULES: readonly (readonly [RegExp, string])[] = [
  [
    /SignerInUseChanged.*everybody who verifies has loaded it, but for/,
    'HO-7: somebody waived by name is not waited for',
  ],
  [/SignerInUseChanged.*ends soon/, 'HO-7: waiting any longer would have harmed everybody'],
  [
    /SignerInUseChanged.*everybody who verifies has loaded it/,
    'HO-2: the operator held receipts of everybody who verifies',
  ],
  [
    /TargetUpdateRequired/,
    'T-8: a leaf that is due or asked for is signed by the signer in use, whoever has loaded it',
  ],
];

function ruleOf(matters: readonly Told[]): string | undefined {
  for (const { what } of matters.toReversed()) {
    const found = RULES.find(([pattern]) => pattern.test(what));
    if (found !== undefined) return `${found[1]} (${/: (\w+):/.exec(what)?.[1]})`;
  }
  return undefined;
}

function dayText(atMs: number): string {
  const sinceMs = atMs - START.getTime();
  return `day ${Math.floor(sinceMs / days(1)) + 1} ${new Date(atMs).toISOString().slice(11, 19)}`;
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}
