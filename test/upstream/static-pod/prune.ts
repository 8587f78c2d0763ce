import { readNodeStatus } from '../../../src/staticpod/node-status.ts';
import { protectedRevisions } from '../../../src/staticpod/prune/protect.ts';
import { unlike } from '../difference.ts';
import { judged } from '../judged.ts';

/** Which revisions stay. */
export const PRUNE = judged<{ Nodes: object[]; Latest: number; Failed: number; Succeeded: number }>({
  name: 'pruner',
  program: 'lgdiff',
  op: 'prune',
  generate: r => {
    const limit = () => r.pick([0, 0, 1, 2, 5, 10, -1, -5]);
    const Nodes = r.list(3, index => ({
      nodeName: `n${index}`,
      currentRevision: r.int(20),
      ...(r.chance(0.3) && { targetRevision: r.int(22) }),
      ...(r.chance(0.3) && { lastFailedRevision: r.int(22) }),
    }));
    return { Nodes, Latest: r.int(22), Failed: limit(), Succeeded: limit() };
  },
  compare: ({ Nodes, Latest, Failed: failed, Succeeded: succeeded }, { out }) => {
    const theirs = out as { all: boolean; keep: number[] | null };
    const mine = protectedRevisions(
      Nodes.map(node => readNodeStatus(node as Parameters<typeof readNodeStatus>[0])),
      Latest,
      { failed, succeeded },
    );
    // Whoever keeps each of 1 to the latest prunes nothing either.
    const kept = (revisions: readonly number[] | undefined) => {
      const known = revisions?.filter(revision => revision >= 1 && revision <= Latest);
      return known === undefined || known.length >= Latest ? 'all' : known;
    };
    const where = Nodes.length === 0 ? 'without nodes' : Math.min(failed, succeeded) < -1 ? 'limit below -1' : 'kept';
    return unlike(where, kept(mine), kept(theirs.all ? undefined : (theirs.keep ?? [])));
  },
});
