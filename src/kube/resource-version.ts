/**
 * Which of two resource versions is newer: negative when `a` is older, 0 when they are equal, undefined when they cannot
 * be compared. They are numbers of any length that grow with every write to a resource; KEP-5504 made a promise of that.
 */
export function compareVersions(a: string | undefined, b: string | undefined): number | undefined {
  if (a === b) return 0;
  if (a === undefined || b === undefined || !isNumber(a) || !isNumber(b)) return undefined;
  return a.length === b.length ? (a < b ? -1 : 1) : a.length - b.length;
}

/** Whether `a` is certainly older than `b`. */
export function isOlder(a: string | undefined, b: string | undefined): boolean {
  return (compareVersions(a, b) ?? 0) < 0;
}

function isNumber(version: string): boolean {
  return /^[1-9]\d*$/.test(version) || version === '0';
}
