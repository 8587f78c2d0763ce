import { days, hours, minutes, seconds } from '../../kube/duration.ts';

const YEAR_DAYS = 365;

/** A duration in the two or three figures that people read: `45s`, `2m5s`, `17m`, `3h20m`, `5d3h`, `87d`, `2y10d`. */
export function humanDuration(duration: number): string {
  const whole = Math.trunc(duration / seconds(1));
  // Clocks differ a little: just before now is now.
  if (whole < -1) return '<invalid>';
  if (whole < 0) return '0s';
  if (whole < 120) return `${whole}s`;
  const minute = Math.floor(duration / minutes(1));
  if (minute < 10) return twoParts(minute, 'm', whole % 60, 's');
  if (minute < 180) return `${minute}m`;
  const hour = Math.floor(duration / hours(1));
  if (hour < 8) return twoParts(hour, 'h', minute % 60, 'm');
  if (hour < 48) return `${hour}h`;
  const day = Math.floor(duration / days(1));
  if (hour < 192) return twoParts(day, 'd', hour % 24, 'h');
  if (day < 2 * YEAR_DAYS) return `${day}d`;
  const year = Math.floor(day / YEAR_DAYS);
  return day < 8 * YEAR_DAYS ? twoParts(year, 'y', day % YEAR_DAYS, 'd') : `${year}y`;
}

/** How long ago a timestamp of an object was. */
export function ageOf(timestamp: string | undefined, now: Date): string {
  const time = timestamp === undefined ? Number.NaN : Date.parse(timestamp);
  return Number.isNaN(time) ? '<unknown>' : humanDuration(now.getTime() - time);
}

function twoParts(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large}${largeUnit}` : `${large}${largeUnit}${small}${smallUnit}`;
}
