import { hours, parseGoDuration, seconds } from '../kube/duration.ts';
import { UsageError } from './usage-error.ts';

/** Reads `--rotation-day`: how long one day of every validity and refresh lasts. */
export function rotationDayFrom(text: string): number {
  const duration = parseGoDuration(text);
  if (duration === undefined || duration < seconds(1) || duration > hours(24)) {
    throw new UsageError(`--rotation-day must be a duration from 1s to 24h, found "${text}"`);
  }
  return duration;
}

export function wholeNumberFrom(flag: string, text: string, least: number, most: number): number {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= least && value <= most)) {
    throw new UsageError(`${flag} must be a number from ${least} to ${most}, found "${text}"`);
  }
  return value;
}
