/** A member of the etcd cluster as the cluster itself lists it. */
export interface Member {
  /** Decimal; 64 bits do not fit a number. */
  readonly id: string;
  /** Empty until the member has started. */
  readonly name: string;
  readonly peerURLs: readonly string[];
  /** Empty until the member has started. */
  readonly clientURLs: readonly string[];
  /** Follows the log and has no vote. */
  readonly isLearner: boolean;
}

/** A member and whether it answered. */
export interface MemberHealth {
  readonly member: Member;
  readonly healthy: boolean;
  readonly error?: string | undefined;
  /** The raft term it answered in. */
  readonly raftTerm?: number | undefined;
}

export interface HealthRequest {
  /** How old the answer may be; the implementation's own limit when absent, 0: measured now. */
  readonly maxAgeMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What the operator asks of a running etcd. Rejects when nobody there answers. */
export interface EtcdMembers {
  /** In the order of the member list. */
  health(request?: HealthRequest): Promise<readonly MemberHealth[]>;
}

/** What the operator does to the membership. */
export interface EtcdMembership {
  addLearner(peerURL: string, signal?: AbortSignal): Promise<void>;
  promote(memberId: string, signal?: AbortSignal): Promise<void>;
  remove(memberId: string, signal?: AbortSignal): Promise<void>;
}

/** The name for people; one that has not started yet is named after its address (spec 40, Q-8). */
export function memberName({ name, peerURLs }: Pick<Member, 'name' | 'peerURLs'>): string {
  return name === '' ? `NAME-PENDING-${hostOf(peerURLs[0] ?? '')}` : name;
}

export function hasStarted({ clientURLs }: Pick<Member, 'clientURLs'>): boolean {
  return clientURLs.length > 0;
}

export function votingMembers<M extends Pick<Member, 'isLearner'>>(members: readonly M[]): M[] {
  return members.filter(({ isLearner }) => !isLearner);
}

export function healthyMembers(health: readonly MemberHealth[]): Member[] {
  return health.filter(({ healthy }) => healthy).map(({ member }) => member);
}

export function unhealthyMembers(health: readonly MemberHealth[]): Member[] {
  return health.filter(({ healthy }) => !healthy).map(({ member }) => member);
}

export function unhealthyNames(health: readonly MemberHealth[]): string[] {
  return unhealthyMembers(health).map(memberName);
}

export function unstartedNames(health: readonly MemberHealth[]): string[] {
  return unhealthyMembers(health)
    .filter(member => !hasStarted(member))
    .map(memberName);
}

/** `3 members are available`, or how many of them and what is wrong with the others (spec 40, Q-9). */
export function healthText(health: readonly MemberHealth[]): string {
  const problems = unhealthyMembers(health);
  if (problems.length === 0) return `${health.length} members are available`;
  const texts = problems.map(
    member => `${memberName(member)} ${hasStarted(member) ? 'is unhealthy' : 'has not started'}`,
  );
  return [`${health.length - problems.length} of ${health.length} members are available`, ...texts].join(', ');
}

/** The host of a URL, an IPv6 address without its brackets; empty when it is no URL. */
export function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).hostname.replace(/^\[(.*)\]$/, '$1') : '';
}
