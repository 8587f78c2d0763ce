import { errorText } from '../../controller/aggregate-error.ts';
import { RetryRequest } from '../../controller/reconcile.ts';

/** The same failure with where it happened in front; a wish to begin again stays what it is. */
export function failedAt(where: string, error: unknown): Error {
  return error instanceof RetryRequest ? error : new Error(`${where}: ${errorText(error)}`, { cause: error });
}
