import { KubeError } from '../../kube/error.ts';
import type { FieldSet } from './field-set.ts';
import type { Manager } from './managers.ts';
import { showPath } from './shape.ts';

/** The 409 of an apply that touches fields of others. */
export function applyConflict(conflicts: readonly { manager: Manager; fields: FieldSet }[]): KubeError {
  const lines = conflicts
    .map(({ manager, fields }) => ({ who: describe(manager), paths: [...fields.paths()].map(showPath) }))
    .sort((a, b) => (a.who < b.who ? -1 : 1));
  const count = lines.reduce((sum, { paths }) => sum + paths.length, 0);
  const causes = lines.flatMap(({ who, paths }) =>
    paths.map(field => ({ reason: 'FieldManagerConflict', message: `conflict with ${who}`, field })),
  );
  return new KubeError(409, 'Conflict', message(count, lines), { causes });
}

function message(count: number, lines: readonly { who: string; paths: readonly string[] }[]): string {
  const [first] = lines;
  if (count === 1 && first !== undefined) {
    return `Apply failed with 1 conflict: conflict with ${first.who}: ${first.paths[0]}`;
  }
  const list = lines.flatMap(({ who, paths }) => [`conflicts with ${who}:`, ...paths.map(path => `- ${path}`)]);
  return `Apply failed with ${count} conflicts: ${list.join('\n')}`;
}

function describe({ name, subresource, operation, apiVersion }: Manager): string {
  const place = subresource === '' ? '' : ` with subresource ${JSON.stringify(subresource)}`;
  return `${JSON.stringify(name)}${place}${operation === 'Update' ? ` using ${apiVersion}` : ''}`;
}
