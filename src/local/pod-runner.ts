import { existsSync, mkdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ConfigMap, Container, Pod, PodStatus, Secret } from 'kubernetes-types/core/v1.d.ts';
import { errorText } from '../controller/aggregate-error.ts';
import type { Log } from '../controller/log.ts';
import { type Clock, sleep } from '../kube/clock.ts';
import { seconds } from '../kube/duration.ts';
import type { EventRecorder } from '../kube/events.ts';
import { getIfPresent } from '../kube/get.ts';
import type { Kube } from '../kube/port.ts';
import { CONFIG_MAPS, SECRETS } from '../kube/resource.ts';
import { PathMap } from '../staticpod/node/path-map.ts';
import { ContainerRunner, type Launch, terminationLogOf } from './container.ts';
import { containerEnv, type EnvSources, expand } from './container-env.ts';
import { podStatus } from './pod-status.ts';
import type { Programs } from './programs.ts';
import type { RestartPolicy } from './restart-policy.ts';
import { hasProjectedVolumes, type IssueToken, PodVolumes } from './volumes.ts';

/** What all pods of a node share. */
export interface PodDeps {
  readonly root: string;
  readonly nodeName: string;
  readonly address: string;
  readonly kube: Kube;
  readonly clock: Clock;
  readonly log: Log;
  readonly programs: Programs;
  /** A directory for PATH that leads to the programs. */
  readonly shims: string;
  /** Given to every container: where the API is, and what else the cluster says. */
  readonly env: Readonly<Record<string, string>>;
  /** The kubeconfig for pods that have no service account of their own. */
  readonly kubeconfig?: string | undefined;
  readonly issueToken?: IssueToken | undefined;
}

const ACCOUNT_DIRECTORY = '/var/run/secrets/kubernetes.io/serviceaccount';
const TERMINATION_LOG = '/dev/termination-log';
/** What a container has where nobody says otherwise; behind the programs of the node, and what `rotunda up` was started with. */
const STANDARD_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
/** A container may write to the trust store of its image; here that would be the one of the machine. */
const TRUST_STORE = '/etc/pki/ca-trust/extracted/pem';
const GRACE_SECONDS = 30;
const VOLUME_RETRY_MS = seconds(2);

/** Where the files of a pod are below the root of its node. */
export function podDirectory(root: string, uid: string): string {
  return join(root, 'var/lib/kubelet/pods', uid);
}

/** What the processes of one node carry in their environment. */
export function markPrefix(root: string): string {
  return `${root}//`;
}

