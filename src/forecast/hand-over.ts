import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { BUNDLE_KEY } from '../certrotation/bundle.ts';
import type { RotationUnit } from '../certrotation/config.ts';
import { annotationsOf } from '../certrotation/secret.ts';
import type { Sync } from '../certrotation/unit.ts';
import { familiesOf, nextKey } from '../hand-over/family.ts';
import { RECEIPTS } from '../hand-over/names.ts';
import type { Receipt } from '../hand-over/receipt.ts';
import { syncByReceipts } from '../hand-over/sync.ts';
import { isNamed } from '../inventory/known-chains.ts';
import { certificatesIn } from '../inventory/relations.ts';
import type { Certificate } from '../pki/certificate.ts';
import { caDigest } from '../trust/receipts.ts';
import type { HandOverPhase } from './model.ts';
import type { PlanWorld } from './world.ts';

/** Hand-overs in a simulated cluster, in which everybody loads at once what has been delivered and rolled out. */
export class HandOverPlan {
  readonly #world: PlanWorld;
  readonly #units: readonly RotationUnit[];
  readonly #sync: Sync;
  /** The CAs that everybody has loaded, by their digests. */
  readonly #loaded = new Set<string>();
  #phase: HandOverPhase | undefined;

  private constructor(world: PlanWorld, units: readonly RotationUnit[], dayMs: number) {
    this.#world = world;
    this.#units = units;
    this.#sync = syncByReceipts(units, {
      dayMs,
      // Whatever is signed anew is shown at once.
      receipts: { of: async (_signer, ca) => [this.#receipt(ca)], shown: async () => [] },
      onDecision: (_family, { phase }) => {
        this.#phase = phase === 'Distributing' || phase === 'Signing' ? phase : undefined;
      },
    });
  }

  static async create(world: PlanWorld, units: readonly RotationUnit[], dayMs: number): Promise<HandOverPlan> {
    const plan = new HandOverPlan(world, units, dayMs);
    await plan.deliver();
    return plan;
  }

  /** A pass over one of these units; undefined for one of another operator. */
  syncOf(unit: RotationUnit): Sync | undefined {
    return this.#units.includes(unit) ? this.#sync : undefined;
  }

  /** The phase that the last pass was in, once. */
  takePhase(): HandOverPhase | undefined {
    const phase = this.#phase;
    this.#phase = undefined;
    return phase;
  }

  /** What is in the bundles has come to everybody. */
  async deliver(): Promise<void> {
    this.#loaded.clear();
    const bundles = new Map(this.#units.map(({ bundle }) => [`${bundle.namespace}/${bundle.name}`, bundle]));
    for (const { namespace, name } of bundles.values()) {
      const stored = await this.#world.configMap({ namespace, name });
      for (const ca of certificatesIn(stored?.data?.[BUNDLE_KEY])) this.#loaded.add(caDigest(ca));
    }
  }

  #receipt(ca: Certificate): Receipt {
    const isLoaded = this.#loaded.has(caDigest(ca));
    const evidence = isLoaded ? 'was delivered' : 'is about to be delivered';
    return { verifier: 'everybody', node: undefined, kind: 'reported', isLoaded, evidence, isWaived: false };
  }
}

/** Hand-overs that wait for somebody as the cluster is: the plan goes on as if they had answered. */
export function waitingNotes(units: readonly RotationUnit[], secrets: readonly Secret[]): string[] {
  return familiesOf(units).flatMap(({ signer }) => {
    const next = secrets.find(candidate => isNamed(candidate, nextKey(signer)));
    const missing = receiptsOn(next).filter(({ isLoaded, isWaived }) => !isLoaded && !isWaived);
    if (missing.length === 0) return [];
    const who = missing.map(({ verifier, evidence }) => `${verifier} (${evidence})`).join(', ');
    return [`secret/${signer.name} in ${signer.namespace} waits for ${who}: the plan goes on as if they had loaded it`];
  });
}

function receiptsOn(next: Secret | undefined): Receipt[] {
  try {
    const found: unknown = JSON.parse((next && annotationsOf(next)[RECEIPTS]) ?? '[]');
    return Array.isArray(found) ? (found as Receipt[]) : [];
  } catch {
    return [];
  }
}
