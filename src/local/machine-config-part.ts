import type { Secret, ServiceAccount } from 'kubernetes-types/core/v1.d.ts';
import type { Log } from '../controller/log.ts';
import { applyOnceFrom } from '../daemon/apply/once-from.ts';
import { AgentMustRestart } from '../daemon/certificates/controller.ts';
import { machineConfigDaemon } from '../daemon/daemon.ts';
import { localHost } from '../host/local.ts';
import type { Host } from '../host/port.ts';
import { sleep, systemClock } from '../kube/clock.ts';
import { createIfMissing } from '../kube/create-if-missing.ts';
import { milliseconds, seconds } from '../kube/duration.ts';
import { Informer } from '../kube/informer.ts';
import { NAMESPACES, SECRETS, SERVICE_ACCOUNTS } from '../kube/resource.ts';
import { VERSION } from '../kube/version.ts';
import { machineConfigController } from '../machine-config/controller/controller.ts';
import { ensureMachineConfigInputs } from '../machine-config/inputs/ensure.ts';
import { machineConfigOperator } from '../machine-config/operator/operator.ts';
import { OWN_VERSION } from '../machine-config/own-version.ts';
import { firstBootOf } from '../machine-config/server/first-boot.ts';
import { SCHEDULERS } from '../machine-config-api/cluster-config.ts';
import { MACHINE_CONFIG_POOLS, type MachineConfigPool } from '../machine-config-api/machine-config.ts';
import { CLUSTER, CONTROLLER_LEASE, MCO_NAMESPACE, OPERATOR_LEASE } from '../machine-config-api/names.ts';
import { systemKeys } from '../pki/keys.ts';
import { HostedPod } from './hosted-pod.ts';
import type { LocalNode } from './node.ts';
import { provideOperatingSystem } from './operating-system.ts';
import type { ClusterPart, PartContext, PartState } from './part.ts';

/** Changes are gathered this long before configs are rendered; on one machine they come close together. */
const GATHER_MS = milliseconds(300);
const ASK_AGAIN_MS = milliseconds(500);
const RESTART_PAUSE_MS = seconds(1);
/** Where a machine finds what it is given at its first boot; gone afterwards, because a token is in it. */
const FIRST_CONFIG = '/run/rotunda/first-boot.ign';
const BOOTSTRAPPER = 'node-bootstrapper';
const AGENT = 'machine-config-daemon';

/** Machine configuration: operator and controllers in this process, and an agent for every node. */
export const machineConfigPart: ClusterPart = {
  name: 'machine-config',
  async start(context) {
    const { kube, changed, keyAlgorithm, handOver } = context;
    const log = context.log.child({ operator: 'machine-config' });
    const pools = new Informer<MachineConfigPool>(kube, MACHINE_CONFIG_POOLS, {
      onError: err => log.debug({ err }, 'watching pools failed'),
    });
    pools.subscribe({ add: changed, update: changed, delete: changed });
    const events = context.events('machine-config', MCO_NAMESPACE);
    const shared = { clock: systemClock, events, version: OWN_VERSION, log };
    const operator = context.lead(OPERATOR_LEASE, events, async (fenced, stop) => {
      await ensureMachineConfigInputs({
        kube: fenced,
        clock: systemClock,
        keys: systemKeys,
        releaseVersion: VERSION,
        keyAlgorithm,
        signal: stop,
      });
      await machineConfigOperator({ ...shared, kube: fenced, releaseVersion: VERSION, handOver }).run(stop);
    });
    const controller = context.lead(CONTROLLER_LEASE, events, (fenced, stop) =>
      machineConfigController({ ...shared, kube: fenced, delayMs: GATHER_MS }).run(stop),
    );
    const work = async () => {
      pools.start();
      try {
        await Promise.all([
          operator.done,
          controller.done,
          context.patiently(() => provideBootstrapper(context)),
          context.patiently(() => provideScheduler(context)),
          ...context.nodes.map(node =>
            node.power.whileOn(context.signal, on => runAgent(node, { ...context, signal: on })),
          ),
        ]);
      } finally {
        await pools.stop();
      }
    };
    return { ended: work(), state: () => operator.state(controller.state(stateOf(pools, context.nodes.length))) };
  },
};

/** With its token new machines ask for their first certificate; here it only makes the first config complete. */
async function provideBootstrapper({ kube, signal }: PartContext): Promise<void> {
  const account: ServiceAccount = { metadata: { namespace: MCO_NAMESPACE, name: BOOTSTRAPPER } };
  await createIfMissing(kube, NAMESPACES, { metadata: { name: MCO_NAMESPACE } }, signal);
  await createIfMissing(kube, SERVICE_ACCOUNTS, account, signal);
  const token: Secret = {
    metadata: {
      namespace: MCO_NAMESPACE,
      name: `${BOOTSTRAPPER}-token`,
      annotations: { 'kubernetes.io/service-account.name': BOOTSTRAPPER },
    },
    type: 'kubernetes.io/service-account-token',
  };
  await createIfMissing(kube, SECRETS, token, signal);
}

