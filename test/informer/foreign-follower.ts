import { CoreV1Api, KubeConfig, makeInformer, type V1ConfigMap } from '@kubernetes/client-node';

/** A pause before the informer is started again; its documentation waits longer. */
const RESTART_MS = 5;

/** The informer of client-node, started again from its error callback as its documentation does. */
export class ForeignFollower {
  restarts = 0;
  /** How far it has got. */
  version = 0;
  readonly #informer;
  #isStopped = false;

  constructor(url: string) {
    const config = new KubeConfig();
    // Plain HTTP is refused there unless told otherwise.
    config.loadFromClusterAndUser({ name: 'proxy', server: url, skipTLSVerify: true }, { name: 'nobody' });
    const core = config.makeApiClient(CoreV1Api);
    this.#informer = makeInformer<V1ConfigMap>(config, '/api/v1/configmaps', () =>
      core.listConfigMapForAllNamespaces(),
    );
    this.#informer.on('change', ({ metadata }) => {
      this.version = Math.max(this.version, Number(metadata?.resourceVersion));
    });
    this.#informer.on('error', () => {
      if (this.#isStopped) return;
      this.restarts++;
      setTimeout(() => void this.#informer.start(), RESTART_MS);
    });
  }

  start(): Promise<void> {
    return this.#informer.start();
  }

  list(): readonly V1ConfigMap[] {
    return this.#informer.list();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#informer.stop();
  }
}
