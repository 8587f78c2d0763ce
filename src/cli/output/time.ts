/** A span as kubectl prints ages: `45s`, `5m`, `3h12m`, `2d5h`, `89d`, `3y40d`. */
export function shortDuration(milliseconds: number): string {
  const seconds = Math.floor(Math.abs(milliseconds) / 1000);
  const sign = milliseconds < 0 && seconds > 0 ? '-' : '';
  const [minutes, hours, days] = [Math.floor(seconds / 60), Math.floor(seconds / 3600), Math.floor(seconds / 86_400)];
  if (seconds < 120) return `${sign}${seconds}s`;
  if (minutes < 180) return `${sign}${minutes}m`;
  if (hours < 48) return `${sign}${joined(hours, 'h', minutes % 60, 'm', hours < 8)}`;
  if (days < 730) return `${sign}${joined(days, 'd', hours % 24, 'h', days < 8)}`;
  return `${sign}${joined(Math.floor(days / 365), 'y', days % 365, 'd', days < 365 * 8)}`;
}

/** A span in its two largest units, so that nothing is cut off that matters: `29d 23h`, `4m 59s`. */
export function spanText(milliseconds: number): string {
  const seconds = Math.floor(milliseconds / 1000);
  const [minutes, hours, days] = [Math.floor(seconds / 60), Math.floor(seconds / 3600), Math.floor(seconds / 86_400)];
  if (days > 0) return `${days}d ${hours % 24}h`;
  if (hours > 0) return `${hours}h ${minutes % 60}m`;
  return minutes > 0 ? `${minutes}m ${seconds % 60}s` : `${seconds}s`;
}

function joined(big: number, bigUnit: string, small: number, smallUnit: string, withSmall: boolean): string {
  return withSmall && small > 0 ? `${big}${bigUnit}${small}${smallUnit}` : `${big}${bigUnit}`;
}

/** `2027-01-31T12:00:00Z`: to the second, in UTC. */
export function secondsText(time: Date | string): string {
  return `${(typeof time === 'string' ? time : time.toISOString()).slice(0, 19)}Z`;
}