/** What the installer says: ordinary pods run on workers, and on the control plane only where there are none. */
async function provideScheduler({ kube, nodes, controlPlane, signal }: PartContext): Promise<void> {
  const mastersSchedulable = nodes.length === controlPlane.length;
  await createIfMissing(kube, SCHEDULERS, { metadata: { name: CLUSTER }, spec: { mastersSchedulable } }, signal);
}

/** The agent of one node, with the node's own rights, again after each reboot. */
async function runAgent(node: LocalNode, context: PartContext): Promise<void> {
  const { kube, signal } = context;
  const pod = new HostedPod({
    namespace: MCO_NAMESPACE,
    name: `${AGENT}-${node.name}`,
    container: AGENT,
    labels: { 'k8s-app': AGENT },
    node,
    kube,
  });
  const log = pod.log(context.log.child({ node: node.name, program: AGENT }));
  const own = await context.patiently(() => context.as({ name: `system:node:${node.name}`, groups: ['system:nodes'] }));
  const host = localHost({
    root: node.root,
    async onService(verb, unit) {
      if (unit === 'kubelet.service' && (verb === 'restart' || verb === 'start')) await node.kubeletStarts();
    },
  });
  signal.addEventListener('abort', () => pod.close(), { once: true });
  await node.host(pod, signal).catch((err: unknown) => log.debug({ err }, 'the pod of the agent cannot be shown'));
  await provideOperatingSystem(host);
  while (!signal.aborted) {
    const boot = new AbortController();
    const stop = AbortSignal.any([signal, boot.signal]);
    const machine: Host = {
      ...host,
      async reboot(rationale) {
        await host.reboot(rationale);
        boot.abort(new Error(`the node reboots: ${rationale}`));
      },
    };
    try {
      await firstBoot(node, machine, context, log);
      await node.kubeletStarts();
      const daemon = machineConfigDaemon({
        kube,
        nodeKube: own,
        host: machine,
        nodeName: node.name,
        clock: systemClock,
        log,
      });
      await daemon.run(stop);
    } catch (err) {
      if (signal.aborted) return;
      if (!boot.signal.aborted && !(err instanceof AgentMustRestart)) log.warn({ err }, 'the agent failed');
      await sleep(systemClock, RESTART_PAUSE_MS, signal).catch(() => {});
    }
  }
}

/** What Ignition does with a new machine: it becomes what the machine-config server says a machine of its pool is. */
async function firstBoot(node: LocalNode, host: Host, context: PartContext, log: Log): Promise<void> {
  const { kube, url, signal } = context;
  if ((await host.files.stat('/etc/machine-config-daemon/currentconfig')) !== undefined) return;
  const pool = context.controlPlane.includes(node) ? 'master' : 'worker';
  for (let told = false; ; told = true) {
    try {
      const document = await firstBootOf(kube, { pool, version: '3.4.0', apiServerUrl: url, isFirst: true }, signal);
      await host.files.write(FIRST_CONFIG, Buffer.from(JSON.stringify(document)), { mode: 0o600 });
      break;
    } catch (err) {
      if (signal.aborted) throw err;
      if (!told) log.debug({ err }, 'the first config is not there yet');
    }
    await sleep(systemClock, ASK_AGAIN_MS, signal);
  }
  await applyOnceFrom(host, FIRST_CONFIG);
  await host.files.remove(FIRST_CONFIG);
}

function stateOf(pools: Informer<MachineConfigPool>, nodes: number): PartState {
  const counts = pools.list().map(({ metadata, status = {} }) => ({ name: metadata?.name ?? '', ...status }));
  const machines = counts.reduce((sum, { machineCount = 0 }) => sum + machineCount, 0);
  const updated = counts.reduce((sum, { updatedMachineCount = 0 }) => sum + updatedMachineCount, 0);
  const degraded = counts.reduce((sum, { degradedMachineCount = 0 }) => sum + degradedMachineCount, 0);
  if (counts.length === 0) return { ready: false, text: 'waiting for ControllerConfig and the pools' };
  const trouble = degraded === 0 ? '' : `, ${degraded} degraded`;
  return {
    ready: machines === nodes && updated === nodes && degraded === 0,
    text: `${updated} of ${nodes} nodes have the config of their pool${trouble}`,
  };
}
