import type { CustomResourceDefinition } from 'kubernetes-types/apiextensions/v1.d.ts';
import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { BUNDLE_KEY } from '../../certrotation/bundle.ts';
import { loadSecret } from '../../certrotation/secret.ts';
import type { Log } from '../../controller/log.ts';
import { type Access, changedAccess } from '../../kube/access.ts';
import { HttpKube } from '../../kube/client.ts';
import { sleep, systemClock } from '../../kube/clock.ts';
import { days, milliseconds, seconds } from '../../kube/duration.ts';
import { Informer } from '../../kube/informer.ts';
import { loadAccess } from '../../kube/kubeconfig.ts';
import { listAll } from '../../kube/list.ts';
import { objectPath } from '../../kube/path.ts';
import {
  CONFIG_MAPS,
  CUSTOM_RESOURCE_DEFINITIONS,
  NAMESPACES,
  SECRETS,
  SERVICE_ACCOUNTS,
} from '../../kube/resource.ts';
import { MANAGED_NAMESPACE } from '../../kube-apiserver/namespaces.ts';
import { API_PORT } from '../../kube-apiserver/target-config/pod.ts';
import type { CertificateAndKey } from '../../pki/authority.ts';
import { issueClient } from '../../pki/issue.ts';
import { systemKeys } from '../../pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../../pki/pem.ts';
import { nodeAddress } from '../addresses.ts';
import type { ClusterApi, Identity } from '../cluster-api.ts';
import { CSR_SIGNER } from '../cluster-inputs.ts';
import { issueTokens } from '../tokens.ts';
import { adminAccess, ensureAdminKubeconfig, serverPort, writeServerCa } from './admin-kubeconfig.ts';
import type { FoundingKeys } from './founding-keys.ts';
import { type LoadBalancer, startLoadBalancer } from './load-balancer.ts';

export interface RealApiOptions {
  readonly dir: string;
  readonly controlPlane: number;
  /** 0 takes the one of the last start, or else a free one. */
  readonly port: number;
  readonly keys: FoundingKeys;
  readonly log: Log;
}

const SERVER_CA = { namespace: MANAGED_NAMESPACE, name: 'kube-apiserver-server-ca' };
/** What pods know the API by. */
const SERVICE_NAME = 'kubernetes.default.svc';
const ASK_EVERY_MS = milliseconds(500);
const ASK_PATIENCE_MS = seconds(5);
/** Clients that are given a certificate get another one at the next start. */
const CLIENT_LIFETIME_MS = days(365);

/**
 * The API of a cluster that serves itself: kube-apiserver on its own control-plane nodes, behind a load balancer of this process.
 * The CA bundle beside the kubeconfig follows the one in the cluster.
 */
export async function realApi({ dir, controlPlane, port, keys, log }: RealApiOptions): Promise<ClusterApi> {
  const admin = adminAccess(dir);
  const portBefore = serverPort(admin);
  const balancer = await balancerAt(port, portBefore, backendsOf(dir, controlPlane));
  const url = `https://${balancer.host}:${balancer.port}`;
  const others: HttpKube[] = [];
  try {
    await ensureAdminKubeconfig(admin, url, keys);
    const access = await loadAccess({ path: admin.kubeconfigPath });
    const kube = new HttpKube(access);
    const bundles = followServerCa(kube, text => writeServerCa(admin, text), log);
    return {
      url,
      kube,
      kubeconfigPath: admin.kubeconfigPath,
      podKubeconfig: undefined,
      serverName: SERVICE_NAME,
      issueToken: issueTokens((account, body) =>
        kube.request('POST', objectPath(SERVICE_ACCOUNTS, account, 'token'), { body }),
      ),
      hasMoved: portBefore !== 0 && portBefore !== balancer.port,
      async as(identity) {
        const own = new HttpKube(await withClient(access, identity, loadSecret(await kube.get(SECRETS, CSR_SIGNER))));
        others.push(own);
        return own;
      },
      async reachable(signal) {
        await answers(kube, signal);
        bundles.start();
      },
      settled: () => definitionsServed(kube),
      async close() {
        await bundles.stop();
        await Promise.all([kube, ...others].map(client => client.close()));
        await balancer.close();
      },
    };
  } catch (error) {
    await balancer.close();
    throw error;
  }
}

/** Where kube-apiserver listens on each control-plane node. */
export function backendsOf(dir: string, controlPlane: number): { host: string; port: number }[] {
  return Array.from({ length: controlPlane }, (_, index) => ({ host: nodeAddress(dir, index), port: API_PORT }));
}

/** Clients know the API by its port, so it is kept where it can be; somebody else may have taken it meanwhile. */
async function balancerAt(
  wanted: number,
  last: number,
  backends: readonly { host: string; port: number }[],
): Promise<LoadBalancer> {
  if (wanted !== 0 || last === 0) return startLoadBalancer({ port: wanted, backends });
  try {
    return await startLoadBalancer({ port: last, backends });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    return startLoadBalancer({ port: 0, backends });
  }
}

/** Resolves when the administrator gets an answer; until then servers start, or their certificates come back to life. */
export async function answers(kube: HttpKube, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      await kube.list(NAMESPACES, {
        limit: 1,
        signal: AbortSignal.any([signal, AbortSignal.timeout(ASK_PATIENCE_MS)]),
      });
      return;
    } catch {
      signal.throwIfAborted();
    }
    await sleep(systemClock, ASK_EVERY_MS, signal);
  }
}

function followServerCa(kube: HttpKube, write: (bundle: string) => Promise<void>, log: Log): Informer<ConfigMap> {
  const selection = { namespace: SERVER_CA.namespace, fieldSelector: `metadata.name=${SERVER_CA.name}` };
  const informer = new Informer<ConfigMap>(kube, CONFIG_MAPS, { selection });
  let writing = Promise.resolve();
  const take = ({ data }: ConfigMap) => {
    const text = data?.[BUNDLE_KEY];
    if (!text) return;
    writing = writing
      .then(() => write(text))
      .catch((err: unknown) => log.warn({ err }, 'the CA bundle of the kubeconfig could not be written'));
  };
  informer.subscribe({ add: take, update: (_, configMap) => take(configMap), delete: () => {} });
  return informer;
}

/** The same way to the API as somebody else, with a certificate as kubelets get it. */
async function withClient(access: Access, { name, groups }: Identity, signer: CertificateAndKey): Promise<Access> {
  const { chain, key } = await issueClient({
    keys: systemKeys,
    algorithm: 'P-256',
    now: new Date(),
    lifetimeMs: CLIENT_LIFETIME_MS,
    signer,
    user: { name, groups: [...groups] },
  });
  const own = { certificate: encodeCertificates(chain), key: encodePrivateKey(key) };
  return changedAccess(access, connection => ({ ...connection, tls: { ...connection.tls, ...own } }));
}

async function definitionsServed(kube: HttpKube): Promise<void> {
  for (;;) {
    const { items } = await listAll(kube, CUSTOM_RESOURCE_DEFINITIONS);
    if (items.every(isEstablished)) return;
    await sleep(systemClock, ASK_EVERY_MS);
  }
}

function isEstablished({ status }: CustomResourceDefinition): boolean {
  return (status?.conditions ?? []).some(({ type, status: is }) => type === 'Established' && is === 'True');
}
