import { posix } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { ConfigMap, Node } from 'kubernetes-types/core/v1.d.ts';
import { Controller } from '../../controller/controller.ts';
import { FileWatch } from '../../controller/file-watch.ts';
import type { Log } from '../../controller/log.ts';
import type { ControllerMetrics } from '../../controller/metrics.ts';
import { ONLY_KEY, type ReconcileContext, type Result } from '../../controller/reconcile.ts';
import { onChange, onTransition, type Trigger } from '../../controller/trigger.ts';
import type { Host } from '../../host/port.ts';
import type { Clock } from '../../kube/clock.ts';
import { minutes } from '../../kube/duration.ts';
import type { EventRecorder } from '../../kube/events.ts';
import type { Informer } from '../../kube/informer.ts';
import type { Kube } from '../../kube/port.ts';
import type { ControllerConfig, ControllerConfigSpec } from '../../machine-config-api/controller-config.ts';
import {
  CONTROLLER_CONFIG_NAME,
  KUBECONFIG_DATA,
  LAST_SYNCED_CONTROLLER_CONFIG,
  MCO_NAMESPACE,
} from '../../machine-config-api/names.ts';
import type { NodeWriter } from '../node-writer.ts';
import type { ShakeHands } from './api-trust.ts';
import { type CertificateCaches, certificateCaches } from './caches.ts';
import { acknowledgement, decideCertificateSync, receiptsSaid, UNKNOWN_NODE_AGAIN_MS } from './decide.ts';
import { type CertificateOutcome, ensureCertificates } from './ensure.ts';
import { decideOnConnectionError, KubeletRestart } from './kubelet.ts';
import {
  BOOTSTRAP_KUBECONFIG,
  CLIENT_CERTIFICATES,
  CLOUD_CA,
  KUBELET_CA,
  KUBELET_RESTART_RECORD,
  LIVE_KUBECONFIG,
  MOUNTED_PULL_SECRETS,
  NODE_KUBECONFIGS,
  OS_PULL_SECRET,
  REGISTRY_CAS,
} from './paths.ts';
import type { CertificateProblem } from './problem.ts';
import { OsPullSecret } from './pull-secret.ts';
import { findReceipts } from './receipts.ts';
import { decideRegistryCas, registryCaPaths } from './registry-ca.ts';
import { type RestartTurn, TURN_AGAIN_MS } from './restart-turn.ts';
import { restartForKnownServerCa } from './server-ca.ts';

export interface CertificateWriterOptions {
  readonly kube: Kube;
  readonly host: Host;
  readonly nodeName: string;
  readonly nodeWriter: Pick<NodeWriter, 'annotate'>;
  readonly clock: Clock;
  readonly log: Log;
  /** About the own Node. */
  readonly events: EventRecorder;
  /** Those of the agent, started by it, whose errors it passes to `connectionFailed`; absent: own ones. */
  readonly caches?: CertificateCaches | undefined;
  readonly pullSecret?: OsPullSecret | undefined;
  /** How the API server is asked for its certificate before a CA leaves kubeconfigs; absent: it is not (spec 90, HO-8). */
  readonly shakeHands?: ShakeHands | undefined;
  /** Asked before the kubelet is restarted for a new server CA; absent: it may be at any time. */
  readonly restartTurn?: Pick<RestartTurn, 'mayRestart'> | undefined;
  /** Told after every pass what is wrong, nothing included: for the node's state (D-39). */
  readonly onProblems?: ((problems: readonly CertificateProblem[]) => void) | undefined;
  readonly metrics?: ControllerMetrics | undefined;
}

/** Everything is compared again so often, whatever watches may have missed; it costs some reads of the disk. */
const RESYNC_MS = minutes(10);
/** Whether the API server still needs a CA that has left the bundle is asked again so often. */
const KEPT_CA_AGAIN_MS = minutes(1);

/**
 * Carries CAs, the OS pull secret and the server CA of kubeconfigs from ControllerConfig to the disk (spec 60, section 4). It
 * knows nothing of updates, drains and pools, so none of them holds it back.
 */
export class CertificateWriter {
  readonly controller: Controller;
  readonly pullSecret: OsPullSecret;
  readonly #options: CertificateWriterOptions;
  readonly #caches: CertificateCaches;
  readonly #fileWatch: FileWatch;
  readonly #mustRestart = new AbortController();
  /** One at a time works on the kubeconfigs. */
  #last: Promise<unknown> = Promise.resolve();
  #problems: readonly CertificateProblem[] = [];
  /** What was written to the node. */
  readonly #said: Record<string, string> = {};

