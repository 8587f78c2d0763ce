import { errorText } from '../controller/aggregate-error.ts';
import type { AdjustableLog } from '../controller/log.ts';
import type { Reconcile } from '../controller/reconcile.ts';
import type { StaticPodOperator } from './operator.ts';
import { isLogLevel, logLevelOf, verbosityOf } from './verbosity.ts';

/** How much the process says; 2, 4, 6 or 8. */
export interface Verbosity {
  get(): number;
  set(verbosity: number): void;
}

/**
 * The verbosity of a process is the level of its log. `Debug` and above all let everything through; `Normal` is what the
 * process was started with, or `info` where that was to debug it.
 */
export function verbosityOfLog(log: AdjustableLog): Verbosity {
  const normal = log.level === 'debug' ? 'info' : log.level;
  const debug = verbosityOf('Debug');
  let current = log.level === 'debug' ? debug : verbosityOf('Normal');
  return {
    get: () => current,
    set: verbosity => {
      current = verbosity;
      log.level = verbosity >= debug ? 'debug' : normal;
    },
  };
}

export interface LogLevelOptions {
  readonly operator: StaticPodOperator;
  readonly verbosity: Verbosity;
}

/** Makes the operator as talkative as `operatorLogLevel` says, while it runs (spec 30, 19.6 to 19.9). */
export function logLevelReconcile({ operator, verbosity }: LogLevelOptions): Reconcile {
  return async (_key, { events, signal }) => {
    const { spec = {} } = await operator.read(signal);
    const asked = spec.operatorLogLevel || 'Normal';
    if (!isLogLevel(asked)) {
      const message = `Invalid logLevel "${asked}", falling back to "Normal"`;
      events.event('Warning', 'OperatorLogLevelInvalid', message);
    }
    const wanted = isLogLevel(asked) ? asked : 'Normal';
    const current = logLevelOf(verbosity.get());
    if (current === wanted) return;
    try {
      verbosity.set(verbosityOf(wanted));
    } catch (error) {
      const message = `Unable to change operator log level from "${current ?? ''}" to "${wanted}": ${errorText(error)}`;
      events.event('Warning', 'OperatorLogLevelChangeFailed', message);
      throw error;
    }
    if (current === undefined) return;
    events.event('Normal', 'OperatorLogLevelChange', `Operator log level changed from "${current}" to "${wanted}"`);
  };
}
