import type { Inventory } from '../../inventory/model.ts';
import { readInventory } from '../../inventory/read.ts';
import type { ObjectSource } from '../../inventory/source.ts';
import { KubeError } from '../../kube/error.ts';
import type { Cluster } from '../cluster.ts';
import type { SourceFlags } from '../cluster-flags.ts';
import { visible } from '../table.ts';
import { layoutOf } from './layout.ts';
import type { LayoutFlags } from './layout-flag.ts';
import type { Look } from './look.ts';
import { lookAtCluster, lookAtServer } from './look-at-cluster.ts';
import { lookAtFolder } from './look-at-folder.ts';
import { isFinding } from './words.ts';

/**
 * What can be seen without anything installed (spec 80, 10): the files of a folder, or with a kubeconfig alone what a cluster that
 * kubeadm made shows. Undefined where Rotunda's own objects say everything.
 */
export async function lookAround(
  flags: SourceFlags & LayoutFlags,
  cluster: Cluster | undefined,
  now: Date,
): Promise<Look | undefined> {
  if (cluster === undefined) {
    return flags.from === undefined || flags.from === '-' ? undefined : lookAtFolder(flags.from, now);
  }
  try {
    return (await layoutOf(flags, cluster)) === 'kubeadm' ? await lookAtCluster(cluster, now) : undefined;
  } catch (failure) {
    const look = await lookAtServer(cluster, now);
    // A certificate that has ended is why a cluster cannot be talked to as often as not: who asks for certificates hears of it.
    if (!look.items.some(isFinding)) throw failure;
    return { ...look, failure };
  }
}

/**
 * For commands that know the objects of operators only: says that there are certificates they know nothing of, and that an empty answer is
 * none.
 */
export function warnOfUnknown(look: Look | undefined, isEmpty: boolean): void {
  const count = look?.items.length ?? 0;
  if (count === 0) return;
  process.stderr.write(
    `warning: ${count} certificates that no operator of ours keeps are not part of this: see rotunda get certs and rotunda plan\n`,
  );
  if (isEmpty) process.exitCode = 1;
}

/** What was seen, and the objects after it. Who may not read those is told what was seen all the same. */
export async function withLook(source: ObjectSource, look: Look, now: Date): Promise<Inventory> {
  const nothing = { now: now.toISOString(), certificates: [], bundles: [], nodes: [], revisions: [], pools: [] };
  if (look.failure !== undefined) return { ...nothing, certificates: look.items };
  const inventory = await readInventory(source, { parts: ['certificates'] }, now).catch((error: unknown) => {
    if (look.items.length === 0 || !(error instanceof KubeError) || error.code !== 403) throw error;
    process.stderr.write(`warning: Secrets and ConfigMaps were left out: ${visible(error.message)}\n`);
    return nothing;
  });
  return { ...inventory, certificates: [...look.items, ...inventory.certificates] };
}
