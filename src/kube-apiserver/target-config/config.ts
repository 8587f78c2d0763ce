import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { OPERAND_NAMESPACE } from '../namespaces.ts';
import type { Config, ConfigValue, KubeAPIServerSpec } from '../resources.ts';
import { defaultConfig, type Flavor } from './default-config.ts';
import { canonicalJson, isMapping, mergeConfigs, pruneUnknown, type Shape, valueAt } from './merge.ts';

/** The fields the server's configuration has; what only the operator reads is not among them (spec 20, 4.3.6). */
const KNOWN: Shape = {
  apiVersion: true,
  kind: true,
  admission: { pluginConfig: true, enabledPlugins: true, disabledPlugins: true },
  apiServerArguments: true,
  auditConfig: true,
  authConfig: { oauthMetadataFile: true, requestHeader: true, webhookTokenAuthenticators: true },
  consolePublicURL: true,
  corsAllowedOrigins: true,
  imagePolicyConfig: true,
  kubeClientConfig: true,
  kubeletClientInfo: true,
  minimumKubeletVersion: true,
  projectConfig: { defaultNodeSelector: true },
  serviceAccountPublicKeyFiles: true,
  servicesNodePortRange: true,
  servicesSubnet: true,
  servingInfo: true,
  storageConfig: true,
  userAgentMatchingConfig: true,
};

type Specified = Pick<KubeAPIServerSpec, 'observedConfig' | 'unsupportedConfigOverrides'>;

/** The whole configuration of the server: defaults, then what was observed, then what somebody insists on. */
export function serverConfig(flavor: Flavor, { observedConfig, unsupportedConfigOverrides }: Specified): Config {
  return pruneUnknown(mergeConfigs(defaultConfig(flavor), observedConfig, unsupportedConfigOverrides), KNOWN);
}

/** ConfigMap `config`. */
export function configConfigMap(config: Config): ConfigMap {
  const metadata = { namespace: OPERAND_NAMESPACE, name: 'config' };
  return { metadata, data: { 'config.yaml': canonicalJson(config) } };
}

/**
 * The configuration as flags of the plain kube-apiserver, which knows no configuration file. It takes files with public keys
 * where OpenShift's build takes directories: `filesIn` lists them.
 */
export function serverFlags(config: Config, filesIn: (directory: string) => readonly string[]): string[] {
  const given = valueAt(config, ['apiServerArguments']);
  const flags = new Map<string, readonly string[]>();
  for (const [name, values] of Object.entries(isMapping(given) ? given : {})) flags.set(name, texts(values));
  const [bindAddress, port] = splitAddress(text(valueAt(config, ['servingInfo', 'bindAddress'])));
  flags.set('bind-address', [bindAddress]);
  flags.set('secure-port', [port]);
  flags.set('service-cluster-ip-range', [text(valueAt(config, ['servicesSubnet']))]);
  flags.set('tls-sni-cert-key', namedCertificateFlags(valueAt(config, ['servingInfo', 'namedCertificates'])));
  const directories = texts(valueAt(config, ['serviceAccountPublicKeyFiles']));
  flags.set(
    'service-account-key-file',
    directories.flatMap(directory => filesIn(directory).map(file => `${directory}/${file}`)),
  );
  return [...flags.keys()].sort().flatMap(name => (flags.get(name) ?? []).map(value => `--${name}=${value}`));
}

/** `<certificate>,<key>[:<names>]`, the earlier ones first as in the configuration. */
function namedCertificateFlags(named: ConfigValue | undefined): string[] {
  return list(named).map(entry => {
    const names = texts(valueAt(entry, ['names']));
    const pair = `${text(valueAt(entry, ['certFile']))},${text(valueAt(entry, ['keyFile']))}`;
    return names.length === 0 ? pair : `${pair}:${names.join(',')}`;
  });
}

function splitAddress(address: string): [host: string, port: string] {
  const colon = address.lastIndexOf(':');
  return [address.slice(0, colon).replace(/^\[|\]$/g, ''), address.slice(colon + 1)];
}

function list(value: ConfigValue | undefined): readonly ConfigValue[] {
  return Array.isArray(value) ? (value as readonly ConfigValue[]) : [];
}

function texts(value: ConfigValue | undefined): string[] {
  return typeof value === 'string' ? [value] : list(value).map(text);
}

function text(value: ConfigValue | undefined): string {
  return typeof value === 'string' ? value : '';
}
