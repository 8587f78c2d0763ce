import { collectGauge } from '../../controller/collected-gauge.ts';
import type { Registry } from '../../controller/metrics.ts';
import type { Clock } from '../../kube/clock.ts';
import { floorToMs, parseRfc3339 } from '../../kube/time.ts';
import { KUBEADM_CHAINS } from '../chains.ts';
import { PKI_NAMESPACE } from '../names.ts';
import { SERVICE_ACCOUNT } from '../service-account-keys.ts';
import type { PassSight } from './pass.ts';

export const LEAF_NOT_AFTER = 'rotunda_kubeadm_leaf_not_after_timestamp_seconds';
export const SIGNER_NOT_AFTER = 'rotunda_kubeadm_signer_not_after_timestamp_seconds';
export const ROUND_WAITING = 'rotunda_kubeadm_round_waiting_seconds';
export const WAITING = 'rotunda_kubeadm_waiting_seconds';
export const NODE_PROBLEM = 'rotunda_kubeadm_node_problem';
export const ADOPTED = 'rotunda_kubeadm_adopted';
export const PHASE = 'rotunda_kubeadm_hand_over_phase';

/** Tells Prometheus what the last pass saw (spec 70, 8); moments are absolute, as is the habit. */
export function operatorMetrics(registry: Registry, clock: Clock): (sight: PassSight) => void {
  let last: PassSight | undefined;
  const since = (text: string) => Math.max(0, (clock.now().getTime() - Date.parse(text)) / 1000);
  collectGauge(registry, {
    name: LEAF_NOT_AFTER,
    help: 'When a certificate that an agent reports ends, in Unix seconds.',
    labels: ['node', 'name', 'signer'],
    values: () =>
      (last?.nodes ?? []).flatMap(({ name: node, report }) =>
        KUBEADM_CHAINS.flatMap(({ name, signer }) => {
          const end = parseRfc3339(report?.leaves[name]?.notAfter ?? '');
          return end === undefined ? [] : [[{ node, name, signer }, floorToMs(end).getTime() / 1000] as const];
        }),
      ),
  });
  collectGauge(registry, {
    name: SIGNER_NOT_AFTER,
    help: 'When a CA in use ends, in Unix seconds.',
    labels: ['name'],
    values: () =>
      (last?.families ?? []).map(({ name, current }) => [{ name }, current.notAfter.getTime() / 1000] as const),
  });
  collectGauge(registry, {
    name: ROUND_WAITING,
    help: 'For how long a node has been at work on what was asked of it.',
    labels: ['node'],
    values: () =>
      last?.status.round ? [[{ node: last.status.round.node }, since(last.status.round.since)] as const] : [],
  });
  collectGauge(registry, {
    name: WAITING,
    help: 'For how long somebody has held up what would be done otherwise.',
    labels: ['who'],
    values: () => (last?.status.waitingFor ?? []).map(({ who, since: at }) => [{ who }, since(at)] as const),
  });
  collectGauge(registry, {
    name: NODE_PROBLEM,
    help: '1 for a node whose agent reports a problem, or nothing at all.',
    labels: ['node'],
    values: () =>
      (last?.nodes ?? []).map(
        ({ name: node, report }) => [{ node }, Number(report === undefined || report.problem !== undefined)] as const,
      ),
  });
  collectGauge(registry, {
    name: ADOPTED,
    help: '1 once the nodes were seen to agree and the CAs are in Secrets.',
    labels: ['namespace'],
    values: () => (last === undefined ? [] : [[{ namespace: PKI_NAMESPACE }, Number(last.status.adopted)] as const]),
  });
  collectGauge(registry, {
    name: PHASE,
    help: '1 for the phase in which the hand-over of a CA, or of the keys of service accounts (sa), is.',
    labels: ['name', 'phase'],
    values: () => {
      const { families, serviceAccount } = last?.status ?? {};
      const all = { ...families, ...(serviceAccount && { [SERVICE_ACCOUNT]: serviceAccount }) };
      return Object.entries(all).map(([name, { phase }]) => [{ name, phase }, 1] as const);
    },
  });
  return sight => {
    last = sight;
  };
}
