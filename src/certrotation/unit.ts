import { ensureBundle, heldIn } from './bundle.ts';
import type { RotationUnit } from './config.ts';
import type { Rotation } from './ensure.ts';
import { ensureSigner } from './signer.ts';
import { ensureTarget } from './target.ts';

export type SyncResult =
  /** All three objects are right; nothing is due before `until`. */
  | {
      readonly outcome: 'done';
      readonly until: Date;
      readonly regenerated: readonly ('signer' | 'bundle' | 'target')[];
    }
  /** Another writer was first at this object: ask again in a moment (W-2). */
  | { readonly outcome: 'lost'; readonly object: 'signer' | 'bundle' | 'target' };

/** One pass over a unit. */
export type Sync = (unit: RotationUnit, rotation: Rotation) => Promise<SyncResult>;

/** Signer, then bundle, then target; the first error ends the pass (spec 10, 9). */
export async function syncUnit(unit: RotationUnit, rotation: Rotation): Promise<SyncResult> {
  const { signer, bundle, target } = unit;
  const { locks } = rotation;
  const regenerated: ('signer' | 'bundle' | 'target')[] = [];

  const s = await locks.run(`secret/${signer.namespace}/${signer.name}`, () =>
    ensureSigner(signer, rotation, undefined, () => heldIn(bundle, rotation)),
  );
  if (s.outcome === 'lost') return { outcome: 'lost', object: 'signer' };
  if (s.regenerated) regenerated.push('signer');

  const [certificate] = s.signer.chain;
  if (certificate === undefined) throw new RangeError('a loaded signer has a certificate');
  const bundleSigner = { namespace: signer.namespace, name: signer.name, certificate };
  const b = await locks.run(`configmap/${bundle.namespace}/${bundle.name}`, () =>
    ensureBundle(bundle, bundleSigner, rotation),
  );
  if (b.outcome === 'lost') return { outcome: 'lost', object: 'bundle' };
  if (b.rewritten) regenerated.push('bundle');

  const t = await locks.run(`secret/${target.namespace}/${target.name}`, () =>
    ensureTarget(target, s.signer, b.certificates, rotation),
  );
  if (t.outcome === 'lost') return { outcome: 'lost', object: 'target' };
  if (t.regenerated) regenerated.push('target');

  const ends = [s.decision, b.decision, t.decision].map(decision =>
    decision.action === 'keep' ? decision.until.getTime() : Number.NaN,
  );
  const earliest = Math.min(...ends);
  // A fresh object that is due again at once would spin; the caller's resync covers it.
  const until = Number.isNaN(earliest) ? rotation.clock.now() : new Date(earliest);
  return { outcome: 'done', until, regenerated };
}
