import type { LogLevel } from '../controller/log.ts';
import { parseGoDuration } from '../kube/duration.ts';
import { UsageError } from './usage-error.ts';

/** Collects a flag that may be given several times, each time with one value or several joined by commas. */
export function listed(text: string, before: readonly string[] = []): string[] {
  return [...before, ...text.split(',')];
}

/** Reads `--rotation-day`: how long one day of every validity and refresh lasts. */
export function rotationDayFrom(text: string): number {
  return durationFrom('--rotation-day', text, '1s', '24h');
}

/** Reads a duration as Go writes it, between two others. */
export function durationFrom(flag: string, text: string, least: string, most: string): number {
  const [duration, leastMs = 0, mostMs = 0] = [text, least, most].map(parseGoDuration);
  if (duration === undefined || duration < leastMs || duration > mostMs) {
    throw new UsageError(`${flag} must be a duration from ${least} to ${most}, found "${text}"`);
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

/** Reads `<address>:<port>`; an IPv6 address stands in brackets. */
export function listenAddressFrom(flag: string, text: string): { host: string; port: number } {
  const [, host, port] = /^(.+):(\d{1,5})$/.exec(text) ?? [];
  if (host === undefined || Number(port) > 65_535) {
    throw new UsageError(`${flag} must be <address>:<port> such as 127.0.0.1:8080, found "${text}"`);
  }
  return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) };
}

const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;

export function logLevelFrom(text: string): LogLevel {
  const level = LOG_LEVELS.find(known => known === text);
  if (level === undefined) throw new UsageError(`--log-level must be one of ${LOG_LEVELS.join(', ')}, found "${text}"`);
  return level;
}
