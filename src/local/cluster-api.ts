import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ApiOptions, startApi } from '../api/api.ts';
import { EmbeddedKube } from '../api/embedded.ts';
import type { Log } from '../controller/log.ts';
import type { Kube } from '../kube/port.ts';
import { engineTokens } from './tokens.ts';
import type { IssueToken } from './volumes.ts';

/** Who asks the API. */
export interface Identity {
  readonly name: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>> | undefined;
}

/** The API of a cluster: the embedded one, or kube-apiserver on the nodes of the cluster itself. */
export interface ClusterApi {
  readonly url: string;
  readonly kube: Kube;
  readonly kubeconfigPath: string;
  /** How programs of pods without a service account reach it; undefined where they bring their own kubeconfig. */
  readonly podKubeconfig: string | undefined;
  /** The name it proves to pods, where that is not the host of its URL. */
  readonly serverName?: string | undefined;
  /** What programs of pods are told besides. */
  readonly podEnv?: Readonly<Record<string, string>> | undefined;
  readonly issueToken: IssueToken;
  /** It is elsewhere than at the last start, so what still runs from then looks for it in vain. */
  readonly hasMoved: boolean;
  /** The API in the hands of somebody else. */
  as(identity: Identity): Promise<Kube>;
  /** Resolves when it answers; rejects when `signal` aborts before. */
  reachable(signal: AbortSignal): Promise<void>;
  /** Resolves when what was written last is in effect, such as a definition. */
  settled(): Promise<void>;
  close(): Promise<void>;
}

export interface EmbeddedApiOptions {
  readonly dir: string;
  /** 0 takes the one of the last start, or else a free one. */
  readonly port: number;
  readonly podLogs: ApiOptions['podLogs'];
  readonly isBehindOthers?: boolean | undefined;
  readonly log: Log;
}

/** The embedded API in this process, with its state and its kubeconfig in `dir`. */
export async function embeddedApi({
  dir,
  port,
  podLogs,
  isBehindOthers,
  log,
}: EmbeddedApiOptions): Promise<ClusterApi> {
  const portBefore = lastPort(dir);
  const api = await startApiAt(port, {
    dir,
    podLogs,
    isBehindOthers,
    onError: (what, err) => log.warn({ what, err }, 'the API failed at something'),
  });
  const kubeconfigPath = api.kubeconfigPath ?? join(dir, 'kubeconfig');
  return {
    url: api.url,
    kube: api.kube,
    kubeconfigPath,
    podKubeconfig: kubeconfigPath,
    issueToken: engineTokens(api.engine),
    hasMoved: portBefore !== 0 && portBefore !== Number(new URL(api.url).port),
    async as({ name, groups, extra = {} }) {
      const user = { name, uid: '', groups: [...groups, 'system:authenticated'], extra };
      return new EmbeddedKube(api.engine.core, { user });
    },
    reachable: async () => {},
    settled: () => api.engine.idle(),
    close: () => api.close(),
  };
}

/**
 * Programs that outlived a killed cluster know the API by its port, so it is kept where it can be; somebody else may have taken
 * it meanwhile.
 */
async function startApiAt(wanted: number, options: Omit<ApiOptions, 'port'> & { readonly dir: string }) {
  const last = lastPort(options.dir);
  if (wanted !== 0 || last === 0) return startApi({ ...options, port: wanted });
  try {
    return await startApi({ ...options, port: last });
  } catch (error) {
    if (!isPortTaken(error)) throw error;
    return startApi({ ...options, port: 0 });
  }
}

function isPortTaken(error: unknown): boolean {
  return error instanceof Error && (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
}

/** The port of the last start; 0 when there was none. */
function lastPort(dir: string): number {
  const path = join(dir, 'kubeconfig');
  if (!existsSync(path)) return 0;
  return Number(/server: "?https:\/\/[^\s"]+:(\d+)/.exec(readFileSync(path, 'utf8'))?.[1] ?? 0);
}
