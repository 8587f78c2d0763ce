/** The number in the name of a revision's directory, `<prefix>-<number>`; undefined for every other name (spec 30, T15). */
export function revisionOfDirectory(name: string, prefix: string): number | undefined {
  if (!name.startsWith(`${prefix}-`)) return undefined;
  const digits = name.slice(prefix.length + 1);
  return /^\d{1,10}$/.test(digits) ? Number(digits) : undefined;
}

/** The name of the link to the manifest of the revision that last proved itself (spec 30, 17.1.3). */
export function lastKnownGoodLink(targetName: string): string {
  return `${targetName}-last-known-good`;
}
