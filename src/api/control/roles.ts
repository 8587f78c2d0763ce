import type { ClusterRole } from 'kubernetes-types/rbac/v1.d.ts';
import { staleAggregates } from '../auth/aggregation.ts';
import { RBAC_GROUP } from '../auth/rbac.ts';
import type { Kind } from '../kinds/kind.ts';
import { amend } from '../rest/amend.ts';
import type { Core } from '../rest/core.ts';
import type { Controller } from './controller.ts';
import { Worker } from './worker.ts';

const BUCKET = `${RBAC_GROUP}/clusterroles`;

/** Keeps the rules of aggregated ClusterRoles in line with the roles they select. */
export function aggregateRoles(core: Core, onError: (key: string, error: unknown) => void): Controller {
  const worker = new Worker(core.clock, () => look(), onError);
  const stop = core.store.watch(BUCKET, core.store.revision, () => worker.add(BUCKET));
  worker.add(BUCKET);
  return {
    idle: () => worker.idle(),
    close: () => {
      stop();
      return worker.close();
    },
  };

  async function look(): Promise<undefined> {
    const roles = [...core.store.list(BUCKET)].map(({ object }) => object as ClusterRole);
    const kind = core.registry.ofBucket(BUCKET) as Kind;
    for (const { metadata, rules } of staleAggregates(roles)) {
      await amend(core, kind, metadata?.name ?? '', object => ({ ...object, rules }));
    }
  }
}
