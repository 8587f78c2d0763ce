import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { Life, LifeSoFar } from '../../twin/life.ts';
import type { BrokenStory, LifeMessage, LifeRequest } from './worker.ts';

/** What is known of one life: all of it, or as much as there was time for. */
export interface LifeReport {
  readonly seed: string;
  readonly sofar: LifeSoFar;
  /** Undefined: it was cut short. */
  readonly life: Life | undefined;
  readonly story: BrokenStory | undefined;
}

export interface LivesOptions {
  readonly requests: readonly LifeRequest[];
  /** Resolves when somebody wants it to end. */
  readonly stopped: Promise<void>;
  readonly onTold: (lines: readonly string[]) => void;
  /** Told again and again how far all of it is. */
  readonly onProgress: (reports: readonly LifeReport[], now: string | undefined) => void;
}

/** The bundle has the thread beside the program, a checkout beside this file. */
const THREAD = new URL(import.meta.url.endsWith('.ts') ? './worker.ts' : './twin-life.mjs', import.meta.url);

/** Lives all of them, side by side, and ends at the first in which something was broken, for that is what people want to see. */
export async function liveAll({ requests, stopped, onTold, onProgress }: LivesOptions): Promise<LifeReport[]> {
  const reports = new Map<string, LifeReport>();
  const waiting = [...requests];
  const threads: Worker[] = [];
  let isOver = false;
  const end = () => {
    isOver = true;
    return Promise.all(threads.map(thread => thread.terminate()));
  };
  const runThread = () =>
    new Promise<void>((resolve, reject) => {
      const thread = new Worker(THREAD);
      threads.push(thread);
      let seed = '';
      const next = () => {
        const request = isOver ? undefined : waiting.shift();
        if (request === undefined) return void thread.terminate();
        seed = request.seed;
        thread.postMessage(request, []);
      };
      thread.on('message', (message: LifeMessage) => {
        switch (message.kind) {
          case 'told':
            return onTold(message.lines);
          case 'day':
            reports.set(seed, { seed, sofar: message.sofar, life: undefined, story: undefined });
            return onProgress([...reports.values()], undefined);
          case 'broken':
            waiting.length = 0;
            return void reports.set(seed, { seed, sofar: message.life, life: message.life, story: undefined });
          case 'shrinking': {
            const { lives, faults, days } = message;
            const left = `${faults} fault${faults === 1 ? '' : 's'} in ${days} day${days === 1 ? '' : 's'}`;
            return onProgress(
              [...reports.values()],
              `seed ${seed} is broken; looking for the shortest story: ${left}, life ${lives}`,
            );
          }
          case 'lived':
            reports.set(seed, { seed, sofar: message.life, life: message.life, story: message.story });
            onProgress([...reports.values()], undefined);
            return next();
        }
      });
      thread.on('error', reject);
      thread.on('exit', () => resolve());
      next();
    });
  const count = Math.min(requests.length, availableParallelism());
  const all = Promise.all(Array.from({ length: count }, runThread));
  await Promise.race([all, stopped.then(end)]);
  await end();
  return requests.flatMap(({ seed }) => reports.get(seed) ?? []);
}
