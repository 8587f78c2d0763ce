import { floorToMs, parseRfc3339 } from '../kube/time.ts';
import { UsageError } from './usage-error.ts';

/** A moment given on the command line. */
export function momentFrom(flag: string, text: string): Date {
  const instant = parseRfc3339(text);
  if (instant === undefined) {
    throw new UsageError(`${flag} must be a time such as 2027-01-01T00:00:00Z, found "${text}"`);
  }
  return floorToMs(instant);
}

/** `--now`, or the clock. */
export function nowFrom(text: string | undefined): Date {
  return text === undefined ? new Date() : momentFrom('--now', text);
}
