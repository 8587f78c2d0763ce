import { type LeadOptions, lead } from '../controller/lead.ts';
import { sleep, systemClock } from '../kube/clock.ts';
import { seconds } from '../kube/duration.ts';
import { isTransient } from '../kube/error.ts';
import { LeadershipLost } from '../kube/lease.ts';
import type { Kube } from '../kube/port.ts';
import type { PartState } from './part.ts';

/** An operator of this process that works while it leads, as the same one in a process of its own would. */
export interface Leading {
  /** Resolves after the abort, when the lease is given back; rejects when the work fails. */
  readonly done: Promise<void>;
  /** The state of the work, or who leads instead. */
  state(work: PartState): PartState;
}

/** Before leading again; an API that is away is not asked in a tight loop. */
const PAUSE_MS = seconds(1);

/**
 * Leads again after a loss, such as a machine that slept, and where work ended because the API was away: there is nobody here who would
 * start the process anew. `work` begins from nothing each time.
 */
export function leadOnAndOn(
  options: Omit<LeadOptions, 'onHeld'> & { readonly changed: () => void },
  work: (kube: Kube, signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Leading {
  const { changed, log, lease, clock = systemClock } = options;
  let isLeading = false;
  let holder: string | undefined;
  const tell = (leads: boolean, by?: string) => {
    isLeading = leads;
    holder = by;
    changed();
  };
  const run = async () => {
    while (!signal.aborted) {
      try {
        await lead(
          { ...options, onHeld: other => tell(false, other) },
          (kube, until) => {
            tell(true);
            return work(kube, until);
          },
          signal,
        );
      } catch (err) {
        if (!(err instanceof LeadershipLost || isTransient(err))) throw err;
        log.warn({ err }, 'leading again');
        tell(false);
        await sleep(clock, PAUSE_MS, signal).catch(() => {});
      }
    }
  };
  return {
    done: run(),
    state: state => {
      if (isLeading) return state;
      const who = holder === undefined ? '' : `, which ${holder} holds`;
      return { ready: false, text: `waiting for the lease ${lease.namespace}/${lease.name}${who}` };
    },
  };
}
