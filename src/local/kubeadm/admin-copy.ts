import { join } from 'node:path';
import { rootedFiles } from '../../host/directory-disk.ts';
import { kubeconfigPlace } from '../../kubeadm/node/places.ts';
import { writeFileAtomically } from '../../staticpod/node/atomic-write.ts';
import { systemFiles } from '../../staticpod/node/files.ts';

const ADMIN = 'admin.conf';

/**
 * `DIR/kubeconfig` is a copy of the first node's admin.conf. People's copies stay as they are when that one is renewed; this one is made
 * again, so that it always works. True when it was another one.
 */
export async function copyAdmin(dir: string, firstRoot: string): Promise<boolean> {
  const content = await rootedFiles(firstRoot).read(kubeconfigPlace(ADMIN));
  if (content === undefined) throw new Error(`expected ${kubeconfigPlace(ADMIN)} below ${firstRoot}`);
  const [files, path] = [systemFiles(), join(dir, 'kubeconfig')];
  const there = (await files.info(path)) === undefined ? undefined : await files.readFile(path);
  if (there?.equals(content)) return false;
  await writeFileAtomically(files, path, content, 0o600);
  return true;
}
