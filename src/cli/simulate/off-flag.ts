import type { Standstill } from '../../forecast/simulate.ts';
import { days } from '../../kube/duration.ts';
import { momentFrom } from '../moment.ts';
import { UsageError } from '../usage-error.ts';

/** `--off FROM..TO`: days or moments. Of a day that is named off begins with its first moment, and ends with its last one. */
export function offFrom(text: string, now: Date): Standstill {
  const [from = '', to, ...more] = text.split('..');
  if (to === undefined || more.length > 0 || from === '' || to === '')
    throw new UsageError(`--off must be <from>..<to>, days or times such as 2026-12-20..2027-02-01, found "${text}"`);
  const begin = isDay(from) ? dayFrom(from) : momentFrom('--off', from);
  const end = isDay(to) ? new Date(dayFrom(to).getTime() + days(1)) : momentFrom('--off', to);
  if (end <= begin) throw new UsageError(`--off must end after it begins, found "${text}"`);
  if (end <= now) throw new UsageError(`--off must end in the future, found "${text}"; now is ${now.toISOString()}`);
  return { from: begin < now ? now : begin, until: end };
}

function isDay(text: string): boolean {
  return /^\d{4}-\d{2}-\d{2}$/.test(text);
}

function dayFrom(text: string): Date {
  return momentFrom('--off', `${text}T00:00:00Z`);
}
