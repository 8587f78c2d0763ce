import type { CertificateItem, Inventory } from '../../inventory/model.ts';
import { nameOf } from '../../inventory/renewed.ts';
import type { Kind } from '../get/listings.ts';
import { secondsText, shortDuration } from '../output/time.ts';
import { summaryOf } from './words.ts';

const RENEWALS = {
  rotunda: 'rotunda',
  kubelet: 'kubelet',
  'by-hand': 'by hand',
  owner: 'owner',
  nobody: 'nobody',
} as const;

/** The columns people know from `kubeadm certs check-expiration`, and who renews (spec 80, 10). */
export function seenKind(kind: Kind, unseen: readonly string[], now: Date): Kind<CertificateItem> {
  const columns: Kind<CertificateItem>['columns'] = [
    { header: 'NAME', cell: nameOf },
    { header: 'STATE', cell: ({ state }) => state },
    { header: 'EXPIRES', cell: ({ certificate }) => certificate?.notAfter.slice(0, 10) ?? '' },
    {
      header: 'LEFT',
      cell: ({ certificate }) =>
        certificate === undefined ? '' : shortDuration(Date.parse(certificate.notAfter) - now.getTime()),
    },
    { header: 'CA', cell: authorityOf },
    { header: 'RENEWAL', cell: renewalOf },
    { header: 'EXTERNAL', isWide: true, cell: ({ seen }) => (seen?.isExternal ? 'yes' : 'no') },
    {
      header: 'NOT-AFTER',
      isWide: true,
      cell: ({ certificate }) => (certificate ? secondsText(certificate.notAfter) : ''),
    },
    { header: 'SUBJECT', isWide: true, cell: ({ certificate }) => certificate?.subject ?? '' },
    { header: 'USAGES', isWide: true, cell: ({ certificate }) => (certificate?.usages ?? []).join(',') },
    { header: 'KEY', isWide: true, cell: ({ certificate }) => certificate?.key ?? '' },
    { header: 'WHERE', isWide: true, cell: ({ seen }) => (seen?.places ?? []).join(',') },
    { header: 'RENEW-WITH', isWide: true, cell: ({ seen }) => seen?.renewWith ?? '' },
    { header: 'WHY', isWide: true, cell: ({ problem = '' }) => problem },
  ];
  return {
    ...kind,
    columns,
    name: item => (item.seen === undefined ? `secret/${item.metadata.name}` : `certificate/${item.metadata.name}`),
    items: kind.items as (inventory: Inventory) => readonly CertificateItem[],
    summary: items => summaryOf(items, unseen, now),
  };
}

function authorityOf({ seen, certificate }: CertificateItem): string {
  if (seen?.authority !== undefined) return seen.authority;
  return certificate === undefined ? '' : certificate.isSelfSigned ? '<itself>' : certificate.issuer;
}

function renewalOf({ seen, next }: CertificateItem): string {
  if (seen !== undefined) {
    const day = seen.renewsAt === undefined ? '' : ` ${seen.renewsAt.slice(0, 10)}`;
    return seen.isMissing ? '' : `${RENEWALS[seen.renewal]}${day}`;
  }
  return next === undefined ? '<unknown>' : 'rotunda';
}
