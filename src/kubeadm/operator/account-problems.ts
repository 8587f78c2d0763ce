import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { componentOf } from '../static-pods.ts';
import { tokenFlagProblem } from '../token-flags.ts';
import { controlPlane } from './account-evidence.ts';
import type { NodeSight } from './cluster.ts';

export interface AccountSurroundings {
  readonly nodes: readonly NodeSight[];
  /** Mirror pods of the control plane. */
  readonly staticPods: readonly Pod[];
  readonly certificatesDirectory: string;
  /** Keys have been replaced before: what is in files is known, and put right where it differs. */
  readonly isKnown: boolean;
}

/** What keeps the keys of service accounts from being replaced, one sentence each; empty: nothing does (spec 80, 7). */
export function accountProblems(surroundings: AccountSurroundings): string[] {
  const { nodes, staticPods, certificatesDirectory, isKnown } = surroundings;
  const flags = staticPods.flatMap(pod => {
    const problem = tokenFlagProblem(componentOf(pod), pod, certificatesDirectory);
    return problem === undefined ? [] : [`on ${pod.spec?.nodeName ?? 'a node'} ${problem}`];
  });
  return [...flags.toSorted(), ...(isKnown ? [] : fileProblems(controlPlane(nodes)))];
}

function fileProblems(nodes: readonly NodeSight[]): string[] {
  const known = nodes.flatMap(({ name, report }) =>
    report === undefined ? [] : [{ name, keys: report.serviceAccount }],
  );
  const each = known.flatMap(({ name, keys }) => {
    if (keys === undefined) return [`${name} has no sa.pub`];
    if (keys.signs === undefined) return [`${name} has no sa.key: somebody else keeps it`];
    if (!keys.accepts.includes(keys.signs)) return [`sa.pub on ${name} is without the public key of sa.key`];
    return keys.accepts.length > 1
      ? [
          `sa.pub on ${name} holds ${keys.accepts.length} public keys: somebody replaces them by hand, which has to end first`,
        ]
      : [];
  });
  const silent = nodes
    .filter(({ report }) => report === undefined)
    .map(({ name }) => `the agent of ${name} says nothing`);
  const differs = new Set(known.map(({ keys }) => keys?.signs)).size > 1;
  return [...silent, ...each, ...(differs ? ['sa.key is not the same on all control-plane nodes'] : [])];
}
