import { caNames } from './operator.ts';
import { has, NONE, type Node, type World } from './world.ts';

/** What happens on a node without anybody's doing: one step, or nothing where there is nothing to do. */
export type NodeStep = (node: Node, world: World) => string | undefined;

/** A node that is there and works, in the order in which things reach it. */
export const NODE_STEPS: readonly NodeStep[] = [
  (node, { bundle }) => {
    if (node.onItsWay !== 0 || node.file === bundle) return undefined;
    node.onItsWay = bundle;
    return `is sent the bundle: ${caNames(bundle)}`;
  },
  node => {
    if (node.onItsWay === 0) return undefined;
    node.file = node.onItsWay;
    node.onItsWay = 0;
    return `has the file: ${caNames(node.file)}`;
  },
  (node, world) => {
    if (node.reloading === node.file) return undefined;
    node.reloading = node.file;
    catchUp(node, world);
    return `has its reloading process load ${caNames(node.file)}`;
  },
  (node, world) => {
    if (node.restarting === node.file) return undefined;
    node.restarting = node.file;
    catchUp(node, world);
    return `has its restarting process start with ${caNames(node.file)}`;
  },
  node => {
    if (node.reported === node.restarting) return undefined;
    node.reported = node.restarting;
    return `reports that the restarting process has ${caNames(node.reported)}`;
  },
  (node, { leaf }) => {
    if (leaf === NONE || node.leafFile === leaf) return undefined;
    node.leafFile = leaf;
    return `is brought the leaf of CA ${leaf}`;
  },
  (node, { bundle }) => {
    if (node.shown === node.leafFile || node.leafFile === NONE) return undefined;
    node.shown = node.leafFile;
    if (has(bundle, node.shown)) node.isLeft = false;
    return `shows the leaf of CA ${node.shown}`;
  },
];

export function worksOn({ isThere, isAway }: Node): boolean {
  return isThere && !isAway;
}

/** Its disk is as it was; its processes start with that, and a waiver has ended (HO-7). */
export function comeBack(node: Node, world: World): string {
  Object.assign(node, {
    isAway: false,
    isWaived: false,
    reloading: node.file,
    restarting: node.file,
    shown: node.leafFile,
  });
  catchUp(node, world);
  return 'comes back';
}

/** Who has loaded everything there is has no excuse any more. */
function catchUp(node: Node, { bundle }: World): void {
  if ((node.reloading & node.restarting & bundle) === bundle) node.isBehind = false;
}

/**
 * Another machine under the same name, with the files of the first day, as somebody who joins with an old command: its processes have
 * loaded them and nothing else.
 */
export function setUpAnew(node: Node, world: World, doReceiptsEnd: boolean): void {
  Object.assign(node, {
    isThere: true,
    isAway: false,
    isWaived: false,
    isBehind: world.signer !== 0 || (world.leaf !== 0 && world.leaf !== NONE),
    isLeft: false,
    owed: 0,
    onItsWay: 0,
    file: 1,
    reloading: 1,
    restarting: 1,
    reported: doReceiptsEnd ? 0 : node.reported,
    leafFile: NONE,
    shown: NONE,
  });
}

/** Somebody refuses what somebody else shows, and has no excuse. */
export function refusalIn({ nodes }: World): string | undefined {
  for (let by = 0; by < nodes.length; by++) {
    const { isLeft, shown } = nodes[by] as Node;
    if (isLeft || shown === NONE || !worksOn(nodes[by] as Node)) continue;
    for (let of = 0; of < nodes.length; of++) {
      const verifier = nodes[of] as Node;
      if (verifier.isBehind || has(verifier.reloading & verifier.restarting, shown) || !worksOn(verifier)) continue;
      const process = has(verifier.reloading, shown) ? 'restarting' : 'reloading';
      return `the ${process} process of ${nameAt(of)} refuses the leaf of CA ${shown} that ${nameAt(by)} shows`;
    }
  }
  return undefined;
}

/** A node by its place, for whoever knows which one stands there. */
export function nameAt(place: number): string {
  return `{${place}}`;
}
