import { statSync } from 'node:fs';
import { type Cluster, withCluster } from '../cluster.ts';
import { refuseBoth, type SourceFlags } from '../cluster-flags.ts';
import { visible } from '../table.ts';
import { clusterSource, fileSource, type ObjectSource } from './source.ts';

/** Runs `work` over the cluster or the folder that the flags name. */
export async function withSource<T>(
  flags: SourceFlags,
  work: (source: ObjectSource, cluster: Cluster | undefined) => Promise<T>,
): Promise<T> {
  refuseBoth(flags);
  if (flags.from === undefined) return withCluster(flags, cluster => work(clusterSource(cluster.kube), cluster));
  const source = fileSource(holdsObjects(flags.from) ? [flags.from] : []);
  for (const warning of source.warnings) process.stderr.write(`warning: ${visible(warning)}\n`);
  return work(source, undefined);
}

/** A folder, standard input, or a file of objects; one of certificates or a kubeconfig is looked at otherwise. */
function holdsObjects(from: string): boolean {
  return !/\.(?:crt|pem|cer|cert|conf|kubeconfig)$/i.test(from) || !statSync(from, { throwIfNoEntry: false })?.isFile();
}
