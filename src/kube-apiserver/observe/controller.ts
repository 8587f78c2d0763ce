import type { Condition } from '../../controller/condition.ts';
import { type Reconcile, RetryRequest } from '../../controller/reconcile.ts';
import { semanticallyEqual } from '../../kube/equality.ts';
import { isConflict } from '../../kube/error.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, type ObjectKey, SECRETS } from '../../kube/resource.ts';
import type { Objects } from '../../staticpod/objects.ts';
import type { StaticPodOperator } from '../../staticpod/operator.ts';
import type { SyncRules } from '../../staticpod/resource-sync.ts';
import { type CopyRule, OBSERVED_COPIES } from '../copies.ts';
import { CONFIG_NAMESPACE, ETCD_NAMESPACE, MANAGED_NAMESPACE, OPERAND_NAMESPACE } from '../namespaces.ts';
import {
  API_SERVERS,
  AUTHENTICATIONS,
  CLUSTER,
  type Config,
  INFRASTRUCTURES,
  KUBE_API_SERVERS,
  type KubeAPIServer,
  NETWORKS,
  PROXIES,
} from '../resources.ts';
import type { ObserveInputs } from './observation.ts';
import { observeAll } from './observe.ts';

export interface ConfigObserverOptions {
  readonly kube: Kube;
  readonly operator: StaticPodOperator;
  readonly cached: Objects;
  readonly rules: SyncRules;
}

export const CONFIG_OBSERVATION_DEGRADED = 'ConfigObservationDegraded';
export const ETCD_ENDPOINTS = { namespace: ETCD_NAMESPACE, name: 'etcd-endpoints' };

/** Writes what the observers see into `spec.observedConfig`, and has their copies made (spec 20, 0.1). */
export function configObserverReconcile({ kube, operator, cached, rules }: ConfigObserverOptions): Reconcile {
  return async (_key, { events, signal }) => {
    const inputs = await readInputs(cached);
    const previous = inputs.operator?.spec?.observedConfig ?? {};
    const { config, copies, errors, events: news } = observeAll(inputs, previous);
    const problems = [...errors, ...register(rules, copies)];
    for (const { type, reason, message } of news) events.event(type, reason, message);
    if (!semanticallyEqual(previous, config)) {
      await writeObserved(kube, config, signal);
      events.event(
        'Normal',
        'ObservedConfigChanged',
        `Writing updated observed config: ${changedPaths(previous, config)}`,
      );
    }
    await operator.setConditions([conditionOf(problems)], signal);
  };
}

function conditionOf(problems: readonly string[]): Condition {
  const type = CONFIG_OBSERVATION_DEGRADED;
  if (problems.length === 0) return { type, status: 'False', reason: 'AsExpected' };
  return { type, status: 'True', reason: 'Error', message: problems.join('\n') };
}

async function readInputs(cached: Objects): Promise<ObserveInputs> {
  const secrets = new Map<string, Awaited<ReturnType<typeof readSecret>>>();
  const readSecret = (key: ObjectKey) => cached.get(SECRETS, key);
  const [apiServer, authentication] = [
    await cached.get(API_SERVERS, CLUSTER),
    await cached.get(AUTHENTICATIONS, CLUSTER),
  ];
  const named = apiServer?.spec?.servingCerts?.namedCertificates ?? [];
  const webhook = authentication?.spec?.webhookTokenAuthenticator?.kubeConfig?.name;
  for (const name of [...named.map(entry => entry?.servingCertificate?.name), webhook]) {
    if (name) secrets.set(name, await readSecret({ namespace: CONFIG_NAMESPACE, name }));
  }
  return {
    apiServer,
    authentication,
    infrastructure: await cached.get(INFRASTRUCTURES, CLUSTER),
    network: await cached.get(NETWORKS, CLUSTER),
    proxy: await cached.get(PROXIES, CLUSTER),
    operator: await cached.get(KUBE_API_SERVERS, CLUSTER),
    etcdEndpoints: await cached.get(CONFIG_MAPS, ETCD_ENDPOINTS),
    cloudConfig: await cached.get(CONFIG_MAPS, { namespace: MANAGED_NAMESPACE, name: 'kube-cloud-config' }),
    encryptionConfig: await readSecret({ namespace: OPERAND_NAMESPACE, name: 'encryption-config' }),
    encryptionSource: await readSecret(OBSERVED_COPIES.encryptionConfig.source),
    userSecret: name => secrets.get(name),
  };
}

/** Puts rules in place that are not there yet; says which could not be. */
export function register(rules: SyncRules, copies: readonly CopyRule[]): string[] {
  const errors: string[] = [];
  for (const { kind, destination, source } of copies) {
    const known = rules.get(kind).find(rule => semanticallyEqual(rule.destination, destination));
    if (known !== undefined && semanticallyEqual(known.source, source)) continue;
    try {
      rules.add(kind, destination, source);
    } catch (error) {
      errors.push((error as Error).message);
    }
  }
  return errors;
}

async function writeObserved(kube: Kube, observedConfig: Config, signal: AbortSignal): Promise<void> {
  const operator: KubeAPIServer = await kube.get(KUBE_API_SERVERS, CLUSTER, { signal });
  try {
    await kube.update(KUBE_API_SERVERS, { ...operator, spec: { ...operator.spec, observedConfig } }, { signal });
  } catch (error) {
    // A condition was written in between: nothing is wrong.
    throw isConflict(error) ? new RetryRequest(error.message) : error;
  }
}

const MOST_PATHS_TOLD = 10;

/** Which fields differ; values could be anything, so they are not told. */
function changedPaths(before: Config, after: Config): string {
  const paths: string[] = [];
  const walk = (a: unknown, b: unknown, path: string) => {
    if (semanticallyEqual(a, b)) return;
    const areMappings = [a, b].every(part => typeof part === 'object' && part !== null && !Array.isArray(part));
    if (!areMappings) {
      paths.push(path);
      return;
    }
    const keys = new Set([...Object.keys(a as object), ...Object.keys(b as object)]);
    for (const key of keys) walk((a as Config)[key], (b as Config)[key], path === '' ? key : `${path}.${key}`);
  };
  walk(before, after, '');
  const told = paths.sort().slice(0, MOST_PATHS_TOLD).join(', ');
  return paths.length > MOST_PATHS_TOLD ? `${told} and ${paths.length - MOST_PATHS_TOLD} more` : told;
}
