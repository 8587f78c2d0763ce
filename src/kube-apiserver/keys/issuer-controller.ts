import type { Reconcile } from '../../controller/reconcile.ts';
import { updateStatus } from '../../controller/status.ts';
import type { Kube } from '../../kube/port.ts';
import type { Objects } from '../../staticpod/objects.ts';
import { AUTHENTICATIONS, CLUSTER, KUBE_API_SERVERS, type KubeAPIServer } from '../resources.ts';
import { decideIssuers, type IssuerDecision } from './issuer.ts';

export interface IssuerOptions {
  readonly kube: Kube;
  readonly cached: Objects;
}

/** Keeps the list of service-account issuers that are active or still trusted (spec 20, 8.4). */
export function issuerReconcile({ kube, cached }: IssuerOptions): Reconcile {
  return async (_key, { clock, events, signal }) => {
    const authentication = await cached.get(AUTHENTICATIONS, CLUSTER);
    const wanted = authentication && (authentication.spec?.serviceAccountIssuer ?? '');
    let decision: IssuerDecision = { action: 'keep' };
    const mutate = (operator: KubeAPIServer): KubeAPIServer => {
      decision = decideIssuers(wanted, operator.status?.serviceAccountIssuers ?? [], clock.now());
      if (decision.action !== 'set') return operator;
      return { ...operator, status: { ...operator.status, serviceAccountIssuers: decision.issuers } };
    };
    const { updated } = await updateStatus(kube, KUBE_API_SERVERS, CLUSTER, mutate, { clock, signal });
    const made = decision as IssuerDecision;
    if (made.action === 'fail') throw new Error(made.error);
    if (made.action === 'set' && updated) {
      events.event('Normal', 'ServiceAccountIssuer', made.event);
      // What was set may already ask for the next step.
      return { againAt: clock.now() };
    }
    return { againAt: made.action === 'keep' ? made.until : undefined };
  };
}
