import { parentPort } from 'node:worker_threads';
import { faultsOf } from '../../twin/fault.ts';
import { type Life, type LifeOptions, type LifeSoFar, live } from '../../twin/life.ts';
import { shrink } from '../../twin/shrink.ts';
import { storyOf } from '../../twin/story.ts';

/** One life, as the command asks for it. */
export interface LifeRequest extends Pick<LifeOptions, 'seed' | 'days' | 'controlPlane' | 'workers' | 'handOver'> {
  /** A month; undefined: nothing goes wrong. */
  readonly faultsPerMonth: number | undefined;
  readonly isTraced: boolean;
}

/** The shortest way to what was broken. */
export interface BrokenStory {
  readonly lines: readonly string[];
  readonly faults: number;
  readonly days: number;
  readonly lives: number;
}

export type LifeMessage =
  | { readonly kind: 'day'; readonly sofar: LifeSoFar }
  | { readonly kind: 'told'; readonly lines: readonly string[] }
  | { readonly kind: 'shrinking'; readonly lives: number; readonly faults: number; readonly days: number }
  /** Something was broken; the story follows. */
  | { readonly kind: 'broken'; readonly life: Life }
  | { readonly kind: 'lived'; readonly life: Life; readonly story: BrokenStory | undefined };

const MOST_LINES_AT_ONCE = 500;

/** A thread of its own lives one life after the other, as it is asked. */
parentPort?.on('message', (request: LifeRequest) => void liveThrough(request));

async function liveThrough({ faultsPerMonth, isTraced, ...request }: LifeRequest): Promise<void> {
  const post = (message: LifeMessage) => parentPort?.postMessage(message, []);
  let lines: string[] = [];
  const flush = () => {
    if (lines.length > 0) post({ kind: 'told', lines });
    lines = [];
  };
  const options: LifeOptions = {
    ...request,
    ...(faultsPerMonth === undefined ? {} : { faults: faultsOf(request.seed, request.days, faultsPerMonth, request) }),
  };
  const life = await live({
    ...options,
    onDay: sofar => {
      flush();
      post({ kind: 'day', sofar });
    },
    ...(isTraced
      ? {
          tell: (atMs, what) => {
            lines.push(`${new Date(atMs).toISOString()} ${what}`);
            if (lines.length >= MOST_LINES_AT_ONCE) flush();
          },
        }
      : {}),
  });
  flush();
  if (life.violations.length === 0) return post({ kind: 'lived', life, story: undefined });
  post({ kind: 'broken', life });
  const shrunk = await shrink(options, life, {
    onLife: (lives, faults, days) => post({ kind: 'shrinking', lives, faults, days }),
  });
  const { faults = [], days } = shrunk.options;
  const story = { lines: await storyOf(shrunk.options), faults: faults.length, days, lives: shrunk.lives };
  post({ kind: 'lived', life, story });
}
