/** What repeating one piece of work for a while showed. */
export interface Rate {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Does `work` again and again, `atOnce` of them at the same time, after a short run that does not count. */
export async function rateOf(atOnce: number, forMs: number, work: () => Promise<unknown>): Promise<Rate> {
  await repeat(atOnce, forMs / 5, work);
  const start = performance.now();
  const tookMs = await repeat(atOnce, forMs, work);
  const seconds = (performance.now() - start) / 1000;
  return { perSecond: tookMs.length / seconds, p50Ms: percentile(tookMs, 50), p99Ms: percentile(tookMs, 99) };
}

async function repeat(atOnce: number, forMs: number, work: () => Promise<unknown>): Promise<number[]> {
  const tookMs: number[] = [];
  const end = performance.now() + forMs;
  const worker = async () => {
    for (let begun = performance.now(); begun < end; begun = performance.now()) {
      await work();
      tookMs.push(performance.now() - begun);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return tookMs;
}

/** The middle one of several measurements of the same thing. */
export function median(rates: readonly Rate[]): Rate {
  const sorted = rates.toSorted((a, b) => a.perSecond - b.perSecond);
  const middle = sorted[Math.floor(sorted.length / 2)];
  if (middle === undefined) throw new RangeError('the median of nothing');
  return middle;
}

/** The value that `percent` of the values do not exceed. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))] ?? Number.NaN;
}