/** Runs one pod: volumes, then init containers one after the other, then all containers. */
export class PodRunner {
  readonly pod: Pod;
  /** For a static pod this is made of its content: a changed manifest is another pod. */
  readonly uid: string;
  readonly #deps: PodDeps;
  readonly #volumes: PodVolumes;
  readonly #init: ContainerRunner[];
  readonly #main: ContainerRunner[];
  readonly #startTime: Date;
  readonly #onChange: () => void;
  readonly #events: EventRecorder;
  readonly #stop = new AbortController();
  #trouble: { reason: string; message: string } | undefined;
  #run: Promise<void> | undefined;
  #refreshed: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(pod: Pod, uid: string, deps: PodDeps, events: EventRecorder, onChange: () => void) {
    this.pod = pod;
    this.uid = uid;
    this.#deps = deps;
    this.#events = events;
    this.#onChange = onChange;
    this.#startTime = deps.clock.now();
    this.#volumes = new PodVolumes({
      ...this.#sources(),
      root: deps.root,
      podDir: this.#directory,
      clock: deps.clock,
      issueToken: deps.issueToken,
    });
    const policy = (pod.spec?.restartPolicy ?? 'Always') as RestartPolicy;
    // An init container that succeeded is not run again; one that failed is, unless nothing in the pod ever is.
    const initPolicy = policy === 'Never' ? 'Never' : 'OnFailure';
    this.#init = (pod.spec?.initContainers ?? []).map(container => this.#runner(container, initPolicy));
    this.#main = (pod.spec?.containers ?? []).map(container => this.#runner(container, policy));
  }

  /** Whether something runs that only stands in for the real program. */
  get hasStandIn(): boolean {
    const containers = [...(this.pod.spec?.initContainers ?? []), ...(this.pod.spec?.containers ?? [])];
    return containers.some(container => this.#deps.programs.resolve(container)?.isStandIn === true);
  }

  get graceMs(): number {
    return seconds(this.pod.spec?.terminationGracePeriodSeconds ?? GRACE_SECONDS);
  }

  container(name: string): ContainerRunner | undefined {
    return [...this.#init, ...this.#main].find(container => container.name === name);
  }

  status(previous?: PodStatus): PodStatus {
    const { clock, address } = this.#deps;
    return podStatus(
      this.pod,
      {
        init: this.#init.map(container => container.snapshot()),
        main: this.#main.map(container => container.snapshot()),
        address,
        startTime: this.#startTime,
        now: clock.now(),
        isStopped: this.#isStopped,
        trouble: this.#trouble,
      },
      previous,
    );
  }

  start(): void {
    this.#run ??= this.#runAll().catch((error: unknown) => {
      this.#deps.log.error({ err: error, pod: this.pod.metadata?.name }, 'pod stopped by a mistake in the program');
    });
  }

  /** Stops all containers; `for now` when the node stops and the pod itself is not over. */
  async stop(graceMs: number = this.graceMs, until: 'for good' | 'for now' = 'for good'): Promise<void> {
    this.#stop.abort();
    await Promise.all([...this.#init, ...this.#main].map(container => container.stop(graceMs)));
    await this.#run;
    this.#isStopped = until === 'for good';
    this.#onChange();
  }

  /** Brings volumes that come from the API up to date. */
  async refresh(): Promise<void> {
    if (!hasProjectedVolumes(this.pod) || this.#stop.signal.aborted) return;
    const refreshing = this.#volumes.prepare();
    this.#refreshed = Promise.allSettled([this.#refreshed, refreshing]).then(() => {});
    await refreshing;
  }

  /** Removes everything the pod had on the disk. */
  async discard(): Promise<void> {
    // What is under way would write below what is being removed.
    await this.#refreshed;
    await rm(this.#directory, { recursive: true, force: true });
    await rm(this.#logDirectory, { recursive: true, force: true });
  }

  async #runAll(): Promise<void> {
    // Where everything has to begin anew, what prepares for it does too.
    const beginsAnew =
      this.#main.some(container => container.willStart) && !this.#main.some(container => container.isAlive);
    if (beginsAnew) for (const container of this.#init) container.forget();
    await this.#prepareVolumes();
    for (const container of this.#init) {
      if (this.#stop.signal.aborted) return;
      await container.run();
      if (container.snapshot().state.terminated?.exitCode !== 0) return;
    }
    if (this.#stop.signal.aborted) return;
    await Promise.all(this.#main.map(container => container.run()));
  }

  async #prepareVolumes(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      try {
        await this.#volumes.prepare();
        if (this.#trouble !== undefined) this.#say(undefined);
        return;
      } catch (error) {
        const message = errorText(error);
        if (this.#trouble?.message !== message) {
          this.#events.event('Warning', 'FailedMount', message);
          this.#say({ reason: 'FailedMount', message });
        }
        await sleep(this.#deps.clock, VOLUME_RETRY_MS, this.#stop.signal).catch(() => {});
      }
    }
  }

  #say(trouble: { reason: string; message: string } | undefined): void {
    this.#trouble = trouble;
    this.#onChange();
  }

  #runner(container: Container, policy: RestartPolicy): ContainerRunner {
    const { root, clock, address } = this.#deps;
    const { name = '', namespace = '' } = this.pod.metadata ?? {};
    return new ContainerRunner({
      container,
      policy,
      podText: `${name}_${namespace}(${this.uid})`,
      mark: `${markPrefix(root)}${this.uid}/${container.name}`,
      directory: this.#containerDirectory(container),
      logDirectory: join(this.#logDirectory, container.name),
      address,
      graceMs: this.graceMs,
      clock,
      launch: () => this.#launch(container),
      onChange: () => this.#onChange(),
      event: (type, reason, message) => this.#events.event(type, reason, message),
    });
  }

  async #launch(container: Container): Promise<Launch> {
    const { programs, root } = this.#deps;
    const directory = this.#containerDirectory(container);
    const mounts = this.#volumes.mounts(container);
    const terminationLog = {
      inside: container.terminationMessagePath ?? TERMINATION_LOG,
      outside: terminationLogOf(directory),
    };
    const trustStore = { inside: TRUST_STORE, outside: join(directory, 'trust-store') };
    mkdirSync(trustStore.outside, { recursive: true });
    const paths = new PathMap([trustStore, terminationLog, ...mounts]);
    const wanted = await containerEnv(container, this.#sources());
    const words = (list: readonly string[] = []) => list.map(word => paths.rewrite(expand(word, wanted)));
    const { command, args, image = '' } = container;
    const resolved = programs.resolve({ image, ...(command ? { command: words(command) } : {}), args: words(args) });
    if (resolved === undefined)
      throw new Error(`there is no program for the image ${JSON.stringify(image)} and the container has no command`);
    const work = join(directory, 'work');
    mkdirSync(work, { recursive: true });
    const inside = container.workingDir === undefined ? undefined : paths.outside(container.workingDir);
    const account = mounts.some(mount => mount.inside === ACCOUNT_DIRECTORY)
      ? paths.outside(ACCOUNT_DIRECTORY)
      : undefined;
    const env = {
      PATH: `${this.#deps.shims}:${process.env.PATH ?? ''}:${STANDARD_PATH}`,
      HOME: work,
      TMPDIR: work,
      HOSTNAME: this.pod.metadata?.name ?? '',
      ...this.#deps.env,
      ROTUNDA_NODE_ROOT: root,
      ROTUNDA_NODE_ADDRESS: this.#deps.address,
      ROTUNDA_PATH_MAP: paths.toEnv(),
      ROTUNDA_TERMINATION_LOG: terminationLog.outside,
      ...(account === undefined ? {} : { ROTUNDA_SERVICE_ACCOUNT_DIR: account }),
      ...(account === undefined && this.#deps.kubeconfig !== undefined
        ? { ROTUNDA_KUBECONFIG: this.#deps.kubeconfig }
        : {}),
      ...Object.fromEntries(Object.entries(wanted).map(([name, value]) => [name, paths.rewrite(value)])),
    };
    const cwd = inside !== undefined && existsSync(inside) ? inside : work;
    return { argv: resolved.argv, env, cwd, rewrite: text => paths.rewrite(expand(text, wanted)) };
  }

  #sources(): EnvSources {
    const { kube, nodeName, address } = this.#deps;
    const namespace = this.pod.metadata?.namespace ?? '';
    return {
      pod: this.pod,
      nodeName,
      address,
      secret: (name): Promise<Secret | undefined> => getIfPresent(kube, SECRETS, { namespace, name }),
      configMap: (name): Promise<ConfigMap | undefined> => getIfPresent(kube, CONFIG_MAPS, { namespace, name }),
    };
  }

  get #directory(): string {
    return podDirectory(this.#deps.root, this.uid);
  }

  #containerDirectory({ name }: Container): string {
    return join(this.#directory, 'containers', name);
  }

  get #logDirectory(): string {
    const { name = '', namespace = '' } = this.pod.metadata ?? {};
    return join(this.#deps.root, 'var/log/pods', `${namespace}_${name}_${this.uid}`);
  }
}
