import { posix } from 'node:path';
import type { ConfigMap, Node, Pod } from 'kubernetes-types/core/v1.d.ts';
import { errorText } from '../../controller/aggregate-error.ts';
import { Controller } from '../../controller/controller.ts';
import { FileWatch } from '../../controller/file-watch.ts';
import type { Log } from '../../controller/log.ts';
import type { ControllerMetrics } from '../../controller/metrics.ts';
import { ONLY_KEY, type ReconcileContext, type Result } from '../../controller/reconcile.ts';
import { redactedText } from '../../controller/redact.ts';
import { onChange, onTransition } from '../../controller/trigger.ts';
import { type Host, HostError } from '../../host/port.ts';
import type { Clock } from '../../kube/clock.ts';
import { minutes, seconds } from '../../kube/duration.ts';
import { isTransient } from '../../kube/error.ts';
import type { EventRecorder } from '../../kube/events.ts';
import { Informer } from '../../kube/informer.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, NODES, PODS } from '../../kube/resource.ts';
import type { Keys } from '../../pki/keys.ts';
import { KUBELET_DIRECTORY, KUBERNETES_DIRECTORY, RESTART, STATIC_POD_NAMESPACE } from '../names.ts';
import { encodeReport, NODE_REPORT, type NodeReport, reportOf } from '../report.ts';
import { decodeWanted, type Wanted, wantedKey } from '../wanted.ts';
import type { Ask } from './ask.ts';
import { carryOut } from './carry-out.ts';
import { checkNode } from './checks.ts';
import { decideLifeline, decideRescue, decideSteps } from './decide.ts';
import { NodeFault } from './file-text.ts';
import { renewKubelet } from './kubelet-certificate.ts';
import { lookAtNode } from './look.ts';
import { endPair } from './pair.ts';
import { KUBELET_CLIENT, MANIFESTS, type Places } from './places.ts';
import { reportFrom } from './report-of.ts';
import { publish, withSecrets } from './secrets.ts';
import type { NodeSight } from './sight.ts';
import { type Step, stepText } from './step.ts';

export interface KubeadmAgentOptions {
  /** The API in the hands of this agent. */
  readonly kube: Kube;
  /** The same with the node's own credentials, as its kubelet has them. */
  readonly nodeKube: Kube;
  readonly host: Host;
  readonly nodeName: string;
  readonly places: Places;
  readonly keys: Keys;
  readonly ask: Ask;
  readonly clock: Clock;
  readonly log: Log;
  /** About the own Node. */
  readonly events: EventRecorder;
  readonly metrics?: ControllerMetrics | undefined;
}

/** Everything is compared again so often, whatever watches may have missed. */
const RESYNC_MS = minutes(10);
/** What happens by itself is looked for so often. */
const LOOK_AGAIN_MS = seconds(2);
/** Whatever is waited for longer than this is a problem. */
const PATIENCE_MS = minutes(5);
/** A pass that changes more than this goes in circles. */
const MOST_STEPS = 200;

/** What became of what is wanted. */
type Outcome =
  | { readonly is: 'done' }
  | { readonly is: 'refused'; readonly problem: string }
  | { readonly is: 'waiting'; readonly for: string };

/** The agent of one node of a kubeadm cluster (spec 80): says what is there, and makes it what is wanted. */
export class KubeadmAgent {
  readonly controller: Controller;
  readonly #options: KubeadmAgentOptions;
  readonly #wanted: Informer<ConfigMap>;
  readonly #nodes: Informer<Node>;
  readonly #pods: Informer<Pod>;
  /** What was seen in this pass, as long as nothing has been changed since. */
  #seen: NodeSight | undefined;
  #waiting: { readonly for: string; readonly since: Date } | undefined;

