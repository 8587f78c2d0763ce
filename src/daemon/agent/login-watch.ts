import type { Log } from '../../controller/log.ts';
import type { HostSessions } from '../../host/port.ts';
import { backoffMs } from '../../kube/backoff.ts';
import { type Clock, sleep } from '../../kube/clock.ts';
import { minutes, seconds } from '../../kube/duration.ts';
import { SSH_ACCESS } from '../../machine-config-api/names.ts';
import type { NodeWriter } from '../node-writer.ts';
import type { AgentMetrics } from './metrics.ts';
import type { OwnNode } from './own-node.ts';

export interface LoginWatchOptions {
  readonly sessions: HostSessions;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<AgentMetrics, 'login'>;
  /** Says on the node that somebody logged in. */
  announce(): Promise<void>;
}

const RETRY = { firstMs: seconds(1), longestMs: minutes(1) };

/**
 * Warns of every login session of the host, those included that were there before us, and has the node say so for ever
 * (spec 60, section 15; promised by seed 003). What cannot be asked or said now is tried again.
 */
export async function watchLogins(options: LoginWatchOptions, signal: AbortSignal): Promise<void> {
  const { sessions, clock, log } = options;
  const watch = new LoginWatch(options);
  const bell = new Bell();
  const watching = (async () => {
    for (let failures = 0; !signal.aborted; ) {
      try {
        await sessions.watch(() => bell.ring(), signal);
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        log.warn({ err: error }, 'login sessions cannot be watched');
      }
      // A watch that ended is begun again; what happened in between is found by looking.
      await sleep(clock, backoffMs(++failures, RETRY), signal).catch(() => {});
      bell.ring();
    }
  })();
  signal.addEventListener('abort', () => bell.ring(), { once: true });
  for (let failures = 0; !signal.aborted; ) {
    try {
      await watch.look();
      failures = 0;
      await bell.heard();
    } catch (error) {
      if (signal.aborted) break;
      log.warn({ err: error }, 'a login session could not be looked at or told of');
      await sleep(clock, backoffMs(++failures, RETRY), signal).catch(() => {});
    }
  }
  await watching;
}

/** Says on the node that somebody logged in. Once said it stays said; only people remove it (spec 60, section 15). */
export async function sayAccessed(node: OwnNode, writer: Pick<NodeWriter, 'annotate'>): Promise<void> {
  if (node.annotations()[SSH_ACCESS] !== ACCESSED) await writer.annotate({ [SSH_ACCESS]: ACCESSED });
}

const ACCESSED = 'accessed';

class LoginWatch {
  readonly #options: LoginWatchOptions;
  /** The sessions that have been told of and still exist. */
  #known = new Set<string>();
  #mustAnnounce = false;

  constructor(options: LoginWatchOptions) {
    this.#options = options;
  }

  async look(): Promise<void> {
    const { sessions, log, metrics, announce } = this.#options;
    const found = await sessions.list();
    for (const { id, user, isRemote, since } of found) {
      if (this.#known.has(id)) continue;
      log.warn({ session: id, user, isRemote, since }, `Detected a new login session: ${id} of user ${user}`);
      metrics.login();
      this.#mustAnnounce = true;
    }
    this.#known = new Set(found.map(({ id }) => id));
    if (!this.#mustAnnounce) return;
    await announce();
    this.#mustAnnounce = false;
  }
}

/** Rung any number of times, heard once. */
class Bell {
  #isRung = false;
  #wake: () => void = () => {};

  ring(): void {
    this.#isRung = true;
    this.#wake();
  }

  async heard(): Promise<void> {
    if (!this.#isRung) {
      await new Promise<void>(resolve => {
        this.#wake = resolve;
      });
    }
    this.#isRung = false;
  }
}
