import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { ConfigMap, Container, Pod, Secret } from 'kubernetes-types/core/v1.d.ts';
import { silentLog } from '../../src/controller/log.ts';
import { CERT_DIRECTORY, DATA_DIRECTORY } from '../../src/etcd/operand/env.ts';
import { parseMetricsProxyOptions, startMetricsProxy } from '../../src/etcd/operand/metrics-proxy.ts';
import type { ReloadingServer } from '../../src/etcd/operand/reloading-server.ts';
import { substituteTokens } from '../../src/staticpod/node/tokens.ts';

/** A control-plane node: an address of its own on the loopback, a directory, and the containers of the static pod as processes. */
export class LocalNode {
  readonly name: string;
  readonly address: string;
  readonly directory: string;
  readonly log: string[] = [];
  /** How often etcd was started. */
  starts = 0;
  revision = 0;
  #pod: Pod | undefined;
  #etcd: ChildProcess | undefined;
  #proxy: Promise<ReloadingServer> | undefined;
  /** Processes that end are started again, as a kubelet does. */
  #keepsRunning = false;
  readonly #binary: string;

  constructor(name: string, address: string, directory: string, binary: string) {
    this.name = name;
    this.address = address;
    this.directory = join(directory, name);
    this.#binary = binary;
    mkdirSync(join(this.directory, 'data'), { recursive: true, mode: 0o700 });
  }

  get isRunning(): boolean {
    return this.#etcd !== undefined && this.#etcd.exitCode === null && this.#etcd.signalCode === null;
  }

  /** What an installer pod does: files first, each replaced as a whole, then the manifest. */
  install(
    manifest: string,
    revision: number,
    objects: { readonly secrets: readonly Secret[]; readonly configMaps: readonly ConfigMap[] },
  ): void {
    this.writeCertificates(objects);
    const text = substituteTokens(Buffer.from(manifest), {
      revision: String(revision),
      nodeName: this.name,
    }).toString();
    this.#pod = JSON.parse(text) as Pod;
    this.revision = revision;
  }

  writeCertificates({
    secrets,
    configMaps,
  }: {
    readonly secrets: readonly Secret[];
    readonly configMaps: readonly ConfigMap[];
  }): void {
    for (const { metadata, data = {} } of secrets) {
      for (const [key, value] of Object.entries(data))
        this.#write(join('secrets', metadata?.name ?? '', key), Buffer.from(value, 'base64'));
    }
    for (const { metadata, data = {} } of configMaps) {
      for (const [key, value] of Object.entries(data))
        this.#write(join('configmaps', metadata?.name ?? '', key), value);
    }
  }

  /** Runs the containers until `stop`. */
  start(): void {
    this.#keepsRunning = true;
    this.#startEtcd();
    const proxy = this.#container('etcd-metrics');
    if (proxy === undefined) return;
    const [, , ...argv] = this.#commandOf(proxy).words;
    this.#proxy = startMetricsProxy(parseMetricsProxyOptions(argv), silentLog);
    this.#proxy.catch((error: unknown) => this.log.push(`${this.name} etcd-metrics: ${String(error)}`));
  }

  async stop(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    this.#keepsRunning = false;
    const proxy = await this.#proxy?.catch(() => undefined);
    await Promise.all([end(this.#etcd, signal), proxy?.stop()]);
    this.#etcd = undefined;
    this.#proxy = undefined;
  }

  /** Everything on its disk is gone, and it is started again. */
  async loseData(): Promise<void> {
    await this.stop('SIGKILL');
    const data = join(this.directory, 'data');
    rmSync(data, { recursive: true, force: true });
    mkdirSync(data, { mode: 0o700 });
    this.start();
  }

  file(path: string): string {
    return join(this.directory, 'certs', path);
  }

  #startEtcd(): void {
    const container = this.#container('etcd');
    if (container === undefined) throw new Error(`node ${this.name} has no manifest`);
    this.starts++;
    const child = this.#spawn(container);
    this.#etcd = child;
    child.once('exit', () => {
      if (!this.#keepsRunning || this.#etcd !== child) return;
      setTimeout(() => {
        if (this.#keepsRunning && this.#etcd === child) this.#startEtcd();
      }, 300).unref();
    });
  }

  #container(name: string): Container | undefined {
    return this.#pod?.spec?.containers.find(container => container.name === name);
  }

  #spawn(container: Container): ChildProcess {
    const { env, words } = this.#commandOf(container);
    const [, ...args] = words;
    const child = spawn(this.#binary, args, {
      env: { PATH: process.env.PATH ?? '', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const keep = (chunk: Buffer) => {
      this.log.push(
        ...chunk
          .toString()
          .split('\n')
          .filter(Boolean)
          .map(line => `${this.name} ${container.name}: ${line}`),
      );
      this.log.splice(0, Math.max(0, this.log.length - 200));
    };
    child.stdout?.on('data', keep);
    child.stderr?.on('data', keep);
    return child;
  }

  #commandOf({ env: variables = [], command = [] }: Container): { env: Record<string, string>; words: string[] } {
    const env: Record<string, string> = {};
    for (const { name, value = '' } of variables) env[name] = this.#onThisMachine(expand(value, env));
    return { env, words: command.map(word => this.#onThisMachine(expand(word, env))) };
  }

  #onThisMachine(text: string): string {
    return text
      .replaceAll(CERT_DIRECTORY, join(this.directory, 'certs'))
      .replaceAll(DATA_DIRECTORY, join(this.directory, 'data'));
  }

  #write(path: string, content: string | Buffer): void {
    const file = this.file(path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(`${file}.new`, content, { mode: 0o600 });
    renameSync(`${file}.new`, file);
  }
}

/** `$(NAME)` as Kubernetes writes it. */
function expand(text: string, env: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\$\(([A-Za-z0-9_]+)\)/g, (word, name: string) => env[name] ?? word);
}

const STOP_LIMIT_MS = 5000;

function end(child: ChildProcess | undefined, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise(resolve => {
    const hard = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS);
    child.once('exit', () => {
      clearTimeout(hard);
      resolve();
    });
    child.kill(signal);
  });
}
