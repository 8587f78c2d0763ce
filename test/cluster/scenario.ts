import { CLUSTER_OPERATORS } from '../../src/controller/cluster-operator-status.ts';
import { ETCDS } from '../../src/etcd/resources.ts';
import { systemClock } from '../../src/kube/clock.ts';
import type { Kube } from '../../src/kube/port.ts';
import { NODES, SECRETS } from '../../src/kube/resource.ts';
import { KUBE_API_SERVERS } from '../../src/kube-apiserver/resources.ts';
import { provideClusterInputs } from '../../src/local/cluster-inputs.ts';
import { CONTROLLER_CONFIGS } from '../../src/machine-config-api/controller-config.ts';
import { MACHINE_CONFIG_POOLS } from '../../src/machine-config-api/machine-config.ts';
import {
  CONTROLLER_CONFIG_NAME,
  LAST_SYNCED_CONTROLLER_CONFIG,
  MCO_NAMESPACE,
} from '../../src/machine-config-api/names.ts';
import { systemKeys } from '../../src/pki/keys.ts';
import { eventuallyDespiteErrors as eventually } from '../tools/eventually.ts';
import { type Component, type ComponentProcess, Installed, LEADING, type Needs } from './installed.ts';
import { PretendKubelet } from './pretend-kubelet.ts';

export const MASTER = 'master-0';
export const WORKER = 'worker-0';
export const SERVER: Component = {
  command: 'machine-config-server',
  namespace: MCO_NAMESPACE,
  podLabel: 'k8s-app=machine-config-server',
};
export const DAEMON: Component = { command: 'machine-config-daemon', namespace: MCO_NAMESPACE };
const CLUSTER = { name: 'cluster' };

export interface ScenarioOptions {
  /** Flags of every component that leads. */
  readonly election?: readonly string[] | undefined;
  /** What is run; the sources when absent. */
  readonly program?: string | undefined;
}

/** All components at work on one real API, each as its own ServiceAccount; a node of each role, their kubelets pretended. */
export class Scenario {
  readonly installed: Installed;
  readonly kube: Kube;
  readonly etcdKubelet: PretendKubelet;
  readonly apiserverKubelet: PretendKubelet;
  /** What runs now, by command. */
  readonly processes = new Map<string, ComponentProcess>();
  readonly #election: readonly string[];

  private constructor(installed: Installed, { election = [] }: ScenarioOptions) {
    this.installed = installed;
    this.kube = installed.cluster.kube;
    this.#election = election;
    this.etcdKubelet = new PretendKubelet(this.kube, 'openshift-etcd', 'etcd-pod');
    this.apiserverKubelet = new PretendKubelet(this.kube, 'openshift-kube-apiserver', 'kube-apiserver-pod');
  }

  static async start(needs: Needs, options: ScenarioOptions = {}): Promise<Scenario> {
    const installed = await Installed.start(needs, { program: options.program });
    try {
      const scenario = new Scenario(installed, options);
      await installed.node(MASTER, 'master');
      await provideClusterInputs({
        kube: scenario.kube,
        clock: systemClock,
        keys: systemKeys,
        // Three make it highly available: without startup monitor, with guards.
        controlPlane: new Map([MASTER, 'master-1', 'master-2'].map(name => [name, name])),
        hasEtcd: true,
      });
      scenario.etcdKubelet.start();
      scenario.apiserverKubelet.start();
      return scenario;
    } catch (error) {
      await installed.stop();
      throw error;
    }
  }

  /** Begins a cluster: with nobody to say otherwise, etcd is founded on the one node. */
  async etcdOperator(): Promise<void> {
    await this.#lead('etcd-operator');
    await eventually('revision 1 of etcd on its node', async () => {
      const { status } = await this.kube.get(ETCDS, CLUSTER);
      return status?.nodeStatuses?.some(({ currentRevision }) => (currentRevision ?? 0) >= 1) || undefined;
    });
  }

  async kubeApiserverOperator(): Promise<void> {
    await this.#lead('kube-apiserver-operator');
    await eventually('kube-apiserver to be available', async () => {
      const { status } = await this.kube.get(CLUSTER_OPERATORS, { name: 'kube-apiserver' });
      return status?.conditions?.some(({ type, status: is }) => type === 'Available' && is === 'True') || undefined;
    });
    await eventually('nothing to be degraded', async () => {
      const { status } = await this.kube.get(KUBE_API_SERVERS, CLUSTER);
      const isDegraded = ({ type, status: is }: { type: string; status: string }) =>
        type.endsWith('Degraded') && is === 'True';
      const degraded = (status?.conditions ?? []).filter(isDegraded);
      if (degraded.length > 0) throw new Error(JSON.stringify(degraded));
      return true;
    });
  }

  async machineConfig(): Promise<void> {
    await this.#lead('machine-config-operator');
    await this.#lead('machine-config-controller');
    for (const name of ['master', 'worker']) {
      await eventually(`a rendered config of pool ${name}`, async () => {
        const { spec } = await this.kube.get(MACHINE_CONFIG_POOLS, { name });
        return spec?.configuration?.name || undefined;
      });
    }
  }

  /** Gives the port of the server. */
  async machineConfigServer(): Promise<string> {
    const key = { namespace: MCO_NAMESPACE, name: 'machine-config-server-tls' };
    const { data = {} } = await this.kube.get(SECRETS, key);
    const fileOf = (name: string) =>
      this.installed.file(`mcs-${name}`, Buffer.from(data[name] ?? '', 'base64').toString());
    const serving = ['--cert', fileOf('tls.crt'), '--key', fileOf('tls.key'), '--host', '127.0.0.1', '--port', '0'];
    const server = await this.#start(SERVER, serving);
    await server.says('serving first configs');
    return /"port":(\d+)/.exec(server.log)?.[1] ?? '';
  }

  /** The agent of the worker, with the credentials of its kubelet; on a directory. */
  async agent(): Promise<void> {
    await this.installed.node(WORKER, 'worker');
    const kubelet = await this.installed.cluster.kubeconfigOf(`system:node:${WORKER}`, ['system:nodes']);
    const where = ['--local', '--root', this.installed.directory('node'), '--node-name', WORKER];
    const ports = ['--metrics-listen', '127.0.0.1:0', '--health-listen', '127.0.0.1:0'];
    const credentials = ['--node-kubeconfig', kubelet];
    await this.#start(DAEMON, [...where, ...credentials, ...ports, '--no-kubelet-healthz-enabled']);
    const { metadata } = await this.kube.get(CONTROLLER_CONFIGS, { name: CONTROLLER_CONFIG_NAME });
    await eventually('the agent to have synced', async () => {
      const { annotations = {} } = (await this.kube.get(NODES, { name: WORKER })).metadata ?? {};
      const synced = annotations[LAST_SYNCED_CONTROLLER_CONFIG];
      return (synced !== undefined && Number(synced) >= Number(metadata?.resourceVersion)) || undefined;
    });
  }

  async stop(): Promise<void> {
    await this.etcdKubelet.stop();
    await this.apiserverKubelet.stop();
    await this.installed.stop();
  }

  async #lead(command: string): Promise<void> {
    const component = LEADING.find(each => each.command === command);
    if (component === undefined) throw new RangeError(`no component leads as ${command}`);
    const started = await this.#start(component, this.#election);
    await started.says('"leading"');
  }

  async #start(component: Component, args: readonly string[]): Promise<ComponentProcess> {
    const started = await this.installed.startComponent(component, args);
    this.processes.set(component.command, started);
    return started;
  }
}
