import type { CustomResourceColumnDefinition } from 'kubernetes-types/apiextensions/v1.d.ts';
import type { KubeObject } from '../../kube/resource.ts';
import { ageOf } from './age.ts';
import { NAME, printerOf, type ReadColumn } from './column.ts';
import { findJsonPath, type JsonPath, parseJsonPath } from './jsonpath.ts';
import type { Cell, Column, Printer } from './table.ts';

const DEFAULT_COLUMNS: readonly CustomResourceColumnDefinition[] = [
  {
    name: 'Age',
    type: 'date',
    jsonPath: '.metadata.creationTimestamp',
    description: 'Time since the object was created.',
  },
];

/**
 * The printer of a custom resource: its name, then the columns its definition adds; without any, its age. A column whose
 * path cannot be read stays empty: validation of the definition is the place to refuse it (`parseJsonPath` throws).
 */
export function customPrinter(columns: readonly CustomResourceColumnDefinition[] | undefined): Printer {
  const chosen = columns === undefined || columns.length === 0 ? DEFAULT_COLUMNS : columns;
  return printerOf<KubeObject>([NAME, ...chosen.map(customColumn)]);
}

function customColumn(definition: CustomResourceColumnDefinition): ReadColumn<KubeObject> {
  const { name, type, format = '', description, priority = 0, jsonPath } = definition;
  const path = readablePath(jsonPath);
  return {
    name,
    type: type as Column['type'],
    format,
    description: description || `Custom resource definition column (in JSONPath format): ${jsonPath}`,
    priority,
    read: (object, now) => (path === undefined ? null : cellOf(type, findJsonPath(path, object)[0], now)),
  };
}

function readablePath(text: string): JsonPath | undefined {
  try {
    return parseJsonPath(text);
  } catch {
    return undefined;
  }
}

/** A value that is not of the column's type is left out, but everything can be shown as text. */
function cellOf(type: string, value: unknown, now: Date): Cell {
  if (value === undefined || value === null) return null;
  switch (type) {
    case 'string':
      return typeof value === 'string' ? value : JSON.stringify(value);
    case 'integer':
      return typeof value === 'number' ? Math.trunc(value) : null;
    case 'number':
      return typeof value === 'number' ? value : null;
    case 'boolean':
      return typeof value === 'boolean' ? value : null;
    case 'date':
      if (typeof value !== 'string') return null;
      return Number.isNaN(Date.parse(value)) ? '<invalid>' : ageOf(value, now);
    default:
      return null;
  }
}
