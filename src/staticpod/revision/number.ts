import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';

/** Says of a `revision-status-<n>` whether all copies of the revision are there (spec 30, 8.1). */
export const READY_ANNOTATION = 'operator.openshift.io/revision-ready';

const STATUS_PREFIX = 'revision-status-';
export const LARGEST_REVISION = 2 ** 31 - 1;

/** The ConfigMap that stands for a revision and owns everything that belongs to it. */
export function revisionStatusName(revision: number): string {
  return `${STATUS_PREFIX}${revision}`;
}

/** The copy of an object that belongs to a revision. */
export function copyName(name: string, revision: number): string {
  return `${name}-${revision}`;
}

export function isRevisionStatus({ metadata }: ConfigMap): boolean {
  return metadata?.name?.startsWith(STATUS_PREFIX) ?? false;
}

export function isReadyRevision({ metadata }: ConfigMap): boolean {
  return metadata?.annotations?.[READY_ANNOTATION] === 'true';
}

/** Reads a revision number: decimal digits with an optional sign, signed 32 bit; undefined for anything else (spec 30, 26.2). */
export function parseRevision(text: string): number | undefined {
  if (!/^[+-]?\d{1,20}$/.test(text)) return undefined;
  const revision = Number(text);
  return revision >= -LARGEST_REVISION - 1 && revision <= LARGEST_REVISION ? revision : undefined;
}

/** A status object whose number nobody can read. */
export class UnreadableRevision extends Error {
  override readonly name = 'UnreadableRevision';
}

/** What `data.revision` of a status object says; undefined when it says nothing. Throws `UnreadableRevision`. */
export function revisionOfStatus({ metadata, data }: ConfigMap): number | undefined {
  const text = data?.revision;
  if (text === undefined) return undefined;
  const revision = parseRevision(text);
  if (revision === undefined) {
    throw new UnreadableRevision(
      `expected a number in data.revision of configmap ${metadata?.namespace}/${metadata?.name}, found "${text}"`,
    );
  }
  return revision;
}

/** The highest revision that is complete; 0 = none. Unfinished ones do not count (spec 30, T01). */
export function highestReadyRevision(statuses: readonly ConfigMap[]): number {
  let highest = 0;
  for (const status of statuses.filter(isRevisionStatus)) {
    const revision = revisionOfStatus(status);
    if (revision !== undefined && isReadyRevision(status)) highest = Math.max(highest, revision);
  }
  return highest;
}
