import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { NAME_FREE_AT, NOT_AFTER, NOT_BEFORE, REQUESTED_AT } from '../certrotation/annotations.ts';
import { annotationsOf, withAnnotations } from '../certrotation/secret.ts';
import { nameFreeAfter } from '../certrotation/signer.ts';
import { formatRfc3339, parseRfc3339 } from '../kube/time.ts';
import type { Certificate } from '../pki/certificate.ts';
import type { FamilyState } from './family.ts';
import { TAKEN_BACK, TURNED_ROUND } from './names.ts';

/**
 * A signer without the request that was taken back (HO-6), which would begin again by its own words; what was asked for since then is
 * another request. The name of what is taken back is not given again: somebody may still have it loaded.
 */
export function withoutRequest(signer: Secret, next: Secret, state: Forgettable): Secret {
  const before = annotationsOf(signer);
  const takenBack = parseRfc3339(annotationsOf(next)[TAKEN_BACK] ?? '');
  const isLater = (name: string) => {
    const at = parseRfc3339(before[name] ?? '');
    return at !== undefined && takenBack !== undefined && at.nanos > takenBack.nanos;
  };
  return withAnnotations(signer, {
    ...(!isLater(TURNED_ROUND) && { [TURNED_ROUND]: undefined }),
    ...(!isLater(REQUESTED_AT) && datesOf(state.current, before)),
    ...(state.isNextUnused && nameOf(state.next?.chain[0])),
  });
}

type Forgettable = Pick<FamilyState, 'current' | 'isNextUnused'> & {
  readonly next: { readonly chain: readonly Certificate[] } | undefined;
};

/** The dates of the certificate, where they are not readable: that is what a request is. */
function datesOf(current: Certificate | undefined, annotations: Readonly<Record<string, string>>) {
  const isAsked = [NOT_BEFORE, NOT_AFTER].some(name => parseRfc3339(annotations[name] ?? '') === undefined);
  if (current === undefined || !isAsked) return {};
  return { [NOT_BEFORE]: formatRfc3339(current.notBefore), [NOT_AFTER]: formatRfc3339(current.notAfter) };
}

function nameOf(next: Certificate | undefined) {
  const free = next && nameFreeAfter(next);
  return free === undefined ? {} : { [NAME_FREE_AT]: free };
}
