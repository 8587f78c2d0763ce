import { HttpKube } from '../../kube/client.ts';
import { loadAccess } from '../../kube/kubeconfig.ts';
import type { LayoutName } from '../../local/layout.ts';
import type { ClusterPart } from '../../local/part.ts';
import { clusterProber } from '../console/prober.ts';
import { startConsole } from '../console/server.ts';

/** The web page of the cluster, with handshakes over its trust graph going on all the time. */
export interface ConsolePart extends ClusterPart {
  /** A link that logs in, good once; undefined as long as nothing is served. */
  loginUrl(): string | undefined;
}

/** Serves the console on loopback. 0 chooses a free port. */
export function consolePart(port: number, layout: LayoutName): ConsolePart {
  let loginUrl: (() => string) | undefined;
  return {
    name: 'console',
    loginUrl: () => loginUrl?.(),
    async start({ kubeconfigPath, nodes, signal, patiently, log }) {
      const access = await loadAccess({ path: kubeconfigPath });
      const kube = new HttpKube(access, { fieldManager: 'rotunda-console' });
      const root = (place: string) => nodes.find(({ name }) => name === place)?.root;
      const prober = await patiently(() => clusterProber(kube, { root, layout }));
      const served = await startConsole({ access, kube, port, prober, log: log.child({ program: 'console' }) });
      prober.start();
      loginUrl = () => served.loginUrl();
      const end = async () => {
        await served.close();
        await prober.stop();
        await kube.close();
      };
      const ended = new Promise<void>((resolve, reject) => {
        signal.addEventListener('abort', () => void end().then(resolve, reject), { once: true });
      });
      return { ended, state: () => ({ ready: true, text: served.url }) };
    },
  };
}
