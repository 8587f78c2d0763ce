import type { KubeObject } from '../../kube/resource.ts';
import { ageOf } from './age.ts';
import type { Cell, Column, Printer, RowCondition } from './table.ts';

/** A column and how its cell is read from an object. */
export interface ReadColumn<T> extends Column {
  readonly read: (object: T, now: Date) => Cell | undefined;
}

type Read<T> = ReadColumn<T>['read'];

/** Makes a printer for objects of type T. An absent value is an empty cell. */
export function printerOf<T extends KubeObject>(
  columns: readonly ReadColumn<T>[],
  conditions?: (object: T) => readonly RowCondition[],
): Printer {
  return {
    columns: columns.map(({ name, type, format, description, priority }) => ({
      name,
      type,
      format,
      description,
      priority,
    })),
    cells: (object, now) =>
      columns.map(column => {
        const cell = column.read(object as T, now);
        return cell === undefined ? '' : cell;
      }),
    ...(conditions === undefined ? {} : { conditions: object => conditions(object as T) }),
  };
}

export const NAME: ReadColumn<KubeObject> = {
  name: 'Name',
  type: 'string',
  format: 'name',
  description: 'Identifies the object within its namespace.',
  priority: 0,
  read: object => object.metadata?.name,
};

export const AGE: ReadColumn<KubeObject> = text(
  'Age',
  'Time since the object was created.',
  (object: KubeObject, now) => ageOf(object.metadata?.creationTimestamp, now),
);

/** A column of text that is always shown. */
export function text<T>(name: string, description: string, read: Read<T>): ReadColumn<T> {
  return { name, type: 'string', format: '', description, priority: 0, read };
}

/** A column of text that only `-o wide` shows. */
export function wideText<T>(name: string, description: string, read: Read<T>): ReadColumn<T> {
  return { ...text(name, description, read), priority: 1 };
}

/** A column of whole numbers; an absent one is 0. */
export function integer<T>(name: string, description: string, read: (object: T) => number | undefined): ReadColumn<T> {
  return { ...text(name, description, (object: T) => read(object) ?? 0), type: 'integer' };
}
