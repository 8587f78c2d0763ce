const VERBOSITY: Readonly<Record<string, number>> = { Normal: 2, Debug: 4, Trace: 6, TraceAll: 8 };

/** The verbosity a log level stands for; that of `Normal` for what is not one (spec 30, 19.9). */
export function verbosityOf(logLevel = 'Normal'): number {
  return (isLogLevel(logLevel) ? VERBOSITY[logLevel] : VERBOSITY.Normal) as number;
}

/** The log level a verbosity belongs to; undefined below all of them. */
export function logLevelOf(verbosity: number): string | undefined {
  const levels = Object.entries(VERBOSITY).sort(([, a], [, b]) => b - a);
  return levels.find(([, least]) => verbosity >= least)?.[0];
}

export function isLogLevel(text: string): boolean {
  return Object.hasOwn(VERBOSITY, text);
}
