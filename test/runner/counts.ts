/** How many tests ended how. */
export interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** The line that every run of tests ends with. */
export function writeCounts({ passed, failed, skipped }: Counts): string {
  return `${passed} passed, ${failed} failed, ${skipped} skipped`;
}

/** Undefined: it is another line. */
export function readCounts(line: string): Counts | undefined {
  const found = /^(\d+) passed, (\d+) failed, (\d+) skipped$/.exec(line);
  if (found === null) return undefined;
  const [passed = 0, failed = 0, skipped = 0] = found.slice(1).map(Number);
  return { passed, failed, skipped };
}

export function sum(all: readonly Counts[]): Counts {
  const of = (kind: keyof Counts) => all.reduce((total, counts) => total + counts[kind], 0);
  return { passed: of('passed'), failed: of('failed'), skipped: of('skipped') };
}
