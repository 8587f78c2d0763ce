import { days, minutes } from '../kube/duration.ts';
import { type Broken, Cluster, START } from './cluster.ts';
import type { Fault } from './fault.ts';
import { Faults } from './faults.ts';
import { Invariants, type Violation } from './invariants.ts';

export interface LifeOptions {
  readonly seed: string;
  readonly days: number;
  /** What goes wrong, and when; nothing unless given. */
  readonly faults?: readonly Fault[] | undefined;
  readonly broken?: Broken | undefined;
  readonly handOver?: 'receipts' | 'clock' | undefined;
  readonly controlPlane?: number | undefined;
  readonly workers?: number | undefined;
  /** How long a day of etcd's certificates lasts; a day unless told otherwise. */
  readonly etcdDayMs?: number | undefined;
  /** How many processes of each operator there are; one unless told otherwise. */
  readonly operatorInstances?: number | undefined;
  /** Whether `cert-regeneration-controller` runs beside each kube-apiserver; true unless told otherwise. */
  readonly regenerates?: boolean | undefined;
  /** Whether nodes are configured by the real operator, controllers and agents, with drains and reboots. */
  readonly updatesNodes?: boolean | undefined;
  readonly leavesLullsOut?: boolean | undefined;
  /** Told of everything that happens. */
  readonly tell?: ((atMs: number, what: string) => void) | undefined;
  /** Stops at the first violation; true unless told otherwise. */
  readonly stopsAtFirst?: boolean | undefined;
  /** Told at the end of every day. */
  readonly onDay?: ((sofar: LifeSoFar) => void) | undefined;
}

/** What a life has shown until now. */
export interface LifeSoFar {
  /** How long every connection has been watched. */
  readonly livedMs: number;
  /** How many things have gone wrong. */
  readonly faults: number;
  /** Refusals that the faults made inevitable. */
  readonly inevitable: number;
  readonly looks: number;
  readonly checked: number;
  /** How many signers have been handed over. */
  readonly handOvers: number;
}

/** What a life has shown. */
export interface Life extends LifeSoFar {
  readonly seed: string;
  readonly days: number;
  readonly violations: readonly Violation[];
  readonly writes: number;
  /** By what happened, how often. */
  readonly counts: Readonly<Record<string, number>>;
}

/** A cluster comes up within this time. */
const BRING_UP_MS = minutes(10);
const STEP_MS = days(1);

/** Lives through the life of one cluster, and checks after every event what has to be true. */
export async function live(options: LifeOptions): Promise<Life> {
  const { seed, tell = () => {}, stopsAtFirst = true, faults: plan = [], onDay = () => {} } = options;
  const counts: Record<string, number> = {};
  const cluster = new Cluster({
    ...options,
    tell: (atMs, what) => {
      const [, reason] = /^[^:]*: (\w+):/.exec(what) ?? [];
      if (reason !== undefined) counts[reason] = (counts[reason] ?? 0) + 1;
      tell(atMs, what);
    },
  });
  const beginMs = START.getTime() + BRING_UP_MS;
  const faults = new Faults(cluster, plan);
  const invariants = new Invariants(cluster, faults.inevitable);
  let looks = 0;
  let checked = 0;
  const sofar = (): LifeSoFar => ({
    livedMs: cluster.time.nowMs - beginMs,
    faults: faults.happened,
    inevitable: invariants.inevitable,
    looks,
    checked,
    handOvers: counts['SignerInUseChanged'] ?? 0,
  });
  await cluster.begin();
  await cluster.goOn(new Date(beginMs));
  invariants.begin();
  faults.begin(beginMs);
  const endMs = beginMs + days(options.days);
  while (cluster.time.nowMs < endMs && !(stopsAtFirst && invariants.violations.length > 0)) {
    const next = new Date(Math.min(endMs, cluster.time.nowMs + STEP_MS));
    await cluster.goOn(next, look => {
      looks++;
      checked += look.checked;
      invariants.check(look);
    });
    onDay(sofar());
  }
  if (invariants.violations.length === 0) invariants.checkEnd();
  cluster.end();
  return {
    seed,
    days: options.days,
    violations: invariants.violations,
    writes: cluster.api.revision,
    counts,
    ...sofar(),
  };
}
