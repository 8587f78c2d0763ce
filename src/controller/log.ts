import { type Logger, pino } from 'pino';
import { type Clock, systemClock } from '../kube/clock.ts';
import { redacted, redactedText } from './redact.ts';

/** Structured logging: fields first, then what happened, in words that do not vary. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  /** The same log with these fields in every line. */
  child(fields: object): Log;
}

/** A log whose level can be changed while it is in use, for its children as well. */
export interface AdjustableLog extends Log {
  level: LogLevel;
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

export interface LogOptions {
  /** The program or component; in every line. */
  readonly name: string;
  readonly level?: LogLevel | undefined;
  /** Standard output unless told otherwise. */
  readonly destination?: { write(line: string): void } | undefined;
  readonly clock?: Pick<Clock, 'now'> | undefined;
}

/** JSON lines in which keys, tokens and the contents of Secrets never appear. */
export function createLog({ name, level = 'info', destination, clock = systemClock }: LogOptions): AdjustableLog {
  const threshold = { level };
  const logger = pino(
    {
      base: { name },
      // Children of the library keep the level they were born with; ours all look at one threshold.
      level: 'debug',
      timestamp: () => `,"time":"${clock.now().toISOString()}"`,
      formatters: { level: label => ({ level: label }) },
      // Errors have become plain objects by then; the library's own serializer would take them apart again.
      serializers: { err: value => value as unknown },
    },
    destination ?? pino.destination({ sync: true }),
  );
  return {
    ...redactingLog(logger, threshold),
    get level() {
      return threshold.level;
    },
    set level(wanted) {
      threshold.level = wanted;
    },
  };
}

const LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];

/** Cleans fields and messages itself: the hooks of the library miss the fields of children. */
function redactingLog(logger: Logger, threshold: { readonly level: LogLevel }): Log {
  const write = (level: LogLevel) => (fields: object, message: string) => {
    if (LEVELS.indexOf(level) < LEVELS.indexOf(threshold.level)) return;
    logger[level](redacted(fields), redactedText(message));
  };
  return {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: fields => redactingLog(logger.child(redacted(fields)), threshold),
  };
}

/** A log for whoever does not want one. */
export const silentLog: Log = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  child: () => silentLog,
};
