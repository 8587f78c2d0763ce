import { CERT_REGENERATION } from '../kube-apiserver/operand-objects.ts';
import type { PlanObjects } from './objects.ts';
import { type Refusal, type Rehearsal, rehearse } from './rehearse.ts';
import { type PlanOptions, type Standstill, TRUST } from './simulate.ts';
import { firstToFail } from './standstill.ts';

/** What becomes of a cluster that is switched off for a while. Times are RFC 3339 texts. */
export interface Hibernation {
  /** Nobody refuses anybody when it is switched on again. */
  readonly isSafe: boolean;
  /** The last moment at which it could be switched on like this; absent: there is none, or no end of it can be seen. */
  readonly lastSafeWakeUp?: string | undefined;
  /** Who would be refused after it. */
  readonly firstToFail?: Refusal | undefined;
  /** Who is refused at the wake-up of the question, until when; those without an end go on. */
  readonly atWakeUp: readonly Refusal[];
  /** Why nobody renews anything by himself after this wake-up, where it is so: who does not get through. */
  readonly stuck: readonly Refusal[];
  readonly rehearsal: Rehearsal;
}

export interface HibernationOptions extends Omit<PlanOptions, 'stopped' | 'observe'> {
  readonly off: Standstill;
  /** How long those who renew need after a wake-up: so long everything has to last. */
  readonly settlesMs: number;
  /** How far wake-ups are looked for. */
  readonly horizon: Date;
  /** The grid on which the last safe wake-up is looked for, where it is not simply when the first certificate ends. */
  readonly stepMs: number;
}

/** Lives through the time off and the time after it, and looks for the last wake-up after which nobody is refused. */
export async function hibernate(objects: PlanObjects, options: HibernationOptions): Promise<Hibernation> {
  const { off, settlesMs, horizon, stepMs, ...plan } = options;
  const wakeUp = (until: Date) => rehearse(objects, { ...plan, until, stopped: off });
  const first = await firstToFail(objects, { ...plan, from: off.from, until: horizon });
  const rehearsal = await wakeUp(plan.until);
  const wake = off.until.toISOString();
  const atWakeUp = rehearsal.refusals.filter(({ until }) => until === undefined || until >= wake);
  const isWell = async (at: number) => {
    const stopped = { from: off.from, until: new Date(at) };
    const { refusals } = await rehearse(objects, { ...plan, stopped, until: new Date(at + settlesMs) });
    return !refusals.some(({ until }) => until === undefined || until >= stopped.until.toISOString());
  };
  const endMs = first && Date.parse(first.since) - settlesMs;
  const last = endMs && (await lastWell(off.from.getTime(), endMs, stepMs, isWell));
  return {
    isSafe: atWakeUp.length === 0 && (endMs === undefined || off.until.getTime() <= endMs),
    lastSafeWakeUp: last === undefined ? undefined : new Date(last).toISOString(),
    firstToFail: first,
    atWakeUp,
    stuck: atWakeUp.filter(isLifeline),
    rehearsal,
  };
}

/** The last moment at which all is well, found by halving; all that ends, ends before `endMs`. Undefined: there is none. */
async function lastWell(
  fromMs: number,
  endMs: number,
  stepMs: number,
  isWell: (atMs: number) => Promise<boolean>,
): Promise<number | undefined> {
  if (endMs < fromMs) return undefined;
  if (await isWell(endMs)) return endMs;
  let [good, bad] = [-1, Math.ceil((endMs - fromMs) / stepMs)];
  while (bad - good > 1) {
    const middle = Math.floor((good + bad) / 2);
    if (await isWell(fromMs + middle * stepMs)) good = middle;
    else bad = middle;
  }
  return good < 0 ? undefined : fromMs + good * stepMs;
}

/**
 * Without these nobody comes to the API to renew what has ended: the members of etcd and who stores in them, and the way by which
 * cert-regeneration-controller reaches its kube-apiserver whatever else has ended.
 */
function isLifeline({ connection }: Refusal): boolean {
  const edge = TRUST.edges.find(({ name }) => name === connection);
  if (edge === undefined) return false;
  const { client, server } = edge;
  if (client.process === CERT_REGENERATION) return true;
  return server.process === 'etcd' && (client.process === 'etcd' || client.process === 'kube-apiserver');
}
