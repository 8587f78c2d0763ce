import type { Infrastructure } from '../resources.ts';
import { mergeConfigs, nested } from '../target-config/merge.ts';
import type { Observer } from './observation.ts';

const DELAY = ['apiServerArguments', 'shutdown-delay-duration'];
const GRACEFUL = ['gracefulTerminationDuration'];

/** How long a server waits before it stops, and is given to stop, where the platform asks for other than the usual (spec 20, 4.1). */
export const termination: Observer = {
  paths: [DELAY, GRACEFUL],
  observe({ infrastructure }) {
    const times = timesFor(infrastructure);
    if (times === undefined) return { config: {} };
    return { config: mergeConfigs(nested(DELAY, [times.delay]), nested(GRACEFUL, times.graceful)) };
  },
};

/** Undefined: the defaults are right. A single node counts before the platform. */
function timesFor(infrastructure: Infrastructure | undefined): { delay: string; graceful: string } | undefined {
  // Nobody to hand over to: stop at once.
  if (infrastructure?.status?.controlPlaneTopology === 'SingleReplica') return { delay: '0s', graceful: '15' };
  // Its load balancers take long to notice.
  if (infrastructure?.spec?.platformSpec?.type === 'AWS') return { delay: '129s', graceful: '194' };
  return undefined;
}
