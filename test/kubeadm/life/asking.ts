import { createPrivateKey, X509Certificate } from 'node:crypto';
import type { OutgoingHttpHeaders } from 'node:http';
import { request } from 'node:https';
import { setTimeout as pause } from 'node:timers/promises';
import type { Access, TlsMaterial } from '../../../src/kube/access.ts';
import { LEASES } from '../../../src/kube/resource.ts';
import type { RigNode } from '../rig/rig-node.ts';
import type { AdoptedCluster } from './adopted-cluster.ts';

export interface AskedReport {
  readonly asked: number;
  /** Answers that were not as they ought to be, and were the next time. */
  readonly repeated: number;
  /** The longest time that one of them did not answer, while it was restarted for instance. */
  readonly longestMs: number;
  /** Either side did not accept the other. */
  readonly failures: readonly string[];
}

/** What is wrong with an answer; undefined: nothing. */
type Ask<T> = (of: T) => Promise<string | undefined>;

const ASK_EVERY_MS = 500;
const ASK_PATIENCE_MS = 10_000;
const LONGEST_PAUSE_MS = 5_000;
const ETCD_PORT = 2379;
/** Words of Go's TLS, what servers say to whom they do not know, and how Node calls what it does not accept. */
const TRUST = /x509|tls:|Unauthorized|CERT|SSL|UNABLE_TO|SELF_SIGNED|ALTNAME/;

export function isAboutTrust(text: string): boolean {
  return TRUST.test(text);
}

/** Asks everybody the same, one after the other, again and again. */
export class Asking {
  readonly #name: string;
  readonly #failures: string[] = [];
  #asked = 0;
  #repeated = 0;
  #longestMs = 0;

  constructor(name: string) {
    this.#name = name;
  }

  report(): AskedReport {
    return { asked: this.#asked, repeated: this.#repeated, longestMs: this.#longestMs, failures: this.#failures };
  }

  async run<T extends { readonly name: string }>(
    everybody: () => Promise<readonly T[]>,
    ask: Ask<T>,
    signal: AbortSignal,
  ): Promise<void> {
    const inVain = new Map<string, { readonly since: number; readonly times: number }>();
    while (!signal.aborted) {
      for (const one of await everybody()) {
        const problem = await ask(one).catch(problemOf);
        if (signal.aborted) return;
        this.#asked++;
        const { since, times } = inVain.get(one.name) ?? { since: performance.now(), times: 0 };
        if (times > 0) this.#longestMs = Math.max(this.#longestMs, performance.now() - since);
        inVain.delete(one.name);
        if (problem === undefined) continue;
        inVain.set(one.name, { since, times: times + 1 });
        this.#repeated++;
        if (isAboutTrust(problem))
          this.#failures.push(`${new Date().toISOString()} ${this.#name} of ${one.name}: ${problem}`);
        await pause(Math.min(100 * 2 ** times, LONGEST_PAUSE_MS));
      }
      await pause(ASK_EVERY_MS);
    }
  }
}

/** A kubelet, through kube-apiserver. */
export function kubeletBehind(access: Access): Ask<RigNode> {
  return async ({ name }) => {
    const { server, tls, headers } = await access.connection();
    return answerOf(new URL(`/api/v1/nodes/${name}/proxy/healthz`, server), tls, headers);
  };
}

/** A member of etcd, with what is in the files of its node at that moment. */
export async function memberOf(node: RigNode): Promise<string | undefined> {
  const read = (file: string) => node.read(`/etc/kubernetes/pki/etcd/${file}`);
  const [ca, certificate, key] = await Promise.all(
    ['ca.crt', 'healthcheck-client.crt', 'healthcheck-client.key'].map(read),
  );
  if (certificate === undefined || key === undefined) return 'files are missing';
  if (!new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key))) return 'its files are being replaced';
  return answerOf(new URL(`https://${node.address}:${ETCD_PORT}/health`), { ca, certificate, key });
}

/** Counts the leases that kubelets renew with their own credentials. */
export function renewalsIn({ kube }: AdoptedCluster, renewed: () => void): Ask<RigNode> {
  const last = new Map<string, unknown>();
  return async ({ name }) => {
    const { spec } = await kube.get(LEASES, { namespace: 'kube-node-lease', name });
    if (last.get(name) !== spec?.renewTime) renewed();
    last.set(name, spec?.renewTime);
    return undefined;
  };
}

async function answerOf(url: URL, { ca, certificate, key }: TlsMaterial, headers: OutgoingHttpHeaders = {}) {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const question = request(url, { ca, cert: certificate, key, headers: { ...headers }, agent: false }, answer => {
    let text = '';
    answer.setEncoding('utf8').on('data', part => {
      text += part;
    });
    answer.once('close', () =>
      resolve(answer.statusCode === 200 ? undefined : `${answer.statusCode} ${text.slice(0, 300)}`),
    );
  });
  question.setTimeout(ASK_PATIENCE_MS, () => question.destroy(new Error('no answer')));
  question.once('error', error => resolve(problemOf(error)));
  question.end();
  return promise;
}

function problemOf(error: unknown): string {
  const { code = '', message } = error as { code?: string; message?: string };
  return `${code} ${message ?? String(error)}`;
}