  constructor(options: KubeadmAgentOptions) {
    const { kube, host, nodeName, places, clock, log, events, metrics } = options;
    this.#options = options;
    const onError = (error: unknown) => log.warn({ err: error }, 'watching failed');
    const own = wantedKey(nodeName);
    const informed = <T extends ConfigMap | Node | Pod>(
      resource: ConstructorParameters<typeof Informer<T>>[1],
      selection: { readonly namespace?: string; readonly fieldSelector: string },
      selects?: (object: T) => boolean,
    ) => new Informer<T>(kube, resource, { selection, clock, onError, selects });
    this.#wanted = informed(CONFIG_MAPS, { namespace: own.namespace, fieldSelector: `metadata.name=${own.name}` });
    this.#nodes = informed(NODES, { fieldSelector: `metadata.name=${nodeName}` });
    this.#pods = informed<Pod>(
      PODS,
      { namespace: STATIC_POD_NAMESPACE, fieldSelector: `spec.nodeName=${nodeName}` },
      ({ spec }) => spec?.nodeName === nodeName,
    );
    this.controller = new Controller({
      name: 'KubeadmAgent',
      reconcile: (_key, context) => this.#pass(context),
      clock,
      log,
      events,
      triggers: [
        onChange(this.#wanted),
        onTransition(this.#nodes, (before, after) => (reportIn(before) === reportIn(after) ? [] : [ONLY_KEY])),
        onTransition(this.#pods, (before, after) => (processIn(before) === processIn(after) ? [] : [ONLY_KEY])),
        new FileWatch(host.files, watchedPaths(places), onError),
      ],
      resyncMs: RESYNC_MS,
      metrics,
    });
  }

  /** Works until `signal` aborts; a step under way is finished first. */
  async run(signal: AbortSignal): Promise<void> {
    await this.#sweep();
    await this.#keepReachable().catch(error => {
      this.#options.log.warn({ err: error }, 'what has ended could not be made anew');
    });
    const informers = [this.#wanted, this.#nodes, this.#pods];
    for (const informer of informers) informer.start();
    try {
      await this.controller.run(signal);
    } finally {
      await Promise.all(informers.map(informer => informer.stop()));
    }
  }

  /** Temporary files of a process that was killed hold keys: they go. */
  async #sweep(): Promise<void> {
    const { host, log } = this.#options;
    try {
      const sight = await this.#look();
      for (const folder of writtenFolders(sight)) await host.files.removeLeftovers?.(`${folder}/*`);
    } catch (error) {
      log.warn({ err: error }, 'what the last process left could not be removed');
    }
  }

