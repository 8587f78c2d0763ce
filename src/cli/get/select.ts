import { matchesLabels, parseLabelSelector } from '../../api/select/label.ts';
import type { CertificateItem, ItemMetadata } from '../../inventory/model.ts';
import { UsageError } from '../usage-error.ts';

interface Selectable {
  readonly metadata: ItemMetadata;
}

/** Whether an item has the labels and fields asked for. */
export function selectorFrom(labels: string | undefined, fields: string | undefined): (item: Selectable) => boolean {
  const byLabels = labels === undefined ? () => true : labelTest(labels);
  const byFields = fields === undefined ? () => true : fieldTest(fields);
  return item => byLabels(item) && byFields(item);
}

function labelTest(text: string): (item: Selectable) => boolean {
  try {
    const query = parseLabelSelector(text);
    return ({ metadata }) => matchesLabels(query, metadata.labels);
  } catch (error) {
    throw new UsageError(`--selector cannot be read: ${(error as Error).message}`);
  }
}

const FIELDS = ['state', 'role', 'metadata.name', 'metadata.namespace', 'component'] as const;

function fieldTest(text: string): (item: Selectable) => boolean {
  const tests = text.split(',').map(part => {
    const [, field, operator, value] = /^([^=!]+?)\s*(==|=|!=)\s*(.*)$/.exec(part.trim()) ?? [];
    const known = FIELDS.find(candidate => candidate === field);
    if (known === undefined || value === undefined) {
      throw new UsageError(`--field-selector takes ${FIELDS.join(', ')} with = or !=, found "${part}"`);
    }
    return (item: Selectable) => (valueOf(item, known).toLowerCase() === value.toLowerCase()) === (operator !== '!=');
  });
  return item => tests.every(passes => passes(item));
}

function valueOf(item: Selectable, field: (typeof FIELDS)[number]): string {
  if (field === 'metadata.name') return item.metadata.name;
  if (field === 'metadata.namespace') return item.metadata.namespace ?? '';
  return (item as Partial<CertificateItem>)[field] ?? '';
}

/** Which item comes first. */
export function orderFrom(sortBy: string | undefined): ((a: Selectable, b: Selectable) => number) | undefined {
  switch (sortBy) {
    case undefined:
      return undefined;
    case 'expires':
      return byText(item => (item as Partial<CertificateItem>).certificate?.notAfter ?? LAST);
    case 'next':
      return byText(item => {
        const { next } = item as Partial<CertificateItem>;
        return next === undefined || next.action === 'fail' ? LAST : (next.at ?? '');
      });
    case 'name':
      return byText(({ metadata }) => metadata.name);
    case 'age':
      return byText(({ metadata }) => metadata.creationTimestamp ?? LAST);
    default:
      throw new UsageError(`--sort-by must be expires, next, name or age, found "${sortBy}"`);
  }
}

/** After every time. */
const LAST = '~';

function byText(text: (item: Selectable) => string): (a: Selectable, b: Selectable) => number {
  return (a, b) => {
    const [left, right] = [text(a), text(b)];
    return left < right ? -1 : left > right ? 1 : 0;
  };
}
