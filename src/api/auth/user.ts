/** Who asks, as every decision about a request sees them. */
export interface User {
  readonly name: string;
  /** Empty unless the credential names one. */
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/** Members may do everything, whatever RBAC says. */
export const SYSTEM_MASTERS = 'system:masters';
export const SYSTEM_AUTHENTICATED = 'system:authenticated';
export const SYSTEM_UNAUTHENTICATED = 'system:unauthenticated';
export const SYSTEM_SERVICE_ACCOUNTS = 'system:serviceaccounts';
export const SYSTEM_NODES = 'system:nodes';

const NODE_PREFIX = 'system:node:';
const SERVICE_ACCOUNT_PREFIX = 'system:serviceaccount:';

export const ANONYMOUS: User = { name: 'system:anonymous', uid: '', groups: [SYSTEM_UNAUTHENTICATED], extra: {} };

/** The user of a service account; `extra` tells what its token is bound to. */
export function serviceAccountUser(namespace: string, name: string, uid: string, extra: User['extra'] = {}): User {
  return {
    name: serviceAccountUserName(namespace, name),
    uid,
    groups: [SYSTEM_SERVICE_ACCOUNTS, `${SYSTEM_SERVICE_ACCOUNTS}:${namespace}`, SYSTEM_AUTHENTICATED],
    extra,
  };
}

export function serviceAccountUserName(namespace: string, name: string): string {
  return `${SERVICE_ACCOUNT_PREFIX}${namespace}:${name}`;
}

/** The user with `system:authenticated` among the groups: what every credential that holds brings. */
export function authenticated(user: User): User {
  if (user.groups.includes(SYSTEM_AUTHENTICATED)) return user;
  return { ...user, groups: [...user.groups, SYSTEM_AUTHENTICATED] };
}

export function isMaster(user: User): boolean {
  return user.groups.includes(SYSTEM_MASTERS);
}

/** The node a user stands for: `system:node:<name>` in the group `system:nodes`. Empty name: a node that cannot be told. */
export function nodeNameOf(user: User): string | undefined {
  if (!user.groups.includes(SYSTEM_NODES) || !user.name.startsWith(NODE_PREFIX)) return undefined;
  return user.name.slice(NODE_PREFIX.length);
}
