import { lead } from '../controller/lead.ts';
import { minutes, seconds } from '../kube/duration.ts';
import type { ObjectKey } from '../kube/resource.ts';
import type { Work } from './component.ts';
import type { Time } from './time.ts';

/** A lease that nobody keeps is taken within this time: it lasts 137 s, and who waits looks within another minute. */
const TAKEN_WITHIN_MS = minutes(4);
/** Clocks of the twin go wrong at the start of a process, not while it runs. */
const CLOCK_CHECK_MS = seconds(60);

/** Does the work of an operator when the real lease says so, as `rotunda`'s operators do; when it is lost, the process ends. */
export function asLeader(time: Time, lease: ObjectKey & { readonly namespace: string }, work: Work): Work {
  return async (tools, signal) => {
    const { kube, identity, leaseClock: clock, events, log } = tools;
    // Dead or alive, it may leave a lease to which nothing happens: others have to see that.
    // And whoever comes later waits for a lease that its holder left long ago.
    void time.stayAwake(TAKEN_WITHIN_MS);
    signal.addEventListener('abort', () => void time.stayAwake(TAKEN_WITHIN_MS), { once: true });
    await lead(
      { kube, lease, identity, clock, events, log, clockCheckMs: CLOCK_CHECK_MS },
      async (fenced, leading) => void (await work({ ...tools, kube: fenced }, leading)),
      signal,
    );
  };
}
