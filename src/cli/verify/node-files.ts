import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { BOOTSTRAP_KUBECONFIG, LIVE_KUBECONFIG } from '../../daemon/certificates/paths.ts';
import { RESOURCE_DIRECTORY } from '../../staticpod/config.ts';
import { type Artefact, filesOfNodes, type ReadArtefact } from '../../trust/artefact.ts';

/** The root directory of a node as seen from here; undefined where its files cannot be seen. */
export type NodeRoot = (node: string) => string | undefined;

/** Nobody's files can be seen. */
export const noRoots: NodeRoot = () => undefined;

/** Nodes whose root file systems are folders named after them, as below the folder of `rotunda up`. */
export function rootsBelow(folder: string): NodeRoot {
  return node => {
    const root = join(folder, node);
    return existsSync(root) ? root : undefined;
  };
}

/** The nodes beside a kubeconfig that `rotunda up` has written; undefined for any other kubeconfig. */
export function nodesBeside(kubeconfig: string | undefined): string | undefined {
  if (kubeconfig === undefined) return undefined;
  const folder = join(dirname(kubeconfig), 'nodes');
  return existsSync(join(dirname(kubeconfig), 'cluster.json')) && existsSync(folder) ? folder : undefined;
}

/**
 * Reads what is on the disks of nodes that can be seen, also what others than the operators bring there. What an operator delivers and is
 * not on the disk is not there, whatever the API has; only for what nobody knows the file of is the API asked, and for all that is on
 * nodes that cannot be seen.
 */
export function filesFirst(root: NodeRoot, published: ReadArtefact): ReadArtefact {
  const delivered = filesOfNodes({ root, revision: (node, file) => runningRevision(root(node) ?? '', file) });
  return async (artefact, place) => {
    if (root(place) === undefined) return published(artefact, place);
    if (artefact.isDelivered) return delivered(artefact, place);
    const files = filesElsewhere(artefact, path => existsSync(join(root(place) ?? '', path)));
    if (files === undefined) return published(artefact, place);
    return delivered({ ...artefact, files, isDelivered: true }, place);
  };
}

/** Where a process on a node has what the graph only says in words; undefined where nobody knows. */
function filesElsewhere({ files: [file = ''] }: Artefact, isThere: (path: string) => boolean): string[] | undefined {
  // The first one is what a kubelet makes of the other as soon as it has a certificate.
  if (file === BOOTSTRAP_KUBECONFIG) return [isThere(LIVE_KUBECONFIG) ? LIVE_KUBECONFIG : BOOTSTRAP_KUBECONFIG];
  // What kube-apiserver holds of etcd comes with its own revision.
  if (!/^(?:secrets|configmaps)\//.test(file)) return undefined;
  const path = `${RESOURCE_DIRECTORY}/kube-apiserver-pod-<REVISION>/${file}`;
  return file.endsWith('/tls.crt') ? [path, path.replace(/crt$/, 'key')] : [path];
}

/** The revision in the manifest of the pod that a file belongs to; undefined while there is none. */
function runningRevision(root: string, file: string): number | undefined {
  const [, pod = ''] = /\/([a-z-]+-pod)-<REVISION>\//.exec(file) ?? [];
  try {
    const manifest = readFileSync(join(root, 'etc/kubernetes/manifests', `${pod}.yaml`), 'utf8');
    const revision = new RegExp(`${pod}-(\\d+)`).exec(manifest)?.[1];
    return revision === undefined ? undefined : Number(revision);
  } catch {
    return undefined;
  }
}
