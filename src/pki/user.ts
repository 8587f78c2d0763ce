import { PkiError } from './error.ts';
import type { NameAttributes } from './name.ts';

/** Who a client certificate speaks for: to Kubernetes, CN is the user and each O a group. */
export interface UserInfo {
  readonly name: string;
  readonly uid?: string | undefined;
  readonly groups?: readonly string[] | undefined;
}

/** The subject of a client certificate (spec 10, 5.5). The order of the groups is DER's, whatever the order given. */
export function subjectForUser(user: UserInfo): NameAttributes {
  if (user.name === '') throw new PkiError('SUBJECT_INVALID', 'expected a user name, found an empty text');
  return { commonName: user.name, organizations: [...(user.groups ?? [])], serialNumber: user.uid ?? '' };
}
