import { errorText } from '../../controller/aggregate-error.ts';
import { CLUSTER_OPERATORS, type ClusterOperatorStatus } from '../../controller/cluster-operator-status.ts';
import type { Reconcile, ReconcileContext, Result } from '../../controller/reconcile.ts';
import { earlier } from '../../controller/reconcile.ts';
import { updateStatus } from '../../controller/status.ts';
import { applyConfigMap, applyServiceAccount } from '../../kube/apply.ts';
import { minutes } from '../../kube/duration.ts';
import { isAlreadyExists, isNotFound } from '../../kube/error.ts';
import { getIfPresent } from '../../kube/get.ts';
import type { Kube } from '../../kube/port.ts';
import {
  CONTROLLER_CONFIGS,
  type ControllerConfig,
  type ControllerConfigSpec,
} from '../../machine-config-api/controller-config.ts';
import {
  CLUSTER,
  CLUSTER_OPERATOR_NAME,
  CONFIG_MANAGED_NAMESPACE,
  CONTROLLER_CONFIG_NAME,
  GENERATED_BY_VERSION,
  MACHINE_OS_PULLER,
  MCO_NAMESPACE,
  RELEASE_IMAGE_VERSION,
  SERVER_CA_DIGEST,
  SERVICE_CA_ROTATE,
} from '../../machine-config-api/names.ts';
import { mergeControllerConfig } from '../controller-config/apply.ts';
import type { HandOver, ServerCaDecision } from '../controller-config/server-ca.ts';
import { whyFailed, whyIncomplete } from '../controller-config/status.ts';
import { type EventsAbout, involvedObject } from '../events.ts';
import type { OperatorMetrics } from '../metrics.ts';
import { membershipOf, nodesOfPool } from '../pool/membership.ts';
import type { ControllerVersion } from '../render/decide.ts';
import { mergedRegistryCa } from '../source/registry-ca.ts';
import { cachedSources, type OperatorCaches } from './caches.ts';
import { clusterOperatorStatus, type FailedStep } from './cluster-operator.ts';
import { ensureMachineConfiguration } from './machine-configuration.ts';
import { ignitionHost } from './pointer.ts';
import { ensureBuiltInPools, ensureUserData } from './pools.ts';
import { configurationProblem, requiredPools, requiredPoolsLimitMs } from './required-pools.ts';
import { retried } from './retry.ts';
import { SERVER_CA, ServerCaFollower } from './server-ca.ts';
import { readSources, type SourceReading } from './sources.ts';
import { evaluationCondition, upgradeableCondition } from './upgradeable.ts';

export interface OperatorParts {
  readonly kube: Kube;
  readonly caches: OperatorCaches;
  readonly version: ControllerVersion;
  /** The release that is being rolled out, such as `4.16.3`. */
  readonly releaseVersion: string;
  readonly eventsAbout: EventsAbout;
  readonly bringingUp?: boolean | undefined;
  /** Whether disruption policies are published for agents to follow (spec 50, 2.5). */
  readonly disruptionPolicies?: boolean | undefined;
  /** Default: `receipts`. */
  readonly handOver?: HandOver | undefined;
  readonly metrics?: OperatorMetrics | undefined;
}

/** How long what is made from ControllerConfig may take before that is a failure (spec 50, OP-9). */
const COMPLETION_LIMIT_MS = minutes(5);

/**
 * One pass of the operator: collects what machines need from the whole cluster and publishes it (spec 50, section 3). The steps
 * are those of 4.16, but none holds back another and nothing is waited for: what is not ready yet is looked at again when it
 * changes or when its time is up (traps 5 and 6, RQ-6).
 */
export function operatorReconcile(parts: OperatorParts): Reconcile {
  const serverCa = new ServerCaFollower(parts.handOver);
  const patience = new Patience();
  let bringingUp = parts.bringingUp ?? false;
  return async (_key, context) => {
    const pass = new Pass(parts, context, serverCa, patience, bringingUp);
    const result = await pass.run();
    if (pass.failures.length === 0) bringingUp = false;
    return result;
  };
}

/** Remembers since when something is waited for. */
class Patience {
  readonly #since = new Map<string, Date>();

