import { isNotFound } from '../kube/error.ts';
import { errorText } from './aggregate-error.ts';
import type { Condition } from './condition.ts';
import { isPanic } from './panic.ts';
import { type Reconcile, type Result, RetryRequest } from './reconcile.ts';

export interface DegradedOptions {
  /** The controller's name: the condition is `<name>Degraded`. */
  readonly name: string;
  /** Puts a condition into the operator's status; nothing is to be written when it is there already. */
  readonly write: (condition: Condition) => Promise<unknown>;
  /** The operator's resource may be gone because the operand is to be removed: that is no failure then. */
  readonly removable?: boolean | undefined;
}

/**
 * Reports the outcome of each pass as a condition (spec 30, 3.10 and 3.11). A pass that asks for a retry changes nothing
 * (T17); one that succeeds, or waits until some time, clears its failure (T27). With several keys the condition stays as
 * long as one of them fails.
 */
export function reportingDegraded(
  reconcile: Reconcile,
  { name, write, removable = false }: DegradedOptions,
): Reconcile {
  const failures = new Map<string, string>();

  async function report(): Promise<void> {
    const message = [...failures.values()].sort().join('\n');
    const type = `${name}Degraded`;
    const condition: Condition =
      failures.size === 0
        ? { type, status: 'False', reason: 'AsExpected', message: '' }
        : { type, status: 'True', reason: 'SyncError', message };
    try {
      await write(condition);
    } catch (error) {
      if (!(removable && isNotFound(error))) throw error;
    }
  }

  return async (key, context) => {
    let result: Result | void;
    try {
      result = await reconcile(key, context);
    } catch (error) {
      if (error instanceof RetryRequest) throw error;
      failures.set(key, isPanic(error) ? `panic caught:\n${errorText(error)}` : errorText(error));
      await report().catch((writeError: unknown) => {
        context.log.warn({ key, err: writeError }, 'the failure of a pass could not be reported');
      });
      throw error;
    }
    if (result?.retry) return result;
    failures.delete(key);
    await report();
    return result;
  };
}
