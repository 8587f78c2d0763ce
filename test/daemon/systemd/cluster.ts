import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { load } from 'js-yaml';
import { type Api, startApi } from '../../../src/api/api.ts';
import { kubeconfigFor } from '../../../src/api/kubeconfig.ts';
import { bundleProgram } from '../../../src/cli/bundle.ts';
import { silentLog } from '../../../src/controller/log.ts';
import { LIVE_KUBECONFIG } from '../../../src/daemon/certificates/paths.ts';
import { type Clock, systemClock } from '../../../src/kube/clock.ts';
import { days } from '../../../src/kube/duration.ts';
import { eventsTo } from '../../../src/kube/events.ts';
import { getIfPresent } from '../../../src/kube/get.ts';
import type { Kube } from '../../../src/kube/port.ts';
import { NODES } from '../../../src/kube/resource.ts';
import { machineConfigController } from '../../../src/machine-config/controller/controller.ts';
import { machineConfigOperator } from '../../../src/machine-config/operator/operator.ts';
import { firstBootOf } from '../../../src/machine-config/server/first-boot.ts';
import { RELEASE, TestCluster, VERSION } from '../../../src/machine-config/testing.ts';
import { mergePolicies, policiesInForce } from '../../../src/machine-config-api/disruption-policy.ts';
import {
  MACHINE_CONFIG_POOLS,
  MACHINE_CONFIGS,
  type MachineConfig,
} from '../../../src/machine-config-api/machine-config.ts';
import {
  type DisruptionPolicies,
  MACHINE_CONFIGURATIONS,
} from '../../../src/machine-config-api/machine-configuration.ts';
import { CONFIG_MANAGED_NAMESPACE, MCO_NAMESPACE } from '../../../src/machine-config-api/names.ts';
import type { CertificateAndKey } from '../../../src/pki/authority.ts';
import { issueClient, issueSigner } from '../../../src/pki/issue.ts';
import { systemKeys } from '../../../src/pki/keys.ts';
import { encodeCertificates, readCertificates } from '../../../src/pki/pem.ts';
import { debianRoot } from '../../tools/debian-root.ts';
import { eventually } from '../../tools/eventually.ts';
import { type Layers, MachineRoom, nspawnProblem } from '../../tools/nspawn.ts';
import { SystemdNode } from './node.ts';

const POOL = 'worker';
const IMAGE = new URL('./image/', import.meta.url).pathname;
const FIRST_BOOT = new URL('./first-boot.ts', import.meta.url).pathname;
/** Changes are gathered this long instead of five seconds. */
const GATHER_MS = 20;
/** A server CA must have been the same for a minute before nodes hear of it; for the operator that is a second. */
const OPERATOR_SPEED = 60;

const HOST_MOUNT = '/rootfs';
/** Comes first on the path. */
const SYSTEMD_RUN = '/usr/local/bin/systemd-run';
const CONTAINED = '/etc/systemd/system/machine-config-daemon.service.d/contained.conf';

/** systemd with its logins, and the libraries that Node is linked with. */
const PACKAGES = ['systemd', 'systemd-sysv', 'dbus', 'libpam-systemd', 'openssh-server', 'passwd', 'libstdc++6'];
/** The user that keys are for; nothing at boot that no test needs. */
const FINISH = `
  useradd --create-home --shell /bin/bash core
  systemctl set-default multi-user.target
  systemctl disable ssh.service
  systemctl mask console-getty.service getty@.service apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer \
    e2scrub_all.timer e2scrub_reap.service fstrim.timer systemd-tmpfiles-clean.timer
`;

/** What nodes boot from. */
export interface NodeRoot {
  readonly root: string;
  /** Why there cannot be any here. */
  readonly missing?: string;
}

/** Finds it, and builds it where it is not there yet. */
export async function nodeRoot(): Promise<NodeRoot> {
  const missing = nspawnProblem();
  if (missing !== undefined) return { root: '', missing };
  try {
    return { root: await debianRoot(PACKAGES, FINISH) };
  } catch (error) {
    return { root: '', missing: `no root directory for machines could be built: ${(error as Error).message}` };
  }
}

/** The embedded API with the real operator and controllers of machine configuration, and nodes that are machines with systemd. */
export class SystemdCluster {
  readonly nodes: SystemdNode[] = [];
  readonly #api: Api;
  readonly #cluster: TestCluster;
  readonly #room: MachineRoom;
  readonly #signer: CertificateAndKey;
  readonly #stop = new AbortController();
  #running: Promise<unknown> = Promise.resolve();
  #layers: Layers = [];

