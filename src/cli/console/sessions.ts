import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Clock } from '../../kube/clock.ts';
import { hours, minutes } from '../../kube/duration.ts';
import type { Kube } from '../../kube/port.ts';
import type { Feed } from './feed.ts';
import type { Identity } from './identity.ts';
import type { Action } from './model.ts';

/** Somebody who acts with one set of credentials; shared by all sessions that logged in with the same. */
export interface Principal {
  readonly identity: Identity;
  /** Whoever started the console, and comes in with its links. */
  readonly isOwner: boolean;
  readonly kube: Kube;
  readonly feed: Feed;
  close(): Promise<void>;
}

export interface Session {
  readonly principal: Principal;
  readonly csrf: string;
  readonly expiresAt: Date;
  /** Actions whose plan was shown, by the id that carries them out. */
  readonly previews: Map<string, Action>;
  /** Open streams, ended with the session. */
  readonly streams: Set<() => void>;
}

export const SESSION_MS = hours(12);
const LINK_MS = minutes(60);
/** Of all users together; and of the owner, who needs nobody's place. */
export const MOST_SESSIONS = 64;
/** Of one user, with however many tokens. */
export const MOST_SESSIONS_OF_USER = 8;
const MOST_LINKS = 16;

/** Who is logged in. Knows only digests of what people show to be let in. */
export class Sessions {
  readonly #clock: Clock;
  readonly #onUnused: (principal: Principal) => void;
  readonly #sessions = new Map<string, Session>();
  readonly #links = new Map<string, number>();

  /** `onUnused` hears of those who have no session any more. */
  constructor(clock: Clock, onUnused: (principal: Principal) => void = () => {}) {
    this.#clock = clock;
    this.#onUnused = onUnused;
  }

  /** A token that opens one session, once. */
  makeLink(): string {
    const token = randomBytes(32).toString('base64url');
    this.#links.set(digestOf(token), this.#nowMs + LINK_MS);
    for (const [oldest] of [...this.#links].slice(0, -MOST_LINKS)) this.#links.delete(oldest);
    return token;
  }

  /** Whether the token is good; it is not any more afterwards. */
  useLink(token: string): boolean {
    const digest = digestOf(token);
    const untilMs = this.#links.get(digest);
    this.#links.delete(digest);
    return untilMs !== undefined && untilMs > this.#nowMs;
  }

  /**
   * Opens a session and gives the value of its cookie. Who has too many loses the oldest; undefined when others have
   * taken all places, which never happens to the owner.
   */
  open(principal: Principal): { readonly cookie: string; readonly session: Session } | undefined {
    const { isOwner } = principal;
    const alike = this.all().filter(session => session.principal.isOwner === isOwner && !this.#isOver(session));
    const own = alike.filter(session => session.principal.identity.user === principal.identity.user);
    const oldest = own.length < (isOwner ? MOST_SESSIONS : MOST_SESSIONS_OF_USER) ? undefined : own[0];
    if (oldest === undefined && alike.length >= MOST_SESSIONS) {
      this.#tellIfUnused(principal);
      return undefined;
    }
    const cookie = randomBytes(32).toString('base64url');
    const session: Session = {
      principal,
      csrf: randomBytes(32).toString('base64url'),
      expiresAt: new Date(this.#nowMs + SESSION_MS),
      previews: new Map(),
      streams: new Set(),
    };
    this.#sessions.set(digestOf(cookie), session);
    // Not before the new one is there: it may use the same credentials.
    this.forgetExpired();
    if (oldest !== undefined) this.end(oldest);
    return { cookie, session };
  }

  find(cookie: string | undefined): Session | undefined {
    if (cookie === undefined) return undefined;
    this.forgetExpired();
    return this.#sessions.get(digestOf(cookie));
  }

  end(session: Session): void {
    for (const [digest, candidate] of this.#sessions) if (candidate === session) this.#sessions.delete(digest);
    for (const close of session.streams) close();
    this.#tellIfUnused(session.principal);
  }

  endOf(principal: Principal): void {
    for (const session of this.all()) if (session.principal === principal) this.end(session);
  }

  all(): Session[] {
    return [...this.#sessions.values()];
  }

  /** Ends what is over, open streams too. */
  forgetExpired(): void {
    for (const session of this.all()) if (this.#isOver(session)) this.end(session);
  }

  #isOver({ expiresAt }: Session): boolean {
    return expiresAt.getTime() <= this.#nowMs;
  }

  #tellIfUnused(principal: Principal): void {
    if (!this.all().some(session => session.principal === principal)) this.#onUnused(principal);
  }

  get #nowMs(): number {
    return this.#clock.now().getTime();
  }
}

export function digestOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

/** Compares in a time that tells nothing. */
export function isSameText(a: string, b: string): boolean {
  const [left, right] = [createHash('sha256').update(a).digest(), createHash('sha256').update(b).digest()];
  return timingSafeEqual(left, right);
}
