import { rotationDayFrom } from '../../forecast/units.ts';
import { type Family, type FamilyObjects, familiesOf, sightOf } from '../../hand-over/family.ts';
import { type LookSources, lookAtPresenters } from '../../hand-over/look.ts';
import { readObjects } from '../../inventory/read.ts';
import { clusterSource } from '../../inventory/source.ts';
import type { Kube } from '../../kube/port.ts';
import { hostnameSources } from '../../kube-apiserver/rotation/follow-hostnames.ts';
import { rotationUnits } from '../../kube-apiserver/rotation/units.ts';
import { kubeApiserverTrust } from '../../kube-apiserver/trust.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { secret as secretRef } from '../../trust/object.ts';
import { isByReceipts, sourcesFrom } from '../hand-overs/evidence.ts';
import { objectsOf, openPublic } from '../hand-overs/items.ts';

/** Who still shows what a CA has signed that is about to leave bundles (spec 90, HO-3), as far as signers of kube-apiserver go. */
export class StillShown {
  readonly #families: readonly { readonly family: Family; readonly objects: FamilyObjects }[];
  readonly #sources: LookSources;
  readonly #isByReceipts: boolean;
  readonly #now: Date;

  private constructor(
    families: readonly { readonly family: Family; readonly objects: FamilyObjects }[],
    sources: LookSources,
    byReceipts: boolean,
    now: Date,
  ) {
    this.#families = families;
    this.#sources = sources;
    this.#isByReceipts = byReceipts;
    this.#now = now;
  }

  static async read(kube: Kube, now: Date): Promise<StillShown> {
    const source = clusterSource(kube);
    const objects = await readObjects(source, { parts: ['hand-overs'] });
    const units = rotationUnits({ dayMs: rotationDayFrom(objects), hostnames: hostnameSources() });
    const families = familiesOf(units).map(family => ({ family, objects: objectsOf(family, objects) }));
    const sources = sourcesFrom(objects, source, units, kubeApiserverTrust());
    return new StillShown(families, sources, isByReceipts(objects), now);
  }

  /**
   * Looks now, whatever was noted before: a node that was away may have come back. Who cannot be seen counts where its operator hands over
   * by receipts and has not seen it either; nodes that were waived never do (HO-7).
   */
  async of(removed: readonly Certificate[]): Promise<string[]> {
    const found = await Promise.all(
      this.#families.map(async ({ family: { signer }, objects }) => {
        const { current, retiring, isShown } = sightOf(objects, signer, this.#now, openPublic);
        const gone = retiring.filter(({ der }) => removed.some(ca => ca.der.equals(der)));
        if (current === undefined || gone.length === 0) return [];
        const ref = secretRef(signer.namespace, signer.name);
        const sights = await lookAtPresenters(this.#sources, ref, { current, retiring: gone });
        return sights.filter(
          ({ isLoaded, isWaived, isSeen }) => !isLoaded && !isWaived && (isSeen || (this.#isByReceipts && !isShown)),
        );
      }),
    );
    return found.flat().map(({ verifier, evidence }) => `${verifier}: ${evidence}`);
  }
}