  /** When `what` has been waited for long enough; the clock starts at the first call. */
  until(what: string, now: Date, limitMs: number): Date {
    const since = this.#since.get(what) ?? now;
    this.#since.set(what, since);
    return new Date(since.getTime() + limitMs);
  }

  /** It has come. */
  end(what: string): void {
    this.#since.delete(what);
  }
}

class Pass {
  readonly failures: FailedStep[] = [];
  readonly #parts: OperatorParts;
  readonly #context: ReconcileContext;
  readonly #serverCa: ServerCaFollower;
  readonly #patience: Patience;
  readonly #bringingUp: boolean;
  readonly #now: Date;
  #againAt: Date | undefined;
  #waitingFor: string | undefined;

  constructor(
    parts: OperatorParts,
    context: ReconcileContext,
    serverCa: ServerCaFollower,
    patience: Patience,
    bringingUp: boolean,
  ) {
    this.#parts = parts;
    this.#context = context;
    this.#serverCa = serverCa;
    this.#patience = patience;
    this.#bringingUp = bringingUp;
    this.#now = context.clock.now();
  }

  async run(): Promise<Result> {
    const { caches, releaseVersion } = this.#parts;
    const reading = readSources(cachedSources(caches), { releaseVersion, bringingUp: this.#bringingUp });
    for (const { message } of reading.failures) this.#fail('RenderConfig', message);
    await this.#step('RenderConfig', () => this.#publishRegistryCas(reading.spec));
    // Certificates first: nothing else that is wrong holds them back.
    await this.#step('MachineConfigController', isAgain => this.#publishControllerConfig(reading, isAgain));
    await this.#step('MachineConfiguration', () => this.#ensureMachineConfiguration());
    await this.#step('MachineConfigPools', () => this.#ensurePools(reading.spec));
    await this.#step('MachineConfigController', () => this.#ensurePuller());
    this.#checkCompletion();
    this.#checkRequiredPools();
    this.failures.sort((a, b) => STEPS.indexOf(a.step) - STEPS.indexOf(b.step));
    await this.#reportStatus();
    this.#count();
    return { againAt: this.#againAt };
  }

  /** What throws in a step is its own failure. */
  async #step(step: string, work: (isAgain: boolean) => Promise<void>): Promise<void> {
    try {
      await retried(work, this.#context);
    } catch (error) {
      this.#fail(step, errorText(error));
      // Asked again soon, as after any failure; the other steps have their turn first.
      this.#lookAgain(new Date(this.#now.getTime() + FAILED_STEP_RETRY_MS));
    }
  }

  #fail(step: string, message: string): void {
    this.failures.push({ step, message });
  }

  #lookAgain(at: Date): void {
    this.#againAt = earlier(this.#againAt, at);
  }

  /** Keeps the list of registry CAs that others read (spec 50, IR-3, IR-4). */
  async #publishRegistryCas({
    imageRegistryBundleData,
    imageRegistryBundleUserData,
  }: ControllerConfigSpec): Promise<void> {
    if (imageRegistryBundleData === undefined || imageRegistryBundleUserData === undefined) return;
    const { events, signal } = this.#context;
    const required = mergedRegistryCa(imageRegistryBundleData, imageRegistryBundleUserData);
    await applyConfigMap({ kube: this.#parts.kube, events, signal }, required);
  }

  /** Writes ControllerConfig when something changed, and only then (spec 50, CC-1 to CC-5). */
  async #publishControllerConfig(reading: SourceReading, isAgain: boolean): Promise<void> {
    const { kube, caches, version, releaseVersion } = this.#parts;
    const { signal } = this.#context;
    const key = { name: CONTROLLER_CONFIG_NAME };
    const existing = isAgain
      ? await getIfPresent(kube, CONTROLLER_CONFIGS, key, { signal })
      : caches.controllerConfigs.get(key);
    if (existing === undefined && !reading.isEssentialComplete) return;
    const rotation = await this.#followServerCa(existing);
    const required: ControllerConfig = {
      apiVersion: 'machineconfiguration.openshift.io/v1',
      kind: 'ControllerConfig',
      metadata: {
        name: CONTROLLER_CONFIG_NAME,
        annotations: {
          [GENERATED_BY_VERSION]: version.version,
          [RELEASE_IMAGE_VERSION]: releaseVersion,
          [SERVICE_CA_ROTATE]: rotation.rotate,
          ...(rotation.digest !== undefined && { [SERVER_CA_DIGEST]: rotation.digest }),
        },
      },
      spec: reading.spec,
    };
    if (existing === undefined) {
      const created = await kube.create(CONTROLLER_CONFIGS, required, { signal }).catch((error: unknown) => {
        if (!isAlreadyExists(error)) throw error;
        return undefined;
      });
      if (created !== undefined) caches.controllerConfigs.remember(created);
      return;
    }
    const merged = mergeControllerConfig(existing, required);
    if (merged.changed)
      caches.controllerConfigs.remember(await kube.update(CONTROLLER_CONFIGS, merged.object, { signal }));
  }

  async #followServerCa(existing: ControllerConfig | undefined): Promise<ServerCaDecision> {
    const { kube, caches } = this.#parts;
    const key = { namespace: CONFIG_MANAGED_NAMESPACE, name: SERVER_CA };
    const source = caches.configMaps.get(CONFIG_MANAGED_NAMESPACE)?.get(key);
    const decision = await this.#serverCa.follow(kube, source, existing, caches.nodes.list(), this.#now, {
      signal: this.#context.signal,
    });
    if (decision.settlesAt !== undefined) this.#lookAgain(decision.settlesAt);
    return decision;
  }

  async #ensureMachineConfiguration(): Promise<void> {
    const { kube, caches, disruptionPolicies: publishesPolicies = false } = this.#parts;
    const existing = caches.machineConfigurations.get({ name: CLUSTER });
    await ensureMachineConfiguration(kube, existing, publishesPolicies, this.#context);
  }

  async #ensurePools(spec: ControllerConfigSpec): Promise<void> {
    const { kube, caches } = this.#parts;
    const { events, signal } = this.#context;
    await ensureBuiltInPools({ kube, signal });
    if (!spec.infra?.status || !spec.rootCAData) return;
    const host = ignitionHost(spec.infra.status);
    await ensureUserData({ kube, events, signal }, caches.pools.list(), host, Buffer.from(spec.rootCAData, 'base64'));
  }

  /** The account whose pull secrets let nodes pull from the cluster's own registry. */
  async #ensurePuller(): Promise<void> {
    const { kube, caches } = this.#parts;
    const key = { namespace: MCO_NAMESPACE, name: MACHINE_OS_PULLER };
    if (caches.serviceAccounts.get(key) !== undefined) return;
    const { events, signal } = this.#context;
    await applyServiceAccount(
      { kube, events, signal },
      { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { ...key } },
    );
  }

  #checkCompletion(): void {
    const controllerConfig = this.#parts.caches.controllerConfigs.get({ name: CONTROLLER_CONFIG_NAME });
    const why = whyIncomplete(controllerConfig);
    if (why === undefined) {
      this.#patience.end('completion');
      return;
    }
    const failed = controllerConfig && whyFailed(controllerConfig);
    const limit = this.#patience.until('completion', this.#now, COMPLETION_LIMIT_MS);
    if (failed !== undefined || this.#now >= limit) this.#fail('MachineConfigController', failed ?? why);
    else this.#lookAgain(limit);
  }

  #checkRequiredPools(): void {
    const { caches, version, releaseVersion } = this.#parts;
    const osImageUrl = caches.controllerConfigs.get({ name: CONTROLLER_CONFIG_NAME })?.spec?.baseOSContainerImage ?? '';
    const expected = { controllerHash: version.hash, releaseVersion, osImageUrl };
    const pools = caches.pools.list();
    const outcome = requiredPools(pools, pool =>
      configurationProblem(pool, name => caches.machineConfigs.get({ name }), expected),
    );
    if (outcome.verdict === 'done') {
      this.#patience.end('pools');
      return;
    }
    this.#waitingFor = outcome.reason;
    const limit = this.#patience.until('pools', this.#now, Math.max(requiredPoolsLimitMs(pools), COMPLETION_LIMIT_MS));
    if (outcome.verdict === 'failed' || this.#now >= limit) this.#fail('RequiredPools', outcome.reason);
    else this.#lookAgain(limit);
  }

  async #reportStatus(): Promise<void> {
    const { kube, caches, releaseVersion } = this.#parts;
    const pools = caches.pools.list();
    const nodes = caches.nodes.list().filter(node => membershipOf(node, pools).kind === 'member');
    const apiServer = caches.clusterOperators.get({ name: 'kube-apiserver' })?.status?.versions;
    const outcome = {
      operatorVersion: releaseVersion,
      bringingUp: this.#bringingUp,
      failures: this.failures,
      waitingFor: this.#waitingFor,
      pools,
      upgradeable: upgradeableCondition(
        pools,
        nodes,
        apiServer?.find(({ name }) => name === 'kube-apiserver')?.version,
      ),
      evaluation: evaluationCondition(
        caches.kubeletConfigs.list(),
        caches.runtimeConfigs.list(),
        caches.nodeConfigs.get({ name: CLUSTER }),
      ),
    };
    await this.#ensureClusterOperator();
    let before: ClusterOperatorStatus = {};
    const { object, updated } = await updateStatus(
      kube,
      CLUSTER_OPERATORS,
      { name: CLUSTER_OPERATOR_NAME },
      clusterOperator => {
        before = clusterOperator.status ?? {};
        return { ...clusterOperator, status: clusterOperatorStatus(before, outcome, this.#now) };
      },
      { clock: this.#context.clock, signal: this.#context.signal },
    );
    if (updated) this.#tellChanges(before, object.status ?? {}, object);
  }

  async #ensureClusterOperator(): Promise<void> {
    const { kube, caches } = this.#parts;
    if (caches.clusterOperators.get({ name: CLUSTER_OPERATOR_NAME }) !== undefined) return;
    const empty = {
      apiVersion: 'config.openshift.io/v1',
      kind: 'ClusterOperator',
      metadata: { name: CLUSTER_OPERATOR_NAME },
      spec: {},
    };
    await kube.create(CLUSTER_OPERATORS, empty, { signal: this.#context.signal }).catch((error: unknown) => {
      if (!isAlreadyExists(error) && !isNotFound(error)) throw error;
    });
  }

  /** Events about what is new (spec 50, section 12); 4.16 repeats them in every pass. */
  #tellChanges(before: ClusterOperatorStatus, after: ClusterOperatorStatus, object: object): void {
    const events = this.#parts.eventsAbout(involvedObject(CLUSTER_OPERATORS, object));
    const [from, to] = [before, after].map(status => status.versions?.find(({ name }) => name === 'operator')?.version);
    if (from !== to) {
      events.event(
        'Normal',
        'OperatorVersionChanged',
        `clusteroperator/${CLUSTER_OPERATOR_NAME} version changed from ${from ?? 'none'} to ${to ?? ''}`,
      );
    }
    for (const [type, status] of [
      ['Degraded', 'True'],
      ['Upgradeable', 'True'],
    ] as const) {
      const [old, current] = [before, after].map(({ conditions }) =>
        conditions?.find(condition => condition.type === type),
      );
      if (current?.status !== status || (old?.reason === current.reason && old?.message === current.message)) continue;
      if (type === 'Degraded')
        events.event('Warning', `OperatorDegraded: ${current.reason ?? ''}`, current.message ?? '');
      if (current.reason === 'KubeletSkewUnsupported') events.event('Warning', current.reason, current.message ?? '');
    }
  }

  #count(): void {
    const { caches, metrics } = this.#parts;
    if (metrics === undefined) return;
    const [pools, nodes] = [caches.pools.list(), caches.nodes.list()];
    const counted = pools.map(pool => ({
      pool,
      nodes: nodesOfPool(pool.metadata?.name ?? '', nodes, pools).map(({ metadata }) => metadata?.name ?? ''),
    }));
    metrics(counted, this.#now.getTime() / 1000);
  }
}

/** The order in which failures are told (spec 50, 3.2). */
const STEPS = [
  'RenderConfig',
  'MachineConfiguration',
  'MachineConfigPools',
  'MachineConfigController',
  'RequiredPools',
];
const FAILED_STEP_RETRY_MS = minutes(1);
