import { liveObjects, type Rotation } from '../../certrotation/ensure.ts';
import { ObjectLocks } from '../../certrotation/locks.ts';
import { isManaged } from '../../controller/management-state.ts';
import { TrustSurvey } from '../verifiers.ts';
import type { CertSignerDependencies, QuorumCheck } from './options.ts';
import { makeMissing, type Pass, rotateAll } from './pass.ts';
import { type Phase, phaseOf, readState } from './state.ts';

export interface SyncResult {
  readonly phase: Phase | 'unmanaged';
  readonly until: Date | undefined;
  /** Why leaves were left alone; undefined: they are as they should be. */
  readonly held: string | undefined;
}

/** One pass of the EtcdCertSignerController, without its report (spec 40, 3.2 with section 12). */
export async function syncCertificates(
  dependencies: CertSignerDependencies,
  signal?: AbortSignal,
): Promise<SyncResult> {
  const { kube, clock, keys, events, log, profile, quorum, isGateOff = false } = dependencies;
  const state = await readState(kube, signal);
  // An operator that is told to keep its hands off rotates nothing either (spec 40, T-15).
  if (!isManaged(state.managementState))
    return { phase: 'unmanaged', until: undefined, held: 'the operator is not managed' };
  const phase = isGateOff ? 'installation' : phaseOf(state);
  const rotation: Rotation = { kube, objects: liveObjects(kube), clock, keys, events, locks: new ObjectLocks(), log };
  // A node that has just come needs its certificates also where another one is down: that is how a lost node is replaced.
  const isRolling = phase === 'rolling';
  if (!isRolling) await requireQuorum(quorum, signal);
  const pass: Pass = {
    options: {
      ...dependencies,
      secondCheck: async () => (isRolling ? undefined : requireQuorum(quorum, signal)),
    },
    rotation,
    state,
    isGateOff: phase === 'installation',
    trust: new TrustSurvey({ kube, profile, etcd: state.etcd, kubeApiServer: state.kubeApiServer, signal }),
    signal,
  };
  const result = isRolling ? await makeMissing(pass) : await rotateAll(pass);
  dependencies.metrics.held(result.held !== undefined);
  return { phase, ...result };
}

const SKIPPING = 'skipping EtcdCertSignerController reconciliation due to insufficient quorum';

/** Measured anew each time: a member that died since somebody last looked is dead, and two looks at one answer are one look (spec 40, T-4). */
async function requireQuorum(quorum: QuorumCheck, signal: AbortSignal | undefined): Promise<void> {
  const { safe, error } = await quorum({ maxAgeMs: 0, signal });
  if (safe) return;
  if (error === undefined) throw new Error(SKIPPING);
  throw new Error(`EtcdCertSignerController can't evaluate whether quorum is safe: ${error}; ${SKIPPING}`);
}
