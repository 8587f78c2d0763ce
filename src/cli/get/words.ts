import { UsageError } from '../usage-error.ts';

/** What `get` lists and which words stand for it; short, so that help and completion need nothing else. */
export const GET_KINDS = ['certs', 'signers', 'bundles', 'nodes', 'revisions', 'pools', 'hand-overs'] as const;

/** Reads `TYPE NAME...`, `TYPE/NAME...` as kubectl does: one kind, and the names asked for. */
export function kindAndNames(words: readonly string[]): { kind: string; names: string[] } {
  const [first, ...rest] = words;
  if (first === undefined) throw new UsageError(`say what to get: ${GET_KINDS.join(', ')}`);
  if (!first.includes('/')) {
    const slashed = rest.find(word => word.includes('/'));
    if (slashed !== undefined)
      throw new UsageError(`"${slashed}" names a type again: give TYPE NAME... or TYPE/NAME...`);
    return { kind: first.toLowerCase(), names: rest };
  }
  const pairs = words.map(word => {
    const [, kind, name] = /^([^/]+)\/([^/]+)$/.exec(word) ?? [];
    if (kind === undefined || name === undefined) {
      throw new UsageError(`expected TYPE/NAME, found "${word}": all of them need the form TYPE/NAME`);
    }
    return { kind: kind.toLowerCase(), name };
  });
  const other = pairs.find(({ kind }) => kind !== pairs[0]?.kind);
  if (other !== undefined) throw new UsageError(`one type at a time: found ${pairs[0]?.kind} and ${other.kind}`);
  return { kind: pairs[0]?.kind ?? '', names: pairs.map(({ name }) => name) };
}
