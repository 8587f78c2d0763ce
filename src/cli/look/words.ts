import type { CertificateItem, CertificateState } from '../../inventory/model.ts';
import { isRenewedByItself, nameOf } from '../../inventory/renewed.ts';
import { secondsText, shortDuration } from '../output/time.ts';

/** So many are named; `-o wide` has the rest. */
const MOST_NAMED = 5;

/** The answer in sentences before the table, and after it what cannot be seen. */
export function summaryOf(
  items: readonly CertificateItem[],
  unseen: readonly string[],
  now: Date,
): { readonly first: string; readonly last: string } {
  const lines = [findingsText(items, now), firstEndText(items, now)].filter(Boolean);
  const last = unseen.length === 0 ? '' : ['Not seen from here:', ...unseen.map(text => `- ${text}`)].join('\n');
  return { first: lines.join('\n'), last };
}

/** In this order they are told. */
const WORST_FIRST: readonly CertificateState[] = ['Expired', 'Missing', 'Unusable', 'NeedsAttention', 'Expiring'];

/** What needs a person. */
export function isFinding({ state, seen }: CertificateItem): boolean {
  return state !== 'Good' && state !== 'Due' && !(seen?.isNormal ?? false);
}

function findingsText(items: readonly CertificateItem[], now: Date): string {
  const findings = items
    .filter(isFinding)
    .toSorted((a, b) => WORST_FIRST.indexOf(a.state) - WORST_FIRST.indexOf(b.state));
  if (findings.length === 0) return '';
  const texts = findings.slice(0, MOST_NAMED).map(item => `- ${nameOf(item)} ${findingText(item, now)}`);
  const more = findings.length > MOST_NAMED ? [`- and ${findings.length - MOST_NAMED} more, see -o wide`] : [];
  const head =
    findings.length === 1 ? '1 certificate needs somebody:' : `${findings.length} certificates need somebody:`;
  return [head, ...texts, ...more].join('\n');
}

function findingText({ state, problem = '', certificate }: CertificateItem, now: Date): string {
  const leftMs = certificate === undefined ? 0 : Date.parse(certificate.notAfter) - now.getTime();
  switch (state) {
    case 'Missing':
      return 'is missing';
    case 'Expired':
      return `ended ${shortDuration(-leftMs)} ago`;
    case 'Expiring':
      return `ends in ${shortDuration(leftMs)}`;
    default:
      return `is wrong: ${problem}`;
  }
}

/** What ends next of what nobody renews by itself; empty: nothing does. */
export function firstEndText(items: readonly CertificateItem[], now: Date): string {
  const ending = items
    .filter(item => item.certificate !== undefined && !isRenewedByItself(item))
    .toSorted((a, b) => ((a.certificate?.notAfter ?? '') < (b.certificate?.notAfter ?? '') ? -1 : 1));
  const next = ending.find(({ certificate }) => Date.parse(certificate?.notAfter ?? '') > now.getTime());
  if (next?.certificate === undefined) return '';
  const { notAfter } = next.certificate;
  const left = shortDuration(Date.parse(notAfter) - now.getTime());
  return (
    `${ending.length} of ${items.length} ${ending.length === 1 ? 'ends unless somebody renews it' : 'end unless somebody renews them'}.\n` +
    `The next to end is ${nameOf(next)}, in ${left} (${secondsText(notAfter)}).`
  );
}
