import { basename, join } from 'node:path';
import { readSmallFile } from '../kube/small-file.ts';
import { type Foreign, type Holding, placeOf, type Side, type Takes, type TrustGraph } from './graph.ts';
import type { Texts } from './material.ts';
import type { ObjectRef } from './object.ts';

/** What one side of an edge has in its hands: where to find it, and how its owner takes a change. */
export interface Artefact {
  /** Absent: it is in no object. */
  readonly object?: ObjectRef | undefined;
  /** Paths on the node; `<REVISION>` stands for the revision that runs there, `<node>` for the node's name. */
  readonly files: readonly string[];
  /** Whether the files are written as the graph says; else others bring the object there in a form of their own. */
  readonly isDelivered: boolean;
  readonly takes: Takes;
}

/** Reads an artefact as somebody at `place` has it: the name of a node, or `anywhere`. Undefined: it cannot be read this way. */
export type ReadArtefact = (artefact: Artefact, place: string) => Promise<Texts | undefined>;

/** What a side shows or checks with, as something that can be read. */
export function artefactOf(graph: TrustGraph, side: Side, held: Holding | Foreign): Artefact {
  if ('issuerIn' in held) return { files: [held.file], isDelivered: true, takes: held.takes };
  const place = placeOf(graph, side, held);
  const { object } = held;
  if (place === undefined) return { object, files: [], isDelivered: false, takes: 'on-use' };
  return { object, files: place.files, isDelivered: place.delivery !== undefined, takes: place.takes };
}

export interface NodeFiles {
  /** The root directory of a node; undefined for a place that is none. */
  root(place: string): string | undefined;
  /** The revision that runs there, of the pod that a path with `<REVISION>` in it belongs to. */
  revision(place: string, file: string): Promise<number | undefined> | number | undefined;
}

/** Reads files below the roots of nodes. */
export function filesOfNodes({ root, revision }: NodeFiles): ReadArtefact {
  return async ({ files, isDelivered }, place) => {
    const base = root(place);
    if (base === undefined || !isDelivered) return undefined;
    const revisioned = files.find(file => file.includes('<REVISION>'));
    const number = revisioned === undefined ? undefined : await revision(place, revisioned);
    const texts: Record<string, string> = {};
    for (const file of files) {
      const path = join(base, atPlace(file, place).replaceAll('<REVISION>', String(number ?? 0)));
      try {
        texts[basename(path)] = await readSmallFile(path);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
        throw error;
      }
    }
    return texts;
  };
}

/** Reads objects of the API; what of them is looked at is what the graph says becomes a file. */
export function objectsOfCluster(
  get: (object: ObjectRef) => Promise<{ readonly data?: Readonly<Record<string, string>> | undefined } | undefined>,
): ReadArtefact {
  return async ({ object, files, isDelivered }, place) => {
    const data = object && (await get(object))?.data;
    if (object === undefined || data === undefined) return undefined;
    const wanted = isDelivered ? files.map(file => basename(atPlace(file, place))) : Object.keys(data);
    const text = (value: string) => (object.kind === 'Secret' ? Buffer.from(value, 'base64').toString() : value);
    return Object.fromEntries(
      wanted.flatMap(name => (data[name] === undefined ? [] : [[name, text(data[name])] as const])),
    );
  };
}

function atPlace(file: string, place: string): string {
  return file.replaceAll('<node>', place);
}

/** The first of several ways that leads to something. */
export function firstOf(...ways: readonly ReadArtefact[]): ReadArtefact {
  return async (artefact, place) => {
    for (const read of ways) {
      const texts = await read(artefact, place);
      if (texts !== undefined) return texts;
    }
    return undefined;
  };
}
