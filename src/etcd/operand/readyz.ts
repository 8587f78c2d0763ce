import { errorText } from '../../controller/aggregate-error.ts';
import type { Log } from '../../controller/log.ts';
import { seconds } from '../../kube/duration.ts';
import { parseFlags } from '../../staticpod/node/flags.ts';
import { GatewayClient } from '../client/gateway.ts';
import { isSameMaterial, type MaterialSource, materialFromFiles, type TlsMaterial } from '../client/material.ts';
import { READYZ_PORT } from '../names.ts';
import { type ReloadingServer, type ServingFiles, startReloadingServer } from './reloading-server.ts';

export interface ReadyzOptions {
  /** The member on this node. */
  readonly target: string;
  readonly listenAddress: string;
  /** 0 takes any that is free. */
  readonly listenPort: number;
  readonly serving: ServingFiles;
  readonly client: { readonly ca: string; readonly cert: string; readonly key: string };
}

const FLAGS = {
  target: 'text',
  'listen-address': 'text',
  'listen-port': 'integer',
  'serving-cert-file': 'text',
  'serving-key-file': 'text',
  'client-cert-file': 'text',
  'client-key-file': 'text',
  'client-cacert-file': 'text',
} as const;

/** Reads the command line of `rotunda etcd-readyz`. */
export function parseReadyzOptions(argv: readonly string[]): ReadyzOptions {
  const flags = parseFlags(argv, FLAGS);
  const required = (name: keyof typeof FLAGS): string => {
    const value = flags[name];
    if (typeof value !== 'string' || value === '') throw new Error(`--${name} is required`);
    return value;
  };
  return {
    target: required('target'),
    listenAddress: flags['listen-address'] ?? '0.0.0.0',
    listenPort: flags['listen-port'] ?? READYZ_PORT,
    serving: { cert: required('serving-cert-file'), key: required('serving-key-file') },
    client: {
      ca: required('client-cacert-file'),
      cert: required('client-cert-file'),
      key: required('client-key-file'),
    },
  };
}

/** A probe gives up before this. */
const ANSWER_LIMIT_MS = seconds(25);

/** Answers the probes of the kubelet for the member on this node: 200 when it reads its own copy, 503 when not (spec 40, A-6). */
export async function startReadyz(options: ReadyzOptions, log: Pick<Log, 'warn' | 'info'>): Promise<ReloadingServer> {
  const probe = new MemberProbe(options.target, materialFromFiles(options.client));
  const listenAt = { address: options.listenAddress, port: options.listenPort };
  const server = await startReloadingServer(
    listenAt,
    options.serving,
    (request, response) => {
      const [pathname] = (request.url ?? '/').split('?', 1);
      if (pathname !== '/readyz' && pathname !== '/healthz') {
        response.writeHead(404).end('not found\n');
        return;
      }
      probe.ask().then(
        () => response.writeHead(200).end('ok\n'),
        (error: unknown) => {
          log.warn({ why: errorText(error) }, 'the member on this node does not answer');
          response.writeHead(503).end('not ready\n');
        },
      );
    },
    log,
  );
  return {
    url: server.url,
    async stop() {
      await server.stop();
      await probe.close();
    },
  };
}

class MemberProbe {
  readonly #target: string;
  readonly #source: MaterialSource;
  #material: TlsMaterial | undefined;
  #client: GatewayClient | undefined;

  constructor(target: string, source: MaterialSource) {
    this.#target = target;
    this.#source = source;
  }

  async ask(): Promise<void> {
    const material = await this.#source();
    if (this.#client === undefined || !isSameMaterial(this.#material, material)) {
      await this.close();
      this.#material = material;
      this.#client = new GatewayClient([this.#target], material, { requestMs: ANSWER_LIMIT_MS });
    }
    // A read of its own copy: one member that is cut off from the others is not restarted for that.
    await this.#client.readHealthKey({ isLearner: true });
  }

  async close(): Promise<void> {
    await this.#client?.close().catch(() => {});
    this.#client = undefined;
  }
}
