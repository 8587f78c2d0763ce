import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { BUNDLE_KEY } from '../../certrotation/bundle.ts';
import { type Log, silentLog } from '../../controller/log.ts';
import { changedAccess } from '../../kube/access.ts';
import { againWhileTransient } from '../../kube/again.ts';
import { HttpKube } from '../../kube/client.ts';
import { sleep, systemClock } from '../../kube/clock.ts';
import { days, milliseconds } from '../../kube/duration.ts';
import { loadAccess } from '../../kube/kubeconfig.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS } from '../../kube/resource.ts';
import { MANAGED_NAMESPACE } from '../../kube-apiserver/namespaces.ts';
import { type LocalCluster, type LocalClusterOptions, startLocalCluster } from '../cluster.ts';
import { embeddedApi } from '../cluster-api.ts';
import { provideRotationDay } from '../cluster-inputs.ts';
import { etcdPart } from '../etcd-part.ts';
import { kubeApiserverPart } from '../kube-apiserver-part.ts';
import { adminAccess, ensureAdminKubeconfig, writeServerCa } from './admin-kubeconfig.ts';
import { type FoundingKeys, foundingKeys } from './founding-keys.ts';
import { provideFoundingObjects } from './founding-objects.ts';
import { startLoadBalancer } from './load-balancer.ts';
import { type Moved, moveCluster } from './move.ts';
import { readPhase, writePhase } from './phase.ts';
import { answers, backendsOf } from './real-api.ts';
import { requireRealPrograms } from './required-programs.ts';

export type BootstrapOptions = Omit<LocalClusterOptions, 'api' | 'parts' | 'moreParts'>;

const CONTROL_PLANE = 3;
/** Below it a lost node is a lost etcd, and single-node rules would wait for an API that nobody has moved to yet. */
const LEAST_CONTROL_PLANE = 3;
const LOOK_EVERY_MS = milliseconds(250);
/**
 * With days of two seconds the first leaves would end before there are servers that could show their successors to each other. Rotation
 * begins when the cluster serves itself, with the days that were asked for.
 */
const FOUNDING_DAY_MS = days(1);
/** Below the cluster's directory; gone when the cluster serves itself. */
const TEMPORARY = 'bootstrap';

/**
 * Makes a control plane that serves itself: etcd and kube-apiserver as static pods on the nodes of `dir`, brought up by the same
 * operators that keep them later, on a temporary API whose objects then move to the real one. Nothing of it runs afterwards. An
 * interrupted one is taken up where it was; where all is done nothing happens and nothing is given back.
 */
export async function bootstrap(options: BootstrapOptions): Promise<Moved | undefined> {
  const { log = silentLog, controlPlane = CONTROL_PLANE, signal = new AbortController().signal } = options;
  const dir = resolve(options.dir);
  if (controlPlane < LEAST_CONTROL_PLANE) {
    throw new RangeError(`expected ${LEAST_CONTROL_PLANE} control-plane nodes or more, found ${controlPlane}`);
  }
  requireRealPrograms(options.programs);
  const temporary = join(dir, TEMPORARY);
  const before = await readPhase(dir);
  if (before === 'self-hosted') {
    rmSync(temporary, { recursive: true, force: true });
    return undefined;
  }
  if (before === undefined && existsSync(join(dir, 'nodes'))) {
    throw new Error(`${dir} has nodes of a cluster with an embedded API; choose another directory`);
  }
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  if (before === undefined) await writePhase(dir, 'founding');
  const keys = await foundingKeys(join(dir, 'pki'), options.keyAlgorithm);
  const cluster = await startLocalCluster({
    ...options,
    controlPlane,
    apiPort: 0,
    dayMs: FOUNDING_DAY_MS,
    parts: before === 'moving' ? [] : [etcdPart, kubeApiserverPart],
    moreParts: [],
    api: () => temporaryApi(temporary, keys, log),
  });
  try {
    if (before !== 'moving') {
      await Promise.race([cluster.ready(), failed(cluster), aborted(signal)]);
      await cluster.endParts();
      await writePhase(dir, 'moving');
    }
    await provideRotationDay({ kube: cluster.kube, dayMs: options.dayMs });
    const moved = await moveToNodes(dir, controlPlane, keys, cluster.kube, signal);
    log.info({ moved }, 'the cluster serves itself');
    await writePhase(dir, 'self-hosted');
    return moved;
  } finally {
    await cluster.close();
    if ((await readPhase(dir)) === 'self-hosted') rmSync(temporary, { recursive: true, force: true });
  }
}

async function temporaryApi(dir: string, keys: FoundingKeys, log: Log) {
  const api = await embeddedApi({ dir, port: 0, podLogs: undefined, log });
  await provideFoundingObjects(api.kube, keys);
  return api;
}

/** Copies everything to the kube-apiserver of one node: the others might not serve yet what was defined a moment ago. */
async function moveToNodes(
  dir: string,
  controlPlane: number,
  keys: FoundingKeys,
  from: Kube,
  signal: AbortSignal,
): Promise<Moved> {
  const backends = backendsOf(dir, controlPlane);
  const balancer = await startLoadBalancer({ backends });
  const admin = adminAccess(dir);
  try {
    await ensureAdminKubeconfig(admin, `https://${balancer.host}:${balancer.port}`, keys);
    const { data } = await from.get(CONFIG_MAPS, { namespace: MANAGED_NAMESPACE, name: 'kube-apiserver-server-ca' });
    await writeServerCa(admin, data?.[BUNDLE_KEY] ?? '');
    while (balancer.ready().length < backends.length) await sleep(systemClock, LOOK_EVERY_MS, signal);
  } finally {
    await balancer.close();
  }
  const [{ host, port } = { host: '', port: 0 }] = backends;
  const access = await loadAccess({ path: admin.kubeconfigPath });
  const server = new URL(`https://${host}:${port}`);
  const kube = new HttpKube(changedAccess(access, connection => ({ ...connection, server })));
  try {
    await answers(kube, signal);
    return await againWhileTransient(() => moveCluster(from, kube), { signal });
  } finally {
    await kube.close();
  }
}

async function failed({ ended }: LocalCluster): Promise<never> {
  await ended;
  throw new Error('the operators ended before the control plane was there');
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
