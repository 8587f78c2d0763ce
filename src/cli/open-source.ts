import { clusterSource, fileSource, type ObjectSource } from '../inventory/source.ts';
import { type Cluster, withCluster } from './cluster.ts';
import { refuseBoth, type SourceFlags } from './cluster-flags.ts';
import { isCertificateFile } from './look/folder.ts';
import { visible } from './table.ts';

/** Runs `work` over the cluster or the folder that the flags name. */
export async function withSource<T>(
  flags: SourceFlags,
  work: (source: ObjectSource, cluster: Cluster | undefined) => Promise<T>,
): Promise<T> {
  refuseBoth(flags);
  if (flags.from === undefined) return withCluster(flags, cluster => work(clusterSource(cluster.kube), cluster));
  const source = fileSource(isCertificateFile(flags.from) ? [] : [flags.from]);
  for (const warning of source.warnings) process.stderr.write(`warning: ${visible(warning)}\n`);
  return work(source, undefined);
}
