import type { Secret, ServiceAccount } from 'kubernetes-types/core/v1.d.ts';
import type { Dns } from '../../machine-config-api/cluster-config.ts';
import {
  DockerConfigError,
  encodeDockerConfigJson,
  parseDockerConfigJson,
  parseDockercfg,
  type RegistryAuth,
  type RegistryAuths,
} from '../../machine-config-api/docker-config.ts';
import {
  CONFIG_NAMESPACE,
  DOCKER_CFG_KEY,
  DOCKER_CONFIG_JSON_KEY,
  DOCKER_CONFIG_JSON_TYPE,
  MCO_NAMESPACE,
} from '../../machine-config-api/names.ts';
import { SourceError } from './error.ts';

export const PULL_SECRET = 'pull-secret';
/** What is watched of its namespace: the signers of etcd that lie beside it are nothing to us. */
export const ONLY_PULL_SECRET = { namespace: CONFIG_NAMESPACE, fieldSelector: `metadata.name=${PULL_SECRET}` } as const;
const IN_CLUSTER_REGISTRY = 'image-registry.openshift-image-registry.svc:5000';
const DEFAULT_ROUTE_PREFIX = 'default-route-openshift-image-registry.apps.';

export interface InternalPullSecretSources {
  /** Whether there is a ClusterOperator `image-registry`. */
  readonly hasImageRegistry: boolean;
  readonly puller: ServiceAccount | undefined;
  /** Reads a Secret of the operator's namespace. */
  readonly pullerSecret: (name: string) => Secret | undefined;
  readonly global: Secret | undefined;
  readonly dns: Dns | undefined;
}

/**
 * The credentials that nodes pull OS images from the cluster's own registry with: the puller's secrets, overridden by the
 * global pull secret, with the registry's entry repeated under its default route (spec 50, PS-1 to PS-6). Undefined where
 * there is nothing to pull from or with. Throws `SourceError`.
 */
export function internalPullSecret(sources: InternalPullSecretSources): string | undefined {
  const { hasImageRegistry, puller, pullerSecret, global, dns } = sources;
  if (!hasImageRegistry) return undefined;
  if (dns === undefined) throw new SourceError('dns cluster', '', 'dns cluster not found');
  if (puller === undefined) return undefined;
  const auths: Record<string, RegistryAuth> = Object.create(null) as Record<string, RegistryAuth>;
  for (const { name = '' } of puller.imagePullSecrets ?? []) {
    Object.assign(auths, pullerAuths(name, pullerSecret(name)));
  }
  Object.assign(auths, globalAuths(global));
  const registry = auths[IN_CLUSTER_REGISTRY];
  if (registry !== undefined) auths[DEFAULT_ROUTE_PREFIX + (dns.spec?.baseDomain ?? '')] = registry;
  return Object.keys(auths).length === 0 ? undefined : encodeDockerConfigJson(auths);
}

/** The global pull secret's own text, checked (spec 50, 3.7). Throws `SourceError`. */
export function globalPullSecretText(global: Secret | undefined): string {
  const object = `secret ${CONFIG_NAMESPACE}/${PULL_SECRET}`;
  if (global === undefined) throw new SourceError(object, '', `${object} not found`);
  if (global.type !== DOCKER_CONFIG_JSON_TYPE) {
    const message = `expected secret type ${DOCKER_CONFIG_JSON_TYPE} found ${global.type ?? ''}`;
    throw new SourceError(object, 'type', `${object}: ${message}`);
  }
  const text = textOf(global, DOCKER_CONFIG_JSON_KEY);
  if (text === undefined)
    throw new SourceError(object, DOCKER_CONFIG_JSON_KEY, `${object}: ${DOCKER_CONFIG_JSON_KEY} not found`);
  return text;
}

function globalAuths(global: Secret | undefined): RegistryAuths {
  const text = globalPullSecretText(global);
  return parsed(`secret ${CONFIG_NAMESPACE}/${PULL_SECRET}`, DOCKER_CONFIG_JSON_KEY, () => parseDockerConfigJson(text));
}

function pullerAuths(name: string, secret: Secret | undefined): RegistryAuths {
  const object = `secret ${MCO_NAMESPACE}/${name}`;
  if (secret === undefined) throw new SourceError(object, '', `${object} not found`);
  const text = textOf(secret, DOCKER_CFG_KEY);
  if (text === undefined) throw new SourceError(object, DOCKER_CFG_KEY, `${object}: ${DOCKER_CFG_KEY} not found`);
  return parsed(object, DOCKER_CFG_KEY, () => parseDockercfg(text));
}

function parsed(object: string, field: string, parse: () => RegistryAuths): RegistryAuths {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof DockerConfigError)) throw error;
    throw new SourceError(object, field, `${object}: ${field}: ${error.message}`);
  }
}

function textOf({ data }: Secret, key: string): string | undefined {
  return data && Object.hasOwn(data, key) ? Buffer.from(data[key] as string, 'base64').toString('utf8') : undefined;
}
