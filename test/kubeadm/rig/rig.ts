import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { HttpKube } from '../../../src/kube/client.ts';
import { loadAccess } from '../../../src/kube/kubeconfig.ts';
import { NODES } from '../../../src/kube/resource.ts';
import { BUILT_PROGRAMS } from '../../../src/local/real/built-programs.ts';
import { type Binaries, findBinaries } from '../../cluster/binaries.ts';
import type { ClusterFields } from '../../cluster/kubeadm-program.ts';
import { type ImageContent, writeImage } from '../../tools/container-image.ts';
import { eventuallyDespiteErrors } from '../../tools/eventually.ts';
import { nspawnProblem, type Ran } from '../../tools/nspawn.ts';
import { imagesConfiguration, initConfiguration, SOCKET, TOLERATED } from './kubeadm-files.ts';
import { type RigImages, rigImages } from './rig-images.ts';
import { type Place, RigNetwork } from './rig-network.ts';
import { RigNode, type Role } from './rig-node.ts';
import { RigRoom, rigRoot } from './rig-os.ts';

export interface RigOptions {
  /** How many control-plane nodes there are. */
  readonly controlPlanes?: number;
  readonly workers?: number;
  /** Further fields of ClusterConfiguration. */
  readonly cluster?: ClusterFields;
  /** What of this machine is seen on all nodes: path there, path here. */
  readonly readOnly?: Readonly<Record<string, string>>;
  /** Is told how it goes on. */
  readonly tell?: (line: string) => void;
}

const INIT_FILE = '/root/kubeadm.yaml';
const ADMIN = '/etc/kubernetes/admin.conf';
const SHORT: Readonly<Record<Role, string>> = { 'control-plane': 'cp', worker: 'worker' };

/** Why there can be no rig here; undefined: there can. Installs and builds what a machine lacks, but not the programs of Kubernetes. */
export async function rigProblem(): Promise<string | undefined> {
  const binaries = findBinaries(BUILT_PROGRAMS);
  if ('missing' in binaries) return binaries.missing;
  const problem = nspawnProblem();
  if (problem !== undefined) return problem;
  try {
    await rigRoot();
    return undefined;
  } catch (error) {
    return `no root directory for machines could be built: ${(error as Error).message}`;
  }
}

/** A cluster that the real kubeadm makes, on machines with systemd, containerd and real kubelets. All of it dies with this process. */
export async function startRig({
  controlPlanes = 1,
  workers = 0,
  cluster = {},
  readOnly = {},
  tell = () => {},
}: RigOptions = {}): Promise<Rig> {
  const binaries = findBinaries(BUILT_PROGRAMS);
  if ('missing' in binaries) throw new Error(binaries.missing);
  const began = performance.now();
  const say = (line: string) => tell(`${((performance.now() - began) / 1000).toFixed(1)} s: ${line}`);
  const rig = await Rig.prepare(new RigRoom(await rigRoot(), binaries, readOnly), binaries, cluster, say);
  try {
    await rig.found();
    for (let count = 1; count < controlPlanes; count++) await rig.join('control-plane');
    for (let count = 0; count < workers; count++) await rig.join('worker');
    return rig;
  } catch (error) {
    await rig.close();
    throw error;
  }
}

export class Rig {
  readonly nodes: RigNode[] = [];
  /** A copy of the admin.conf that kubeadm made, such as people have; the API it names can be reached from here. */
  readonly kubeconfig: string;
  /** Where everybody finds the API: `host:port`, a load balancer. */
  readonly endpoint: string;
  readonly #room: RigRoom;
  readonly #network: RigNetwork;
  readonly #images: RigImages;
  readonly #cluster: ClusterFields;
  readonly #tell: (line: string) => void;
  /** Files of further images. */
  readonly #added: string[] = [];
  #kube: HttpKube | undefined;
  /** With which certificates are uploaded for those who join. */
  readonly #certificateKey = randomBytes(32).toString('hex');

  private constructor(
    room: RigRoom,
    network: RigNetwork,
    images: RigImages,
    cluster: ClusterFields,
    tell: (line: string) => void,
  ) {
    this.#room = room;
    this.#network = network;
    this.#images = images;
    this.#cluster = cluster;
    this.#tell = tell;
    this.kubeconfig = join(room.dir, 'admin.conf');
    this.endpoint = network.endpoint;
  }

  /** Everything but nodes. */
  static async prepare(
    room: RigRoom,
    binaries: Binaries,
    cluster: ClusterFields,
    tell: (line: string) => void,
  ): Promise<Rig> {
    try {
      const config = join(room.dir, 'images.yaml');
      writeFileSync(config, imagesConfiguration(cluster));
      const listed = execFileSync(binaries.kubeadm, ['config', 'images', 'list', '--config', config], {
        encoding: 'utf8',
      });
      const images = await rigImages(room.base, listed.trim().split('\n'), binaries);
      const rig = new Rig(room, await RigNetwork.start(), images, cluster, tell);
      rig.#tell('images and network are there');
      return rig;
    } catch (error) {
      await room.close();
      throw error;
    }
  }

