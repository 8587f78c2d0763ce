import type { Secret, ServiceAccount } from 'kubernetes-types/core/v1.d.ts';
import { applyOnceFrom } from '../daemon/apply/once-from.ts';
import { machineConfigDaemon } from '../daemon/daemon.ts';
import { observed } from '../host/memory.ts';
import type { Host } from '../host/port.ts';
import { sleep } from '../kube/clock.ts';
import { createIfMissing } from '../kube/create-if-missing.ts';
import { seconds } from '../kube/duration.ts';
import { SECRETS, SERVICE_ACCOUNTS } from '../kube/resource.ts';
import { VERSION } from '../kube/version.ts';
import { machineConfigController } from '../machine-config/controller/controller.ts';
import { ensureMachineConfigInputs } from '../machine-config/inputs/ensure.ts';
import { machineConfigOperator } from '../machine-config/operator/operator.ts';
import { OWN_VERSION } from '../machine-config/own-version.ts';
import { firstBootOf } from '../machine-config/server/first-boot.ts';
import { SCHEDULERS } from '../machine-config-api/cluster-config.ts';
import { CLUSTER, CONTROLLER_LEASE, MCO_NAMESPACE, OPERATOR_LEASE } from '../machine-config-api/names.ts';
import type { Keys } from '../pki/keys.ts';
import { Component, type ComponentWorld, type Tools } from './component.ts';
import { asLeader } from './leader.ts';
import type { Network } from './network.ts';
import type { TwinNode } from './node.ts';

const ASK_AGAIN_MS = seconds(5);
const FIRST_CONFIG = '/run/rotunda/first-boot.ign';
const BOOTSTRAPPER = 'node-bootstrapper';

/** The real operator and controllers of machine configuration: templates, rendered configs, pools and drains. */
export function machineConfigComponents(world: ComponentWorld, keys: Keys): Component[] {
  const { time } = world;
  return [
    new Component(
      world,
      'machine-config-operator',
      asLeader(time, OPERATOR_LEASE, (tools, signal) => runOperator(tools, keys, signal)),
    ),
    new Component(world, 'machine-config-controller', asLeader(time, CONTROLLER_LEASE, runController)),
  ];
}

/** The real agent of a node with all it does, on a machine in memory. */
export function wholeAgentOf(world: ComponentWorld, parts: WholeAgentParts): Component {
  return new Component(world, `agent on ${parts.node.name}`, (tools, signal) => runAgent(tools, parts, signal));
}

/** With what installer and release would have brought. */
async function runOperator({ kube, clock, events, log }: Tools, keys: Keys, signal: AbortSignal): Promise<void> {
  await ensureMachineConfigInputs({ kube, clock, keys, releaseVersion: VERSION, keyAlgorithm: 'P-256', signal });
  await provideBootstrapper(kube, signal);
  await createIfMissing(kube, SCHEDULERS, { metadata: { name: CLUSTER }, spec: { mastersSchedulable: false } }, signal);
  const shared = { kube, clock, events, log, version: OWN_VERSION };
  await machineConfigOperator({ ...shared, releaseVersion: VERSION, handOver: 'receipts' }).run(signal);
}

async function runController({ kube, clock, events, log }: Tools, signal: AbortSignal): Promise<void> {
  await machineConfigController({ kube, clock, events, log, version: OWN_VERSION }).run(signal);
}

export interface WholeAgentParts {
  readonly node: TwinNode;
  readonly network: Network;
  readonly apiServerUrl: string;
  /** The machine goes down and comes back. */
  readonly reboot: (rationale: string) => void;
}

async function runAgent({ kube, clock, log }: Tools, parts: WholeAgentParts, signal: AbortSignal): Promise<void> {
  const { node, network } = parts;
  const alive = observed(node.host, () => signal.throwIfAborted());
  const host: Host = { ...alive, reboot: async rationale => parts.reboot(rationale) };
  await firstBoot(host, { kube, clock }, parts, signal);
  const { shakeHands } = network;
  await machineConfigDaemon({ kube, nodeKube: kube, host, nodeName: node.name, clock, log, shakeHands }).run(signal);
}

/** What Ignition does with a new machine: it becomes what the machine-config server says a machine of its pool is. */
async function firstBoot(
  host: Host,
  { kube, clock }: Pick<Tools, 'kube' | 'clock'>,
  { node, apiServerUrl }: WholeAgentParts,
  signal: AbortSignal,
): Promise<void> {
  if ((await host.files.stat('/etc/machine-config-daemon/currentconfig')) !== undefined) return;
  const pool = node.isControlPlane ? 'master' : 'worker';
  for (;;) {
    try {
      const document = await firstBootOf(kube, { pool, version: '3.4.0', apiServerUrl, isFirst: true }, signal);
      await host.files.write(FIRST_CONFIG, Buffer.from(JSON.stringify(document)), { mode: 0o600 });
      break;
    } catch {
      signal.throwIfAborted();
      await sleep(clock, ASK_AGAIN_MS, signal);
    }
  }
  await applyOnceFrom(host, FIRST_CONFIG);
  await host.files.remove(FIRST_CONFIG);
}

/** With its token new machines ask for their first certificate; here it only makes the first config complete. */
async function provideBootstrapper(kube: Tools['kube'], signal: AbortSignal): Promise<void> {
  const account: ServiceAccount = { metadata: { namespace: MCO_NAMESPACE, name: BOOTSTRAPPER } };
  await createIfMissing(kube, SERVICE_ACCOUNTS, account, signal);
  const annotations = { 'kubernetes.io/service-account.name': BOOTSTRAPPER };
  const token: Secret = {
    metadata: { namespace: MCO_NAMESPACE, name: `${BOOTSTRAPPER}-token`, annotations },
    type: 'kubernetes.io/service-account-token',
  };
  await createIfMissing(kube, SECRETS, token, signal);
}
