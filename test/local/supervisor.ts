/** One local node as a process of its own, for tests that kill it: `supervisor.ts <root> <kubeconfig>`. */
import { HttpKube } from '../../src/kube/client.ts';
import { loadAccess } from '../../src/kube/kubeconfig.ts';
import { LocalNode } from '../../src/local/node.ts';

const [root = '', path = ''] = process.argv.slice(2);
const kube = new HttpKube(await loadAccess({ path }));
const node = new LocalNode({ name: 'master-0', root, kube });
await node.start();
process.stdout.write('started\n');
process.once('SIGTERM', () => {
  void node.stop().then(() => kube.close());
});