  /** A client with the rights of admin.conf. */
  get kube(): HttpKube {
    if (this.#kube === undefined) throw new Error('the rig has no API yet');
    return this.#kube;
  }

  /** `kubeadm init` on the first node. */
  async found(): Promise<RigNode> {
    const { place, node } = await this.#boot('control-plane');
    await write(node, INIT_FILE, initConfiguration(place, this.endpoint, this.#certificateKey, this.#cluster));
    this.#network.serve(node.address);
    await must(node, ['kubeadm', 'init', '--config', INIT_FILE]);
    copyFileSync(join(node.root, ADMIN), this.kubeconfig);
    this.#kube = new HttpKube(await loadAccess({ path: this.kubeconfig }));
    this.#tell(`kubeadm init is done on ${node.name}`);
    await this.#ready(node);
    return node;
  }

  /** What kubeadm tells people to run on a machine so that it joins. */
  async joinCommand(role: Role): Promise<string[]> {
    const first = this.#first;
    const create = ['token', 'create', '--print-join-command'];
    if (role === 'control-plane') {
      // Kept for two hours, and as they were: whoever joins gets what there is now.
      await must(first, ['kubeadm', 'init', 'phase', 'upload-certs', '--upload-certs', '--config', INIT_FILE]);
      create.push('--certificate-key', this.#certificateKey);
    }
    const printed = await first.output('kubeadm', ...create);
    return printed.split(/\s+/);
  }

  /** Another machine, which joins; with a command that was printed before, or a new one. */
  async join(role: Role, command?: readonly string[]): Promise<RigNode> {
    const words = command ?? (await this.joinCommand(role));
    const { place, node } = await this.#boot(role);
    const own = ['--node-name', place.name, '--cri-socket', SOCKET, '--ignore-preflight-errors', TOLERATED.join(',')];
    const address = role === 'control-plane' ? ['--apiserver-advertise-address', place.address] : [];
    await must(node, [...words, ...own, ...address]);
    if (role === 'control-plane') this.#network.serve(place.address);
    this.#tell(`kubeadm join is done on ${node.name}`);
    await this.#ready(node);
    return node;
  }

  /** Gives all nodes, and those that join later, an image of our own. A pod must not ask for another one (`imagePullPolicy`). */
  async addImage(name: string, content: ImageContent): Promise<void> {
    const file = join(this.#room.dir, `image-${this.#added.length}.tar`);
    writeImage(file, name, content);
    this.#added.push(file);
    for (const node of this.nodes) await node.importImage(file);
  }

  /** Runs kubeadm on a node; gives what it printed, whatever its exit code. */
  kubeadm(node: RigNode, args: readonly string[]): Promise<Ran> {
    return node.run(['kubeadm', ...args]);
  }

  /** Ends everything, and removes all there is of it. */
  async close(): Promise<void> {
    await this.#kube?.close();
    await Promise.all(this.nodes.map(node => node.switchOff()));
    await this.#room.close();
    await this.#network.close();
  }

  get #first(): RigNode {
    const [first] = this.nodes;
    if (first === undefined) throw new Error('the rig has no nodes');
    return first;
  }

  async #boot(role: Role): Promise<{ place: Place; node: RigNode }> {
    const index = this.nodes.length;
    const number = this.nodes.filter(node => node.role === role).length;
    const place = this.#network.place(`${SHORT[role]}-${number}`, index);
    const machine = await this.#room.node(place, this.#network.bridge, this.#images);
    const node = new RigNode(place, role, machine, this.#network);
    this.nodes.push(node);
    await node.switchOn();
    for (const file of this.#added) await node.importImage(file);
    this.#tell(`${node.name} has booted`);
    return { place, node };
  }

  async #ready(node: RigNode): Promise<void> {
    // A copy would refuse a kube-apiserver that shows a certificate of a newer CA.
    const kube = new HttpKube(await loadAccess({ path: join(this.#first.root, ADMIN) }));
    try {
      await eventuallyDespiteErrors(
        `node ${node.name} to be ready`,
        async () => {
          const { status } = await kube.get(NODES, { name: node.name });
          return status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True');
        },
        () => node.log(),
      );
    } finally {
      await kube.close();
    }
    this.#tell(`${node.name} is ready`);
  }
}

/** Runs what takes a while; its last words, and those of the kubelet, where it fails. */
async function must(node: RigNode, command: readonly string[]): Promise<void> {
  const { code, stdout, stderr } = await node.run(command);
  if (code === 0) return;
  throw new Error(
    `${command.slice(0, 2).join(' ')} on ${node.name} ended with ${code}: ${stdout}${stderr}\n${await node.log()}`,
  );
}

async function write(node: RigNode, path: string, text: string): Promise<void> {
  writeFileSync(join(node.root, path), text, { mode: 0o600 });
}
