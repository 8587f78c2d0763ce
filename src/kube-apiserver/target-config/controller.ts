import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { errorText } from '../../controller/aggregate-error.ts';
import { earlier, type Reconcile, type ReconcileContext, RetryRequest } from '../../controller/reconcile.ts';
import { applyConfigMap } from '../../kube/apply.ts';
import { isConflict } from '../../kube/error.ts';
import { getIfPresent } from '../../kube/get.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, SECRETS, SERVICE_ACCOUNTS } from '../../kube/resource.ts';
import { condition } from '../../staticpod/condition.ts';
import { type Objects, writeIfNeeded } from '../../staticpod/objects.ts';
import type { StaticPodOperator } from '../../staticpod/operator.ts';
import { CLIENT_CA, type CombinedBundle, ensureCombinedBundle, SERVER_CA } from '../combined-bundles.ts';
import { OPERAND_NAMESPACE } from '../namespaces.ts';
import { RESOURCES_MOUNT } from '../operand-objects.ts';
import type { Config, KubeAPIServerSpec } from '../resources.ts';
import { configConfigMap, serverConfig, serverFlags } from './config.ts';
import type { Flavor } from './default-config.ts';
import { kubeApiserverPod, type PodOptions } from './pod.ts';
import { RECOVERY_ACCOUNT, RECOVERY_TOKEN, recoveryTokenProblem } from './recovery-token.ts';
import { missingConfig } from './required-config.ts';
import { STARTUP_MONITOR_KEY, startupMonitorPod } from './startup-monitor-pod.ts';
import { podValues } from './template.ts';

/** What runs, and where it comes from. */
export interface OperandProgram extends Omit<PodOptions, 'server'> {
  readonly flavor: Flavor;
  /** How the plain kube-apiserver is started. */
  readonly serverCommand?: readonly string[] | undefined;
  /** Further flags of the plain kube-apiserver, which count more than those of its configuration. */
  readonly moreFlags?: readonly string[] | undefined;
  /** The version of the operator; a new one rolls out anew. */
  readonly version: string;
}

export interface TargetConfigOptions {
  readonly kube: Kube;
  readonly operator: StaticPodOperator;
  readonly cached: Objects;
  readonly program: OperandProgram;
  readonly hasStartupMonitor: () => boolean | Promise<boolean>;
}

const CONDITION = 'TargetConfigControllerDegraded';
const TRUSTED_CA = { namespace: OPERAND_NAMESPACE, name: 'trusted-ca-bundle' };
const INJECT = 'config.openshift.io/inject-trusted-cabundle';

/** Builds what the static pod is made from. The steps are independent: one failing does not stop the others (spec 20, 2.2.5). */
export function targetConfigReconcile(options: TargetConfigOptions): Reconcile {
  return async (_key, context) => {
    const { operator } = options;
    const { spec = {} } = (await operator.read(context.signal)) as { spec?: KubeAPIServerSpec };
    if (!isToAct(spec.managementState, context)) return undefined;
    const missing = missingConfig(spec.observedConfig);
    if (missing !== undefined) {
      context.events.event('Warning', 'ConfigMissing', missing);
      throw new Error(missing);
    }
    const errors: string[] = [];
    let againAt: Date | undefined;
    let lost: unknown;
    for (const [name, step] of Object.entries(STEPS)) {
      try {
        againAt = earlier(againAt, (await step(options, spec, context)) ?? undefined);
      } catch (error) {
        // Somebody else wrote first: nothing is wrong, the step is simply due again.
        if (isConflict(error)) lost = error;
        else errors.push(`"${name}": ${errorText(error)}`);
      }
    }
    const message = errors.join('\n');
    await operator.setConditions(
      [message === '' ? condition(CONDITION, 'False') : condition(CONDITION, 'True', 'SynchronizationError', message)],
      context.signal,
    );
    if (message !== '') throw new RetryRequest(message);
    if (lost !== undefined) throw new RetryRequest(errorText(lost));
    return { againAt };
  };
}

/** Only `Managed` has it work; a value that nobody knows is told (spec 20, 6.1). */
export function isToAct(state: string | undefined, { events }: Pick<ReconcileContext, 'events'>): boolean {
  if (state === 'Managed') return true;
  if (state !== 'Unmanaged' && state !== 'Removed') {
    events.event('Warning', 'ManagementStateUnknown', `Unrecognized operator management state "${state ?? ''}"`);
  }
  return false;
}

