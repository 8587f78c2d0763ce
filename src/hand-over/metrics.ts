import type { Registry } from '@prometheus-io/client';
import { collectGauge } from '../controller/collected-gauge.ts';
import type { Clock } from '../kube/clock.ts';
import type { Phase } from './decide.ts';
import type { Standing } from './report.ts';

export const PHASE_METRIC = 'rotunda_handover_phase';
export const WAITING_METRIC = 'rotunda_handover_waiting_seconds';
export const VERIFIERS_METRIC = 'rotunda_handover_verifiers';
export const MISSING_METRIC = 'rotunda_handover_missing';

const PHASES: readonly Phase[] = ['Steady', 'Distributing', 'Signing', 'Retiring'];

/** Each name is a series of its own; who wants all of them asks for the condition. */
const MOST_NAMES = 20;

/** Where the hand-over of every signer stands, and for whom it waits, by name (spec 90, HO-7). */
export function handOverMetrics(registry: Registry, clock: Clock, standings: () => readonly Standing[]): void {
  collectGauge(registry, {
    name: PHASE_METRIC,
    help: 'The phase that the hand-over of a signer is in: 1 for that phase, 0 for the others.',
    labels: ['signer', 'phase'],
    values: () =>
      standings().flatMap(({ signer, phase }) =>
        PHASES.map(candidate => [{ signer, phase: candidate }, candidate === phase ? 1 : 0] as const),
      ),
  });
  collectGauge(registry, {
    name: WAITING_METRIC,
    help: 'How long the hand-over of a signer has waited for verifiers or presenters, in seconds; 0 when it does not wait.',
    labels: ['signer'],
    values: () =>
      standings().map(({ signer, waitingSince }) => {
        const waitedMs = waitingSince === undefined ? 0 : clock.now().getTime() - waitingSince.getTime();
        return [{ signer }, Math.max(0, waitedMs) / 1000] as const;
      }),
  });
  collectGauge(registry, {
    name: MISSING_METRIC,
    help: `1 for each verifier or presenter that the hand-over of a signer waits for, ${MOST_NAMES} of them at most.`,
    labels: ['signer', 'verifier'],
    values: () =>
      standings().flatMap(({ signer, waitingFor }) =>
        waitingFor.slice(0, MOST_NAMES).map(verifier => [{ signer, verifier }, 1] as const),
      ),
  });
  collectGauge(registry, {
    name: VERIFIERS_METRIC,
    help: 'How many verifiers have loaded the next signer, are waited for, or are waived; none while nobody has to be asked.',
    labels: ['signer', 'state'],
    values: () =>
      standings().flatMap(({ signer, receipts }) => {
        const count = (state: string, isIn: (receipt: (typeof receipts)[number]) => boolean) =>
          [{ signer, state }, receipts.filter(isIn).length] as const;
        return [
          count('loaded', ({ isLoaded }) => isLoaded),
          count('waiting', ({ isLoaded, isWaived }) => !isLoaded && !isWaived),
          count('waived', ({ isLoaded, isWaived }) => !isLoaded && isWaived),
        ];
      }),
  });
}