  private constructor(api: Api, cluster: TestCluster, room: MachineRoom, signer: CertificateAndKey) {
    this.#api = api;
    this.#cluster = cluster;
    this.#room = room;
    this.#signer = signer;
  }

  /** `root` is that of the operating system of all nodes. */
  static async start(root: string): Promise<SystemdCluster> {
    const api = await startApi();
    const cluster = await TestCluster.create(async () => ({
      kube: api.kube,
      idle: () => api.engine.idle(),
      close: () => api.close(),
    }));
    const signer = await issueSigner({ ...issuing(), commonName: 'nodes' });
    api.setClientCas(encodeCertificates(signer.chain));
    const made = new SystemdCluster(api, cluster, new MachineRoom(root), signer);
    try {
      await made.#startCentralSide();
      await made.#makeImage();
      return made;
    } catch (error) {
      await made.close();
      throw error;
    }
  }

  get kube(): Kube {
    return this.#api.kube;
  }

  /** The CA of the API, as kubeconfigs have it. */
  get serverCa(): string {
    const { clusters } = load(this.#api.kubeconfig) as {
      clusters: { cluster: { 'certificate-authority-data': string } }[];
    };
    return Buffer.from(clusters[0]?.cluster['certificate-authority-data'] ?? '', 'base64').toString();
  }

  /** What the operator hears of the CAs that API servers are verified with. */
  async setServerCas(bundle: string): Promise<void> {
    await this.#cluster.setConfigMap(CONFIG_MANAGED_NAMESPACE, 'kube-apiserver-server-ca', { 'ca-bundle.crt': bundle });
  }

  /** The name of the config the pool is to be in. */
  async wanted(): Promise<string> {
    return (await this.kube.get(MACHINE_CONFIG_POOLS, { name: POOL })).spec?.configuration?.name ?? '';
  }

  config(name: string): Promise<MachineConfig> {
    return this.kube.get(MACHINE_CONFIGS, { name });
  }

  /** What the operator hears of the CAs whose client certificates kubelets take. */
  async setClientCas(bundle: string): Promise<void> {
    await this.#cluster.setConfigMap(CONFIG_MANAGED_NAMESPACE, 'kube-apiserver-client-ca', { 'ca-bundle.crt': bundle });
  }

  /** What is to be done instead of a reboot. */
  async setDisruptionPolicies(nodeDisruptionPolicy: DisruptionPolicies): Promise<void> {
    const name = 'cluster';
    const body = { spec: { nodeDisruptionPolicy } };
    await this.kube.patch(MACHINE_CONFIGURATIONS, { name }, { type: 'merge', body });
    await eventually('the policies are in force', async () => {
      const inForce = policiesInForce(await this.kube.get(MACHINE_CONFIGURATIONS, { name }));
      return isDeepStrictEqual(inForce, mergePolicies(nodeDisruptionPolicy));
    });
  }

  async setMaxUnavailable(count: number): Promise<void> {
    const body = { spec: { maxUnavailable: count } };
    await this.kube.patch(MACHINE_CONFIG_POOLS, { name: POOL }, { type: 'merge', body });
  }