  async #pass(context: ReconcileContext): Promise<Result> {
    const { nodeName } = this.#options;
    const node = this.#nodes.get({ name: nodeName });
    if (node === undefined) return { againAt: this.#later(LOOK_AGAIN_MS) };
    const previous = reportOf(node);
    const wanted = decodeWanted(this.#wanted.get(wantedKey(nodeName)));
    let done = previous?.done;
    let problem: string | undefined;
    let failure: unknown;
    let outcome: Outcome | undefined;
    this.#seen = undefined;
    try {
      await this.#keepReachable();
      const isInRound = wanted !== undefined && wanted.round !== done;
      outcome = await this.#rescue(isInRound, context);
      if (isInRound) outcome = await this.#converge(wanted, context);
    } catch (error) {
      failure = error;
      if (error instanceof HostError || error instanceof NodeFault) problem = redactedText(errorText(error));
    }
    if (outcome?.is === 'done') done = wanted?.round;
    if (outcome?.is === 'refused') ({ problem } = outcome);
    const longWait = this.#waitedFor(outcome);
    const sight = await this.#look();
    problem ??= longWait ?? (sight.faults.length > 0 ? sight.faults.join('; ') : undefined);
    await this.#tell(reportFrom(sight, { done, problem, previous }), node);
    if (failure !== undefined) throw failure;
    return outcome?.is === 'waiting' ? { againAt: this.#later(LOOK_AGAIN_MS) } : {};
  }

  /** Where nobody can ask this node for a round because of what has ended here, it helps itself. */
  async #keepReachable(): Promise<void> {
    const { clock, log } = this.#options;
    const sight = await this.#look();
    const steps = decideLifeline(sight, clock.now());
    if (steps.length > 0 && (await this.#isApiSilent())) await this.#carryOut(sight, steps, log);
  }

  async #isApiSilent(): Promise<boolean> {
    const { kube, nodeName } = this.#options;
    try {
      await kube.get(NODES, { name: nodeName });
      return false;
    } catch (error) {
      return isTransient(error);
    }
  }

  /** What was begun is ended, and a kubelet that is about to lose its certificate gets one, whether anything is wanted or not. */
  async #rescue(isInRound: boolean, context: ReconcileContext): Promise<Outcome | undefined> {
    let sight = await this.#look();
    if (sight.faults.length > 0) return undefined;
    if (sight.begun.length > 0) {
      this.#seen = undefined;
      for (const begun of sight.begun) await endPair(this.#options.host.files, begun);
      sight = await this.#look();
    }
    for (let count = 0; count < MOST_STEPS; count++) {
      const steps = decideRescue(sight, this.#options.clock.now(), isInRound);
      if (steps.length === 0) return undefined;
      if (!(await this.#carryOut(sight, steps, context.log)))
        return { is: 'waiting', for: "the kubelet's certificate to be issued" };
      sight = await this.#look();
    }
    throw new NodeFault('the certificate of the kubelet is renewed again and again');
  }

  async #converge(wanted: Wanted, context: ReconcileContext): Promise<Outcome> {
    const { kube, clock, ask } = this.#options;
    for (let count = 0; count < MOST_STEPS; count++) {
      context.signal.throwIfAborted();
      const sight = await withSecrets(await this.#look(), wanted, kube);
      const decision = decideSteps(sight, wanted, clock.now());
      switch (decision.kind) {
        case 'refused':
          return { is: 'refused', problem: decision.problem };
        case 'wait':
          return { is: 'waiting', for: decision.for };
        case 'steps':
          if (!(await this.#carryOut(sight, decision.steps, context.log)))
            return { is: 'waiting', for: "the kubelet's certificate to be issued" };
          break;
        case 'settled': {
          const problem = await checkNode(sight, { ask, kube, now: clock.now() });
          if (problem !== undefined) return { is: 'waiting', for: problem };
          context.log.info({ round: wanted.round }, 'the round is done');
          return { is: 'done' };
        }
      }
    }
    throw new NodeFault(`the round ${wanted.round} does not come to an end`);
  }

  async #carryOut(sight: NodeSight, steps: readonly Step[], log: Log): Promise<boolean> {
    const { host, keys, clock, kube, nodeKube } = this.#options;
    const now = clock.now();
    this.#seen = undefined;
    for (const step of steps) {
      log.info({ step: stepText(step) }, 'changing the node');
      const isDone = await carryOut(sight, step, {
        host,
        keys,
        now,
        publish: (seen, what) => publish(seen, what, kube),
        renewKubelet: (seen, renewal) => renewKubelet(seen, renewal, { host, keys, now, kube, nodeKube }),
      });
      if (!isDone) return false;
    }
    return true;
  }

  /** What to say of a wait that takes too long. */
  #waitedFor(outcome: Outcome | undefined): string | undefined {
    const now = this.#options.clock.now();
    if (outcome?.is !== 'waiting') {
      this.#waiting = undefined;
      return undefined;
    }
    if (this.#waiting?.for !== outcome.for) this.#waiting = { for: outcome.for, since: now };
    const { since } = this.#waiting;
    if (now.getTime() - since.getTime() < PATIENCE_MS) return undefined;
    return `waiting since ${since.toISOString()}: ${outcome.for}`;
  }

  async #look(): Promise<NodeSight> {
    const { host, places, nodeName } = this.#options;
    return (this.#seen ??= await lookAtNode({ host, places, nodeName, pods: this.#pods.list() }));
  }

  /** Writes the report where it says something else. */
  async #tell(report: NodeReport, node: Node): Promise<void> {
    const text = encodeReport(report);
    if (reportIn(node) === text) return;
    const { kube, nodeName } = this.#options;
    const body = { metadata: { annotations: { [NODE_REPORT]: text } } };
    this.#nodes.remember(await kube.patch(NODES, { name: nodeName }, { type: 'merge', body }));
  }

  #later(ms: number): Date {
    return new Date(this.#options.clock.now().getTime() + ms);
  }
}

function reportIn(node: Node | undefined): string | undefined {
  return node?.metadata?.annotations?.[NODE_REPORT];
}

/** What of a pod says which process runs. */
function processIn(pod: Pod | undefined): string {
  const { metadata, status } = pod ?? {};
  const isReady = status?.conditions?.find(({ type }) => type === 'Ready')?.status;
  const started = status?.containerStatuses?.map(({ state }) => state?.running?.startedAt);
  return JSON.stringify([metadata?.uid, metadata?.annotations?.[RESTART], isReady, started]);
}

function watchedPaths({ certificates }: Places): string[] {
  const folders = [certificates, `${certificates}/etcd`, KUBERNETES_DIRECTORY, MANIFESTS, KUBELET_DIRECTORY];
  return folders.map(folder => `${folder}/*`);
}

/** Every folder that this agent writes in. Where a file is a link, what it leads to is written. */
function writtenFolders({ leaves, signers, kubeconfigs, pods, places, serviceAccount }: NodeSight): Set<string> {
  const files = [
    ...[...leaves.values(), ...signers.values()].flatMap(({ file, keyFile }) => [file, keyFile]),
    ...[...pods.values(), ...kubeconfigs.values()].map(({ file }) => file),
    serviceAccount?.keyFile,
    serviceAccount?.publicFile,
  ].flatMap(file => (file === undefined ? [] : [file.real]));
  const kept = files.map(file => posix.join(places.before, file));
  return new Set([...files, ...kept, KUBELET_CLIENT, places.signing.key].map(file => posix.dirname(file)));
}