type Step = (
  options: TargetConfigOptions,
  spec: KubeAPIServerSpec,
  context: ReconcileContext,
) => Promise<Date | void | undefined>;

const STEPS: Readonly<Record<string, Step>> = {
  'configmap/config': async (options, spec, context) => {
    await ensureConfigMap(options, context, configConfigMap(serverConfig(options.program.flavor, spec)));
  },
  'configmap/kube-apiserver-pod': async (options, spec, context) => {
    await ensureConfigMap(options, context, await podConfigMap(options, spec));
  },
  'configmap/client-ca': (options, _spec, context) => ensureBundle(CLIENT_CA, options, context),
  'configmap/kube-apiserver-server-ca': (options, _spec, context) => ensureBundle(SERVER_CA, options, context),
  'configmap/trusted-ca-bundle': async ({ kube, cached }, _spec, { events, signal }) => {
    await writeIfNeeded(cached, { kube, events, signal }, async context => {
      // The content is somebody else's: only the wish for it is ours.
      const { data, binaryData } = (await getIfPresent(context.kube, CONFIG_MAPS, TRUSTED_CA, { signal })) ?? {};
      const metadata = { ...TRUSTED_CA, labels: { [INJECT]: 'true' } };
      await applyConfigMap(context, { metadata, ...(data && { data }), ...(binaryData && { binaryData }) });
    });
  },
  'serviceaccount/localhost-recovery-client': async ({ cached }) => {
    const account = await cached.get(SERVICE_ACCOUNTS, RECOVERY_ACCOUNT);
    const problem = recoveryTokenProblem(account, await cached.get(SECRETS, RECOVERY_TOKEN));
    if (problem !== undefined) throw new Error(problem);
  },
};

async function ensureConfigMap(
  { kube, cached }: TargetConfigOptions,
  { events, signal }: ReconcileContext,
  required: ConfigMap,
): Promise<void> {
  await writeIfNeeded(cached, { kube, events, signal }, context => applyConfigMap(context, required));
}

async function ensureBundle(
  bundle: CombinedBundle,
  { kube, cached }: TargetConfigOptions,
  { events, signal, clock }: ReconcileContext,
): Promise<Date> {
  const read = (source: { namespace: string; name: string }) => cached.get(CONFIG_MAPS, source);
  const { until } = await writeIfNeeded(cached, { kube, events, signal }, context =>
    ensureCombinedBundle(bundle, read, context, clock.now()),
  );
  return until;
}

/** ConfigMap `kube-apiserver-pod` (spec 20, 4.3.3). */
async function podConfigMap(options: TargetConfigOptions, spec: KubeAPIServerSpec): Promise<ConfigMap> {
  const { program } = options;
  const values = podValues(spec);
  const config = serverConfig(program.flavor, spec);
  const server =
    program.flavor === 'openshift'
      ? ({ flavor: 'openshift' } as const)
      : ({
          flavor: 'kubernetes',
          command: program.serverCommand ?? ['kube-apiserver'],
          flags: [...(await plainFlags(config, options)), ...(program.moreFlags ?? [])],
        } as const);
  const monitor = (await options.hasStartupMonitor())
    ? { [STARTUP_MONITOR_KEY]: JSON.stringify(startupMonitorPod({ ...program, verbosity: values.verbosity })) }
    : {};
  return {
    metadata: { namespace: OPERAND_NAMESPACE, name: 'kube-apiserver-pod' },
    data: {
      'pod.yaml': JSON.stringify(kubeApiserverPod(values, { ...program, server })),
      forceRedeploymentReason: spec.forceRedeploymentReason ?? '',
      version: program.version,
      ...monitor,
    },
  };
}

/** The plain server wants to be told of every file with public keys: they are the keys of the ConfigMaps behind the directories. */
async function plainFlags(config: Config, { cached }: TargetConfigOptions): Promise<string[]> {
  const files = new Map<string, readonly string[]>();
  for (const name of ['sa-token-signing-certs', 'bound-sa-token-signing-certs']) {
    const configMap = await cached.get(CONFIG_MAPS, { namespace: OPERAND_NAMESPACE, name });
    if (configMap === undefined) throw new Error(`configmap ${OPERAND_NAMESPACE}/${name} does not exist yet`);
    files.set(`${RESOURCES_MOUNT}/configmaps/${name}`, Object.keys(configMap.data ?? {}).sort());
  }
  return serverFlags(config, directory => files.get(directory) ?? []);
}
