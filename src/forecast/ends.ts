import type { CertificateItem } from '../inventory/model.ts';
import { isKeptAside, isRenewedByItself, nameOf } from '../inventory/renewed.ts';
import type { PlanWarning } from './model.ts';

/** What ends until a moment, or has ended, unless somebody does something: the first end first (spec 80, 10). */
export function endsUntil(items: readonly CertificateItem[], until: Date): PlanWarning[] {
  return items
    .flatMap(item => {
      const { certificate, seen } = item;
      if (certificate === undefined || isRenewedByItself(item) || isKeptAside(item)) return [];
      if (Date.parse(certificate.notAfter) > until.getTime()) return [];
      return [
        {
          at: certificate.notAfter,
          name: nameOf(item),
          authority: seen?.authority,
          renewWith: seen?.renewWith ?? OTHERWISE[seen?.renewal ?? 'owner'],
          atItsEnd: seen?.atItsEnd,
        },
      ];
    })
    .sort((a, b) => (a.at < b.at ? -1 : 1));
}

/** What there is to do where no command renews it. */
const OTHERWISE = {
  nobody: 'a new CA, or whoever made it',
  owner: 'whoever made it',
  'by-hand': 'somebody',
  kubelet: 'its kubelet',
  rotunda: 'rotunda',
} as const;
