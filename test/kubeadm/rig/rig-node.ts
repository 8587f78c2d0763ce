import { copyFileSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../../tools/eventually.ts';
import type { Machine, Ran } from '../../tools/nspawn.ts';
import type { Place, RigNetwork } from './rig-network.ts';

export type Role = 'control-plane' | 'worker';

/** The kubelet of a node, a service of its systemd. */
export interface RigKubelet {
  start(): Promise<void>;
  stop(): Promise<void>;
  restart(): Promise<void>;
  isRunning(): Promise<boolean>;
  /** As this machine knows it; undefined while it does not run. */
  readonly pid: number | undefined;
}

const KUBELET = 'kubelet.service';
const SHOWN_LOG_LINES = 40;

/** A machine with systemd, containerd and a kubelet. */
export class RigNode {
  readonly name: string;
  readonly role: Role;
  readonly address: string;
  readonly kubelet: RigKubelet;
  readonly #place: Place;
  readonly #network: RigNetwork;
  readonly #machine: Machine;

  constructor(place: Place, role: Role, machine: Machine, network: RigNetwork) {
    this.name = place.name;
    this.role = role;
    this.address = place.address;
    this.#place = place;
    this.#network = network;
    this.#machine = machine;
    this.kubelet = kubeletOf(this, machine);
  }

  /** Its root directory, as this machine sees it; another one after a boot. Absolute links in it lead astray: see `read`. */
  get root(): string {
    return this.#machine.root;
  }

  /** Runs a program inside, as root; gives what it printed, whatever its exit code. */
  run(command: readonly string[], { timeoutMs }: { readonly timeoutMs?: number } = {}): Promise<Ran> {
    return this.#machine.run(command, timeoutMs);
  }

  /** The same for programs that must succeed; gives what it printed, without the last line break. */
  async output(...command: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(command);
    if (code === 0) return stdout.trim();
    throw new Error(`${command.join(' ')} on ${this.name} ended with ${code}: ${stderr}${stdout}`);
  }

  /** What a file holds; links are followed as the node follows them. */
  async read(path: string): Promise<string> {
    const { code, stdout, stderr } = await this.run(['cat', path]);
    if (code !== 0) throw new Error(`${path} of ${this.name}: ${stderr}`);
    return stdout;
  }

  /** Gives its containerd an image: a file of this machine, such as `writeImage` makes. */
  async importImage(file: string): Promise<void> {
    const inside = '/var/tmp/image.tar';
    copyFileSync(file, join(this.root, inside));
    await this.output('ctr', '-n', 'k8s.io', 'images', 'import', inside);
    rmSync(join(this.root, inside));
  }

  /** Kills the processes of a program, such as `kube-apiserver`, as if it had crashed. Gives how many there were. */
  async kill(program: string, signal: NodeJS.Signals = 'SIGKILL'): Promise<number> {
    const { stdout } = await this.run(['pidof', program]);
    const pids = stdout.split(' ').map(Number).filter(Boolean);
    if (pids.length > 0) await this.run(['kill', '-s', signal.slice('SIG'.length), ...pids.map(String)]);
    return pids.length;
  }

  /** Pulls the plug and puts it in again; resolves when its services have been started. */
  async cutPower(): Promise<void> {
    await this.switchOff();
    await this.switchOn();
  }

  /** Switches it off at once; its disk stays. */
  async switchOff(): Promise<void> {
    await this.#machine.stop();
    this.#network.unplug(this.#place);
  }

  async switchOn(): Promise<void> {
    this.#machine.start();
    await this.#booted();
  }

  async #booted(): Promise<void> {
    await eventually(`${this.name} to boot`, async () => {
      if (this.#machine.ended !== undefined) throw new Error(this.#machine.ended);
      // Whoever enters too early meets a root that is still being made, and does not survive it.
      const state = await this.output('systemctl', 'is-system-running').catch(() => undefined);
      return state === 'running';
    });
  }

  /** What its kubelet said last, for whoever looks for a reason. */
  async log(unit = KUBELET): Promise<string> {
    const { stdout } = await this.run([
      'journalctl',
      '-u',
      unit,
      '-n',
      String(SHOWN_LOG_LINES),
      '-o',
      'cat',
      '--no-pager',
    ]);
    return stdout;
  }
}

function kubeletOf(node: RigNode, machine: Machine): RigKubelet {
  const systemctl = async (verb: string) => void (await node.output('systemctl', verb, KUBELET));
  return {
    start: () => systemctl('start'),
    stop: () => systemctl('stop'),
    restart: () => systemctl('restart'),
    isRunning: async () => (await node.run(['systemctl', 'is-active', '--quiet', KUBELET])).code === 0,
    get pid() {
      // The kernel writes the numbers that the reader knows them by; there is no such group while the service does not run.
      const path = join(machine.root, 'sys/fs/cgroup/systemd/system.slice', KUBELET, 'cgroup.procs');
      return existsSync(path) ? Number(readFileSync(path, 'utf8').split('\n')[0]) || undefined : undefined;
    },
  };
}
