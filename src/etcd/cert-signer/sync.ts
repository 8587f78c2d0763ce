import { liveObjects, type Rotation } from '../../certrotation/ensure.ts';
import { ObjectLocks } from '../../certrotation/locks.ts';
import { isManaged } from '../../controller/management-state.ts';
import { RetryRequest } from '../../controller/reconcile.ts';
import { FAMILY_TABLE } from '../cert-table.ts';
import { ALL_BUNDLES } from '../names.ts';
import { FAMILIES } from '../profile.ts';
import type { RolloutStatus } from '../quorum/rollout.ts';
import { TrustSurvey, waivedNodes } from '../verifiers.ts';
import { UnreportedFailure } from './failure.ts';
import { CERT_SIGNER, type CertSignerDependencies, type QuorumCheck } from './options.ts';
import { lacksLeaves, makeMissing, type Pass, type PassResult, rotateAll } from './pass.ts';
import { isInstalling, type Phase, phaseOf, readState } from './state.ts';

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
  const waived = waivedNodes(state.nodes);
  const phase = isGateOff ? 'installation' : phaseOf({ ...state, etcd: without(waived, state.etcd) });
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
    waived,
    trust: new TrustSurvey({ kube, profile, etcd: state.etcd, kubeApiServer: state.kubeApiServer, waived, signal }),
    signal,
  };
  const { until, held, standings } = await carryOut(pass, phase);
  for (const family of FAMILIES) {
    const standing = standings?.[family];
    const signer = { name: FAMILY_TABLE[family].signer };
    if (standing !== undefined) dependencies.handOvers?.decided({ signer }, standing.decision, standing.since);
  }
  dependencies.metrics.held(held !== undefined);
  return { phase, until, held };
}

/** The roll-out as far as anybody waits for it (spec 90, HO-7); where nobody is left, it is as it is. */
function without<T extends RolloutStatus>(waived: ReadonlySet<string>, status: T): T {
  const counted = (status.nodeStatuses ?? []).filter(({ nodeName }) => !waived.has(nodeName ?? ''));
  return counted.length === 0 ? status : { ...status, nodeStatuses: counted };
}

/** What the phase allows; in the later layout, failures are told by what was tried (spec 40, N-2 to N-4 and N-8). */
async function carryOut(pass: Pass, phase: Phase): Promise<PassResult> {
  const { state, options } = pass;
  const isLater = options.profile.release === 'later';
  const trying = async <T>(what: string | undefined, work: Promise<T>): Promise<T> => {
    try {
      return await work;
    } catch (error) {
      if (what === undefined || !isLater || error instanceof RetryRequest) throw error;
      throw new UnreportedFailure(`${CERT_SIGNER} failed to ${what}`, error);
    }
  };
  const isWithoutBundles = isLater && state.allBundles === undefined;
  if (phase === 'rolling') {
    return trying(isWithoutBundles ? MAKE_BUNDLES : FORCE_LEAVES, makeMissing(pass, 'a revision is being rolled out'));
  }
  if (phase === 'settled' && isLater && !isWithoutBundles && lacksLeaves(state.allCerts?.data, state.nodes)) {
    // A node waits for these. The pass that their aggregate wakes rotates what is due (spec 40, N-4).
    const forced = await trying(FORCE_LEAVES, makeMissing(pass, 'leaves that were missing come first'));
    if (!forced.lacking) return forced;
  }
  const isInstallersTurn = phase === 'installation' && isInstalling(state.bootstrap);
  const what = isInstallersTurn ? DURING_BOOTSTRAP : phase === 'settled' && isWithoutBundles ? MAKE_BUNDLES : undefined;
  return trying(what, rotateAll(pass));
}

const DURING_BOOTSTRAP = 'sync all master certificates during bootstrap';
const MAKE_BUNDLES = `sync all master certificates to regenerate missing ${ALL_BUNDLES} configmap`;
const FORCE_LEAVES = 'force sync leaf certificates';

const SKIPPING = 'skipping EtcdCertSignerController reconciliation due to insufficient quorum';

/** Measured anew each time: a member that died since somebody last looked is dead, and two looks at one answer are one look (spec 40, T-4). */
async function requireQuorum(quorum: QuorumCheck, signal: AbortSignal | undefined): Promise<void> {
  const { safe, error } = await quorum({ maxAgeMs: 0, signal });
  if (safe) return;
  if (error === undefined) throw new Error(SKIPPING);
  throw new Error(`EtcdCertSignerController can't evaluate whether quorum is safe: ${error}; ${SKIPPING}`);
}
