import { isMirror, isWithin } from './scope.ts';

/** What is blocked and allowed once the repository of the cluster's own release is spared. */
export interface Spared {
  /** Blocked in registries.conf. */
  readonly blocked: readonly string[];
  /** Blocked by the policy. */
  readonly rejected: readonly string[];
  /** Allowed by the policy: the payload's own repository first, where it is blocked and has mirrors. */
  readonly accepted: readonly string[];
  /** Asked to be blocked, and not blocked: nodes could not pull their own release any more. */
  readonly open: readonly string[];
}

/**
 * Takes from what is to be blocked whatever the cluster's own release comes from, unless it can be had from a mirror. Images of the
 * release are pulled by digest. `pulledFrom` are the places where an image of the repository is looked for.
 */
export function sparePayload(
  repository: string | undefined,
  blocked: readonly string[],
  allowed: readonly string[],
  pulledFrom: (repository: string) => readonly string[],
): Spared {
  if (repository === undefined) return { blocked, rejected: blocked, accepted: allowed, open: [] };
  const isPayload = (scope: string) => isWithin(repository, scope);
  const isBlocked = (place: string) => blocked.some(scope => isWithin(place, scope));
  const hasMirror = blocked.some(isPayload) && pulledFrom(repository).some(place => !isBlocked(place));
  const closed = hasMirror ? blocked : blocked.filter(scope => !isPayload(scope));
  return {
    blocked: closed,
    rejected: closed.filter(scope => scope !== repository),
    accepted: [...closed.filter(isPayload).map(() => repository), ...allowed],
    open: hasMirror ? [] : blocked.filter(isPayload),
  };
}

/** The repository of an image by its full name; undefined for a text that is none. */
export function repositoryOf(image: string): string | undefined {
  const repository = image.replace(/@.*$/, '').replace(/:[^:/]*$/, '');
  return repository.includes('/') && isMirror(repository) ? repository : undefined;
}