  /** Adds a MachineConfig, or changes the one of that name, and gives the config that is rendered for it. */
  change(config: MachineConfig): Promise<MachineConfig> {
    return this.#rendered(async () => {
      const existing = await getIfPresent(this.kube, MACHINE_CONFIGS, { name: config.metadata?.name ?? '' });
      if (existing === undefined) await this.kube.create(MACHINE_CONFIGS, config);
      else await this.kube.update(MACHINE_CONFIGS, { ...existing, ...config, metadata: { ...existing.metadata } });
    });
  }

  /** Takes a MachineConfig away, and gives the config that is rendered without it. */
  remove(name: string): Promise<MachineConfig> {
    return this.#rendered(() => this.kube.delete(MACHINE_CONFIGS, { name }));
  }

  async #rendered(change: () => Promise<unknown>): Promise<MachineConfig> {
    const before = await this.wanted();
    await change();
    await eventually('another config is rendered', async () => (await this.wanted()) !== before);
    return this.config(await this.wanted());
  }

  /**
   * A new machine in the pool, switched on. Its agent runs beside the other services, or, `contained`, as it does in a container: the
   * machine is mounted elsewhere. `slowToHear`: as on a busy machine, it goes down before the agent has heard that it will.
   */
  async addNode(name: string, { contained = false, slowToHear = false } = {}): Promise<SystemdNode> {
    const machine = this.#room.machine(name, {
      layers: this.#layers,
      readOnly: { '/opt/rotunda/node': process.execPath, '/opt/rotunda/bundle': this.#bundle },
    });
    machine.put('/etc/rotunda/kubeconfig', this.#api.kubeconfig, 0o600);
    machine.put(LIVE_KUBECONFIG, await this.#kubeconfigOf(name), 0o600);
    if (slowToHear) machine.put(SYSTEMD_RUN, '#!/bin/sh\n/usr/bin/systemd-run "$@" || exit\nsleep 1\n', 0o755);
    if (contained) machine.put(CONTAINED, `[Service]\nEnvironment=ROOT=${HOST_MOUNT}\nBindPaths=/:${HOST_MOUNT}\n`);
    await this.kube.create(NODES, { metadata: { name, labels: { [`node-role.kubernetes.io/${POOL}`]: '' } } });
    const node = new SystemdNode(machine, this.kube);
    this.nodes.push(node);
    machine.start();
    return node;
  }

  async close(): Promise<void> {
    try {
      await this.#room.close();
    } finally {
      this.#stop.abort();
      await this.#running;
      await this.#cluster.stop();
    }
  }

  /** On the clock of the machines; that of the test cluster is not used. */
  async #startCentralSide(): Promise<void> {
    const { kube } = this;
    await this.setServerCas(this.serverCa);
    await this.#cluster.setSecret(MCO_NAMESPACE, 'node-bootstrapper-token', 'Opaque', { token: 'not-used-here' });
    const deps = { kube, clock: systemClock, events: eventsTo('test', () => {}), log: silentLog, version: VERSION };
    const operator = { ...deps, clock: hurried(OPERATOR_SPEED) };
    this.#running = Promise.all([
      machineConfigOperator({ ...operator, releaseVersion: RELEASE, disruptionPolicies: true }).run(this.#stop.signal),
      machineConfigController({ ...deps, delayMs: GATHER_MS }).run(this.#stop.signal),
    ]);
    await eventually('the pool is rendered', async () => (await this.wanted().catch(() => '')) !== '');
  }

  /** What machines are installed from: our programs, and the first config as the machine-config server gives it. */
  async #makeImage(): Promise<void> {
    const programs = this.#room.layer('programs');
    cpSync(join(IMAGE, 'kubelet'), join(programs, 'usr/bin/kubelet'), { recursive: true });
    const wants = join(programs, 'etc/systemd/system/multi-user.target.wants');
    mkdirSync(wants, { recursive: true });
    for (const unit of ['crio.service', 'machine-config-daemon.service', 'telemetry.service']) {
      cpSync(join(IMAGE, unit), join(programs, 'usr/lib/systemd/system', unit), { recursive: true });
      symlinkSync(`/usr/lib/systemd/system/${unit}`, join(wants, unit));
    }
    mkdirSync(join(programs, HOST_MOUNT));
    const [document] = await Promise.all([this.#firstBoot(), bundleProgram(this.#bundle)]);
    this.#layers = [programs];
    const installed = await this.#room.layerBy('installed', this.#layers, [process.execPath, FIRST_BOOT, document]);
    this.#layers = [installed, programs];
  }

  async #firstBoot(): Promise<string> {
    const path = join(this.#room.dir, 'first-boot.ign');
    const request = { pool: POOL, version: '3.4.0' as const, apiServerUrl: this.#api.url, isFirst: true };
    const document = await firstBootOf(this.kube, request);
    writeFileSync(path, JSON.stringify(document), { mode: 0o600 });
    return path;
  }

  get #bundle(): string {
    return join(this.#room.dir, 'bundle');
  }

  /** Credentials of a kubelet. */
  async #kubeconfigOf(name: string): Promise<string> {
    const user = { name: `system:node:${name}`, groups: ['system:nodes'] };
    const client = await issueClient({ ...issuing(), signer: this.#signer, user });
    const ca = { chain: readCertificates(this.serverCa).certificates, key: this.#signer.key };
    return kubeconfigFor(this.#api.url, ca, client);
  }
}

/** A clock on which time passes faster. */
function hurried(speed: number): Clock {
  const began = Date.now();
  return {
    now: () => new Date(began + (Date.now() - began) * speed),
    until: (at, signal) => systemClock.until(new Date(began + (at.getTime() - began) / speed), signal),
  };
}

function issuing() {
  return { keys: systemKeys, now: new Date(), lifetimeMs: days(1), algorithm: 'P-256' as const };
}
