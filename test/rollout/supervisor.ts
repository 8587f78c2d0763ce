/**
 * The machines of a small cluster as one process that can be killed: the API and three control-plane nodes.
 * `supervisor.ts <directory>` says `ready` when they run. Any message to it is answered with the number of requests the API has
 * had so far, by user.
 */
import { readFileSync } from 'node:fs';
import { type Api, startApi } from '../../src/api/api.ts';
import { LocalNode } from '../../src/local/node.ts';
import { localPodLogs } from '../../src/local/pod-logs.ts';
import { engineTokens } from '../../src/local/tokens.ts';
import {
  API_PORT,
  addressOf,
  adminKubeconfig,
  apiAddress,
  apiDirectory,
  nodeNames,
  nodeRoot,
  operatorCa,
} from './layout.ts';

const [dir = ''] = process.argv.slice(2);
const nodes: LocalNode[] = [];
const api = await startApi({
  dir: apiDirectory(dir),
  host: apiAddress(dir),
  port: API_PORT,
  podLogs: localPodLogs(() => nodes),
  onError: (what, error) => console.error(what, error),
});
api.setClientCas(readFileSync(operatorCa(dir), 'utf8'));
const requests = countRequests(api);
// Whoever started this is gone.
process.once('disconnect', () => process.exit(1));
process.on('message', () => process.send?.(Object.fromEntries(requests)));

for (const name of nodeNames()) {
  const node = new LocalNode({
    name,
    root: nodeRoot(dir, name),
    kube: api.kube,
    address: addressOf(dir, name),
    labels: { 'node-role.kubernetes.io/master': '' },
    kubeconfig: adminKubeconfig(dir),
    issueToken: engineTokens(api.engine),
    env: {
      KUBERNETES_SERVICE_HOST: apiAddress(dir),
      KUBERNETES_SERVICE_PORT: String(API_PORT),
      ROTUNDA_SETTLE_PAUSE: '0s',
    },
    programs: { useRealBinaries: false },
  });
  nodes.push(node);
  await node.start();
}
process.stdout.write('ready\n');

/** Every request over the network passes the authenticator once. */
function countRequests({ engine }: Api): Map<string, number> {
  const { authenticator } = engine.core;
  const authenticate = authenticator.authenticate.bind(authenticator);
  const counts = new Map<string, number>();
  Object.assign(authenticator, {
    authenticate(...credentials: Parameters<typeof authenticate>) {
      const answer = authenticate(...credentials);
      const user = answer.ok ? answer.user.name : 'refused';
      counts.set(user, (counts.get(user) ?? 0) + 1);
      return answer;
    },
  });
  return counts;
}
