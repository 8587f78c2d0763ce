import { withCluster } from '../cluster.ts';
import { refuseBoth, type SourceFlags } from '../cluster-flags.ts';
import { visible } from '../table.ts';
import { clusterSource, fileSource, type ObjectSource } from './source.ts';

/** Runs `work` over the cluster or the folder that the flags name. */
export async function withSource<T>(flags: SourceFlags, work: (source: ObjectSource) => Promise<T>): Promise<T> {
  refuseBoth(flags);
  if (flags.from === undefined) return withCluster(flags, ({ kube }) => work(clusterSource(kube)));
  const source = fileSource([flags.from]);
  for (const warning of source.warnings) process.stderr.write(`warning: ${visible(warning)}\n`);
  return work(source);
}