  constructor(options: CertificateWriterOptions) {
    const { kube, host, nodeName, clock, log, events } = options;
    this.#options = options;
    this.pullSecret = options.pullSecret ?? new OsPullSecret(host.files);
    const onError = (error: unknown) => {
      log.warn({ err: error }, 'watching failed');
      void this.connectionFailed(error);
    };
    this.#caches = options.caches ?? certificateCaches(kube, nodeName, { clock, onError });
    this.#fileWatch = new FileWatch(host.files, FILES, error => log.warn({ err: error }, 'watching files failed'));
    this.controller = new Controller({
      name: 'CertificateWriter',
      reconcile: (_key, context) => this.#inTurn(() => this.#pass(context)),
      clock,
      log,
      events,
      triggers: [
        onChange(this.#caches.controllerConfigs),
        heldUpByNobody(this.#caches.kubeconfigData, onChange(this.#caches.kubeconfigData)),
        heldUpByNobody(
          this.#caches.nodes,
          onTransition(this.#caches.nodes, (before, after) => (this.#concerns(before, after) ? [ONLY_KEY] : [])),
        ),
        this.#fileWatch,
      ],
      resyncMs: RESYNC_MS,
      metrics: options.metrics,
    });
  }

  /** What was wrong in the last pass. */
  get problems(): readonly CertificateProblem[] {
    return this.#problems;
  }

  /**
   * Works until `signal` aborts. Rejects with `AgentMustRestart` when the kubelet was restarted because connections failed: the
   * process should end and begin again with the credentials of now.
   */
  async run(signal: AbortSignal): Promise<void> {
    const own = this.#options.caches === undefined ? Object.values<Runs>({ ...this.#caches }) : [];
    await this.#pickUp();
    for (const informer of own) informer.start();
    try {
      await this.controller.run(AbortSignal.any([signal, this.#mustRestart.signal]));
    } finally {
      await Promise.all(own.map(informer => informer.stop()));
    }
    if (this.#mustRestart.signal.aborted && !signal.aborted) throw this.#mustRestart.signal.reason;
  }

  /** Puts right what a process that was killed left behind, as far as that needs no API. */
  async #pickUp(): Promise<void> {
    const { host, log } = this.#options;
    try {
      await this.#inTurn(() => new KubeletRestart(host).resume());
      for (const path of [...FILES.filter(isOneFile), KUBELET_RESTART_RECORD]) await host.files.removeLeftovers?.(path);
    } catch (error) {
      log.error({ err: error }, 'what the last process left could not be put right; the first pass tries again');
    }
  }

  /** A connection to the API failed. If that is for its certificate and a restart was put off, it is due now (spec 60, 4.8). */
  async connectionFailed(error: unknown): Promise<void> {
    const { host, log, shakeHands } = this.#options;
    try {
      await this.#inTurn(async () => {
        const due = await new KubeletRestart(host).due();
        if (!decideOnConnectionError(due, error).restartsKubelet) return;
        log.info({ err: error }, 'Need to restart kubelet');
        await restartForKnownServerCa(host, shakeHands);
        this.#mustRestart.abort(new AgentMustRestart());
      });
    } catch (failure) {
      log.error({ err: failure }, 'restarting kubelet failed; it is tried again with the next pass');
      this.controller.enqueue();
    }
  }

  async #pass(context: ReconcileContext): Promise<Result> {
    const { clock, log } = context;
    const { nodeName, nodeWriter } = this.#options;
    const controllerConfig = this.#caches.controllerConfigs.get({ name: CONTROLLER_CONFIG_NAME });
    const node = this.#caches.nodes.get({ name: nodeName });
    // The node's credentials may be what has to be mended: as long as they cannot read the node, everything is compared.
    const isNodeReadable = this.#caches.nodes.hasSynced;
    const annotations = node === undefined && isNodeReadable ? undefined : (node?.metadata?.annotations ?? {});
    const decision = decideCertificateSync(CONTROLLER_CONFIG_NAME, annotations, controllerConfig);
    const outcome =
      decision.sync && controllerConfig !== undefined
        ? await this.#ensure(controllerConfig, decision.isRotationOpen, node?.metadata?.labels ?? {}, context)
        : undefined;
    const { receipts, caFiles } = await findReceipts(this.#options.host);
    this.#watch(controllerConfig?.spec, caFiles);
    if (annotations === undefined || !isNodeReadable) return { againAt: after(clock, UNKNOWN_NODE_AGAIN_MS) };
    const said = {
      ...(outcome !== undefined && controllerConfig && acknowledgement(annotations, controllerConfig, outcome)),
      ...receiptsSaid(annotations, receipts),
    };
    if (Object.keys(said).length > 0) {
      Object.assign(this.#said, said);
      this.#caches.nodes.remember(await nodeWriter.annotate(said));
    }
    if (outcome === undefined) return {};
    if (outcome.isComplete && (outcome.written.length > 0 || LAST_SYNCED_CONTROLLER_CONFIG in said)) {
      const { resourceVersion } = controllerConfig?.metadata ?? {};
      const message = `Certificate was synced from controllerconfig resourceVersion ${resourceVersion}`;
      log.info({ written: outcome.written }, message);
    }
    const retry = outcome.problems.some(({ isPassing }) => isPassing);
    if (outcome.isRestartHeld) return { retry, againAt: after(clock, TURN_AGAIN_MS) };
    return outcome.keptServerCas === 0 ? { retry } : { retry, againAt: after(clock, KEPT_CA_AGAIN_MS) };
  }

  async #ensure(
    { spec = {} }: ControllerConfig,
    isRotationOpen: boolean,
    nodeLabels: Readonly<Record<string, string>>,
    { events, log }: ReconcileContext,
  ): Promise<CertificateOutcome> {
    const { host, shakeHands, restartTurn } = this.#options;
    const { kubeconfigData } = this.#caches;
    const outcome = await ensureCertificates(host, this.pullSecret, {
      spec,
      kubeconfigData: kubeconfigData.get({ namespace: MCO_NAMESPACE, name: KUBECONFIG_DATA }),
      isRotationOpen: isRotationOpen && kubeconfigData.hasSynced,
      nodeLabels,
      shakeHands,
      mayRestart: restartTurn && (() => restartTurn.mayRestart()),
    });
    this.#report(outcome, events, log);
    return outcome;
  }

  #watch(spec: ControllerConfigSpec = {}, caFiles: readonly string[]): void {
    const registries = decideRegistryCas(spec.imageRegistryBundleData ?? [], spec.imageRegistryBundleUserData ?? []);
    this.#fileWatch.watch([...FILES, ...caFiles, ...registryCaPaths(registries)]);
  }

  /** Of a node only labels count, and what others make of our annotations: not each heartbeat, and not our own writes. */
  #concerns(before: Node | undefined, after: Node | undefined): boolean {
    if (after === undefined) return false;
    const { labels, annotations = {} } = after.metadata ?? {};
    const isAsSaid = Object.entries(this.#said).every(([name, value]) => annotations[name] === value);
    return before === undefined || !isAsSaid || !isDeepStrictEqual(before.metadata?.labels, labels);
  }

  /** Each problem is an event when it appears, not in every pass. */
  #report({ problems, kubeletRestarted, keptServerCas }: CertificateOutcome, events: EventRecorder, log: Log): void {
    if (kubeletRestarted) log.info({}, 'restarting kubelet due to server-ca rotation');
    if (keptServerCas > 0)
      log.info({ keptServerCas }, 'the API server is not known to do without CAs that left the bundle');
    for (const problem of problems) {
      if (this.#problems.some(known => isDeepStrictEqual(known, problem))) continue;
      log.warn({ part: problem.part, problem: problem.message }, problem.code);
      events.event('Warning', problem.code, problem.message);
    }
    this.#problems = problems;
    this.#options.onProblems?.(problems);
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work);
    this.#last = turn.catch(() => {});
    return turn;
  }
}

/** The agent's process should end, with this code, and be started again (spec 60, 1.6). */
export class AgentMustRestart extends Error {
  override readonly name = 'AgentMustRestart';
  readonly exitCode = 255;

  constructor() {
    super('kubelet was restarted after connections to the API server had failed; starting again with its credentials');
  }
}

type Runs = { start(): unknown; stop(): Promise<void> };

const FILES: readonly string[] = [
  KUBELET_CA,
  CLOUD_CA,
  BOOTSTRAP_KUBECONFIG,
  LIVE_KUBECONFIG,
  OS_PULL_SECRET,
  `${REGISTRY_CAS}/*`,
  `${MOUNTED_PULL_SECRETS}/*`,
  `${NODE_KUBECONFIGS}/*`,
  // The directory is replaced as a whole.
  ...CLIENT_CERTIFICATES.map(({ file }) => `${posix.dirname(file)}/*`),
];

function after(clock: Clock, ms: number): Date {
  return new Date(clock.now().getTime() + ms);
}

function isOneFile(path: string): boolean {
  return !path.endsWith('/*');
}

/** Asks for passes, and the first one does not wait for it: CA files are written although the ConfigMap or the Node cannot be read. */
function heldUpByNobody(source: Pick<Informer<ConfigMap>, 'synced'>, { start }: Trigger): Trigger {
  return {
    synced: Promise.resolve(),
    start(enqueue) {
      source.synced.then(
        () => enqueue(ONLY_KEY),
        () => {},
      );
      return start(enqueue);
    },
  };
}
