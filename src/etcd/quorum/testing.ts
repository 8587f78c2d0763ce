import type { EtcdMembers, MemberHealth } from './member.ts';

/** Members that are what the test says they are. */
export class FakeMembers implements EtcdMembers {
  /** Why nobody answers. */
  failure: string | undefined;
  asked = 0;
  #health: MemberHealth[] = [];

  add(name: string, address: string, { healthy = true, isLearner = false } = {}): void {
    const member = {
      id: String(this.#health.length + 1),
      name,
      peerURLs: [`https://${address}:2380`],
      clientURLs: [`https://${address}:2379`],
      isLearner,
    };
    this.#health.push({ member, healthy });
  }

  delete(name: string): void {
    this.#health = this.#health.filter(({ member }) => member.name !== name);
  }

  set(name: string, healthy: boolean): void {
    this.#health = this.#health.map(entry => (entry.member.name === name ? { ...entry, healthy } : entry));
  }

  replace(health: readonly MemberHealth[]): void {
    this.#health = [...health];
  }

  async health(): Promise<readonly MemberHealth[]> {
    this.asked++;
    if (this.failure !== undefined) throw new Error(this.failure);
    return this.#health;
  }
}
