import type { Access } from '../../kube/access.ts';
import { HttpKube } from '../../kube/client.ts';
import type { Clock } from '../../kube/clock.ts';
import type { Kube } from '../../kube/port.ts';
import { Feed, type HandshakeSource } from './feed.ts';
import { accessWithToken, type Identity, whoAmI } from './identity.ts';
import { digestOf, type Principal } from './sessions.ts';

export interface PrincipalOptions {
  readonly access: Access;
  readonly ownerKube: Kube;
  readonly server: string;
  readonly prober?: HandshakeSource | undefined;
  readonly clock: Clock;
  readonly onUnauthorized: (principal: Principal) => void;
  readonly onError: (error: unknown) => void;
}

/** Those whose credentials the console holds: the one who started it, and users who gave a token. */
export class Principals {
  readonly #options: PrincipalOptions;
  /** By the digest of the token. */
  readonly #users = new Map<string, Principal>();
  #owner: Promise<Principal> | undefined;

  constructor(options: PrincipalOptions) {
    this.#options = options;
  }

  owner(): Promise<Principal> {
    this.#owner ??= this.#makeOwner();
    return this.#owner;
  }

  /** Who holds this token; undefined when the API does not know it. */
  async ofToken(token: string): Promise<Principal | undefined> {
    const { access } = this.#options;
    const digest = digestOf(token);
    const kube = new HttpKube(accessWithToken(access, token), { fieldManager: 'rotunda-console' });
    let identity: Identity | undefined;
    try {
      // Asked each time: a token that was good an hour ago may not be any more.
      identity = await whoAmI(kube);
    } finally {
      if (identity === undefined || this.#users.has(digest)) await kube.close();
    }
    if (identity === undefined) return undefined;
    const known = this.#users.get(digest);
    if (known !== undefined) return known;
    const principal = this.#make({ identity, isOwner: false, kube }, () => {
      this.#users.delete(digest);
      return kube.close();
    });
    this.#users.set(digest, principal);
    return principal;
  }

  /** Drops the credentials of somebody who has no session any more. */
  async forget(principal: Principal): Promise<void> {
    if (!principal.isOwner) await principal.close();
  }

  async close(): Promise<void> {
    const all = [...this.#users.values(), ...(this.#owner === undefined ? [] : [await this.#owner])];
    await Promise.all(all.map(principal => principal.close()));
  }

  async #makeOwner(): Promise<Principal> {
    const { access, ownerKube } = this.#options;
    const asking = new HttpKube(access);
    try {
      // Clusters before 1.28 cannot say who one is; that is no reason to lock their owner out.
      const known = await whoAmI(asking).catch(() => undefined);
      const identity = known ?? { user: 'the user of the kubeconfig', groups: [] };
      return this.#make({ identity, isOwner: true, kube: ownerKube }, async () => {});
    } finally {
      await asking.close();
    }
  }

  #make(who: Pick<Principal, 'identity' | 'isOwner' | 'kube'>, release: () => Promise<void>): Principal {
    const { kube } = who;
    const { server, prober, clock, onUnauthorized, onError } = this.#options;
    const feed = new Feed({ kube, server, prober, clock, onError, onUnauthorized: () => onUnauthorized(principal) });
    const principal: Principal = {
      ...who,
      feed,
      async close() {
        // From here on nobody gets it any more.
        const released = release();
        await feed.stop();
        await released;
      },
    };
    return principal;
  }
}
