import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { nodeAddress } from '../../src/local/addresses.ts';
import { writeImage } from '../tools/container-image.ts';
import { installPackages } from '../tools/debian.ts';
import { eventuallyDespiteErrors as eventually, PATIENCE_MS } from '../tools/eventually.ts';

const NAMESPACE = 'k8s.io';
const PAUSE = 'localhost/pause:1';
const LAST_WORDS = 3_000;
const COMMAND_LIMIT_MS = PATIENCE_MS;

/** Why containers cannot be run here; undefined when they can. Installs containerd where that is possible. */
export function missingForContainers(): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'containers need root on Linux';
  if (findProgram('containerd') === undefined || findProgram('runc') === undefined) {
    try {
      installPackages('containerd');
    } catch {
      return 'there is no containerd here, and it cannot be installed';
    }
  }
  return findProgram('runc') === undefined ? 'there is no runc here' : undefined;
}

/** A real kubelet without an API, over a containerd of its own, for static pods from images that came from no registry. */
export class KubeletNode {
  readonly address: string;
  readonly #dir: string;
  readonly #children: ChildProcess[] = [];

  private constructor() {
    this.#dir = mkdtempSync(join(tmpdir(), 'rotunda-kubelet-'));
    this.address = nodeAddress(this.#dir, 0);
  }

  /** `images`: by name, the programs that each consists of. The first one is what it runs. */
  static async start(kubelet: string, images: Readonly<Record<string, readonly string[]>>): Promise<KubeletNode> {
    const node = new KubeletNode();
    try {
      await node.#startContainerd();
      const sleep = findProgram('sleep') ?? '/bin/sleep';
      node.#importImage(PAUSE, [sleep], ['infinity']);
      for (const [name, programs] of Object.entries(images)) node.#importImage(name, programs, []);
      await node.#startKubelet(kubelet);
      return node;
    } catch (error) {
      await node.stop();
      throw error;
    }
  }

  /** A directory of this machine that pods can mount. */
  directory(name: string): string {
    const path = join(this.#dir, 'volumes', name);
    mkdirSync(path, { recursive: true });
    return path;
  }

  /** Puts a manifest where the kubelet looks for it; undefined takes it away. */
  manifest(name: string, pod: Pod | undefined): void {
    const path = join(this.#dir, 'manifests', `${name}.yaml`);
    if (pod === undefined) return rmSync(path);
    writeFileSync(join(this.#dir, name), JSON.stringify(pod));
    renameSync(join(this.#dir, name), path);
  }

  /** Processes of containers that run, without those that hold a pod together. */
  running(image: string): number[] {
    const images = new Map(
      this.#ctr('containers', 'ls')
        .split('\n')
        .slice(1)
        .map(line => line.split(/\s+/) as [string, string]),
    );
    return this.#ctr('tasks', 'ls')
      .split('\n')
      .slice(1)
      .map(line => line.split(/\s+/))
      .filter(([id = '', , status]) => status === 'RUNNING' && images.get(id) === image)
      .map(([, pid]) => Number(pid));
  }

  logOf(program: 'kubelet' | 'containerd'): string {
    return readFileSync(join(this.#dir, `${program}.log`), 'utf8').slice(-LAST_WORDS);
  }

  async stop(): Promise<void> {
    const [containerd, kubelet] = this.#children;
    if (kubelet !== undefined) await end(kubelet);
    if (containerd !== undefined) {
      const tasks = () => this.#ctr('tasks', 'ls', '-q').split('\n').filter(Boolean);
      for (const id of tasks()) this.#ctr('tasks', 'kill', '-s', 'SIGKILL', id);
      await eventually('containers to end', () => {
        for (const id of tasks()) this.#ctr('tasks', 'rm', '-f', id);
        return tasks().length === 0;
      });
      await end(containerd);
    }
    const mounts = readFileSync('/proc/mounts', 'utf8')
      .split('\n')
      .map(line => line.split(' ')[1] ?? '');
    for (const path of mounts.filter(mount => mount.startsWith(`${this.#dir}/`)).toReversed()) {
      execFileSync('umount', ['-l', path], { stdio: 'ignore' });
    }
    rmSync(this.#dir, { recursive: true, force: true });
  }

  async #startContainerd(): Promise<void> {
    const at = (name: string) => JSON.stringify(join(this.#dir, name));
    const config = [
      'version = 2',
      `root = ${at('containerd')}`,
      `state = ${at('state')}`,
      '[grpc]',
      `address = ${at('containerd.sock')}`,
      '[plugins."io.containerd.internal.v1.opt"]',
      `path = ${at('opt')}`,
      '[plugins."io.containerd.grpc.v1.cri"]',
      // Machines in machines often may not make a process less likely to be killed than its parent.
      'restrict_oom_score_adj = true',
      `sandbox_image = "${PAUSE}"`,
      '[plugins."io.containerd.grpc.v1.cri".containerd]',
      'snapshotter = "native"',
    ];
    writeFileSync(join(this.#dir, 'containerd.toml'), config.join('\n'));
    this.#spawn('containerd', 'containerd', ['-c', join(this.#dir, 'containerd.toml')]);
    await eventually(
      'containerd answers',
      () => this.#ctr('version') !== '',
      () => this.logOf('containerd'),
    );
  }

  async #startKubelet(kubelet: string): Promise<void> {
    mkdirSync(join(this.#dir, 'manifests'));
    const config = {
      apiVersion: 'kubelet.config.k8s.io/v1beta1',
      kind: 'KubeletConfiguration',
      staticPodPath: join(this.#dir, 'manifests'),
      podLogsDir: join(this.#dir, 'logs'),
      containerRuntimeEndpoint: `unix://${join(this.#dir, 'containerd.sock')}`,
      authentication: { anonymous: { enabled: false }, webhook: { enabled: false } },
      authorization: { mode: 'AlwaysAllow' },
      address: this.address,
      healthzBindAddress: this.address,
      cgroupDriver: 'cgroupfs',
      cgroupsPerQOS: false,
      enforceNodeAllocatable: [],
      failCgroupV1: false,
      failSwapOn: false,
      fileCheckFrequency: '1s',
    };
    writeFileSync(join(this.#dir, 'kubelet.yaml'), JSON.stringify(config));
    const flags = { config: 'kubelet.yaml', 'root-dir': 'kubelet', 'cert-dir': 'pki' };
    const words = Object.entries(flags).map(([flag, path]) => `--${flag}=${join(this.#dir, path)}`);
    this.#spawn('kubelet', kubelet, [...words, '--hostname-override=kubelet']);
    await eventually(
      'the kubelet says it is well',
      async () => (await fetch(`http://${this.address}:10248/healthz`)).ok,
      () => this.logOf('kubelet'),
    );
  }

  #importImage(name: string, programs: readonly string[], args: readonly string[]): void {
    const tar = join(this.#dir, 'image.tar');
    writeImage(tar, name, { programs, args });
    this.#ctr('images', 'import', '--snapshotter', 'native', tar);
    rmSync(tar);
  }

  #ctr(...words: string[]): string {
    const args = ['-a', join(this.#dir, 'containerd.sock'), '-n', NAMESPACE, ...words];
    return execFileSync('ctr', args, {
      encoding: 'utf8',
      timeout: COMMAND_LIMIT_MS,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
  }

  #spawn(name: string, program: string, args: readonly string[]): void {
    const log = openSync(join(this.#dir, `${name}.log`), 'a', 0o600);
    this.#children.push(spawn(program, args, { stdio: ['ignore', log, log] }));
    closeSync(log);
  }
}

function findProgram(name: string): string | undefined {
  return [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/sbin']
    .map(directory => join(directory, name))
    .find(path => existsSync(path));
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), COMMAND_LIMIT_MS / 4);
  await ended;
  clearTimeout(timer);
}
