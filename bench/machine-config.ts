/**
 * What does one pass over the status of five pools with 1,000 nodes take? How long does a new client CA take to ControllerConfig?
 * What do the operator and the controllers cost when nothing happens? All on the embedded API in this process, so its share is
 * counted too; time is virtual, so pauses cost nothing and only work is measured.
 */
import { silentLog } from '../src/controller/log.ts';
import { hours, minutes } from '../src/kube/duration.ts';
import { eventsTo } from '../src/kube/events.ts';
import { controllerCaches, controllerInformers } from '../src/machine-config/controller/caches.ts';
import { nodeReconcile } from '../src/machine-config/pool/controller.ts';
import { certificate } from '../src/machine-config/testing.ts';
import { CONTROLLER_CONFIGS } from '../src/machine-config-api/controller-config.ts';
import { CONFIG_MANAGED_NAMESPACE, CONTROLLER_CONFIG_NAME } from '../src/machine-config-api/names.ts';
import { Fleet } from '../test/machine-config/fleet.ts';

const PASSES = 50;
const CHANGES = 20;
const POOLS = ['worker', 'a', 'b', 'c', 'd'];

export async function bench(): Promise<void> {
  const fleet = await Fleet.create({ pools: POOLS, nodesPerPool: 200, maxUnavailable: '10%', seed: 1 });
  try {
    fleet.cluster.startController(fleet.controllerApi());
    await fleet.populate();
    await statusPasses(fleet);
    await changes(fleet);
    await idle(fleet);
  } finally {
    await fleet.cluster.stop();
  }
}

/** The node controller's own function, over all pools, from memory as in the controller. */
async function statusPasses({ cluster }: Fleet): Promise<void> {
  const { clock, kube } = cluster;
  const caches = controllerCaches(kube, { clock, onError: () => {} });
  const informers = controllerInformers(caches);
  for (const informer of informers) informer.start();
  await cluster.quiet();
  const events = eventsTo('bench', () => {});
  const reconcile = nodeReconcile({ kube, caches, eventsAbout: () => events });
  const context = { clock, signal: new AbortController().signal, log: silentLog, events, enqueue: () => {} };
  const times: number[] = [];
  for (let pass = 0; pass < PASSES; pass++) {
    const start = performance.now();
    for (const pool of POOLS) await reconcile(pool, context);
    times.push(performance.now() - start);
  }
  await Promise.all(informers.map(informer => informer.stop()));
  console.log(`status of 5 pools with 1,000 nodes: ${summary(times)} of ${PASSES} passes (goal 100 ms)`);
}

async function changes({ cluster }: Fleet): Promise<void> {
  const times: number[] = [];
  for (let change = 0; change < CHANGES; change++) {
    const bundle = await certificate(`client-ca-${change}`);
    const wanted = Buffer.from(bundle).toString('base64');
    const start = performance.now();
    await cluster.setConfigMap(CONFIG_MANAGED_NAMESPACE, 'kube-apiserver-client-ca', { 'ca-bundle.crt': bundle });
    for (;;) {
      const { spec } = await cluster.kube.get(CONTROLLER_CONFIGS, { name: CONTROLLER_CONFIG_NAME });
      if (spec?.kubeAPIServerServingCAData === wanted) break;
      await new Promise(resolve => setImmediate(resolve));
    }
    times.push(performance.now() - start);
    await cluster.pass(minutes(1));
  }
  console.log(`new client CA to ControllerConfig: ${summary(times)} of ${CHANGES} (goal 1 s)`);
}

async function idle({ cluster }: Fleet): Promise<void> {
  await cluster.pass(minutes(30));
  const before = process.cpuUsage();
  await cluster.pass(hours(1));
  const { user, system } = process.cpuUsage(before);
  const usedMs = (user + system) / 1000;
  console.log(
    `one idle hour: ${Math.round(usedMs)} ms of CPU with the API, ${((100 * usedMs) / hours(1)).toFixed(3)} % of one core`,
  );
}

function summary(times: number[]): string {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number) =>
    (sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0).toFixed(1);
  return `median ${at(0.5)} ms, slowest ${at(1)} ms`;
}
