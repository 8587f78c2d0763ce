import { errorText } from '../../controller/aggregate-error.ts';
import { RetryRequest } from '../../controller/reconcile.ts';

/** Ends a pass without a word about it in the condition: what was tried is not the rotation itself (spec 40, N-8). */
export class UnreportedFailure extends Error {
  override readonly name = 'UnreportedFailure';

  constructor(where: string, error: unknown) {
    super(`${where}: ${errorText(error)}`, { cause: error });
  }
}

/** The same failure with where it happened in front; a wish to begin again stays what it is. */
export function failedAt(where: string, error: unknown): Error {
  return error instanceof RetryRequest ? error : new Error(`${where}: ${errorText(error)}`, { cause: error });
}
