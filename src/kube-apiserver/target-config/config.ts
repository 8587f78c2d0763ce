import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { OPERAND_NAMESPACE } from '../namespaces.ts';
import type { Config, ConfigValue, KubeAPIServerSpec } from '../resources.ts';
import { defaultConfig, type Flavor } from './default-config.ts';
import { canonicalJson, isMapping, mergeConfigs, valueAt } from './merge.ts';
import { conforming, SERVER_CONFIG } from './schema.ts';

type Specified = Pick<KubeAPIServerSpec, 'observedConfig' | 'unsupportedConfigOverrides'>;

/**
 * The whole configuration of the server: defaults, then what was observed, then what somebody insists on. Throws where that is no
 * configuration of kube-apiserver.
 */
export function serverConfig(flavor: Flavor, { observedConfig, unsupportedConfigOverrides }: Specified): Config {
  const defaults = defaultConfig(flavor);
  for (const layer of [observedConfig, unsupportedConfigOverrides]) checkType(layer, defaults);
  return conforming(mergeConfigs(defaults, observedConfig, unsupportedConfigOverrides), SERVER_CONFIG);
}

/** A layer that says what it is must be what it lies on. */
function checkType(layer: Config | null | undefined, below: Config): void {
  const [own, wanted] = [typeOf(layer), typeOf(below)];
  if (own !== '/' && own !== wanted) throw new Error(`${own} does not equal ${wanted}`);
}

function typeOf(config: Config | null | undefined): string {
  return [config?.apiVersion, config?.kind].map(part => (typeof part === 'string' ? part : '')).join('/');
}

/** ConfigMap `config`. */
export function configConfigMap(config: Config): ConfigMap {
  const metadata = { namespace: OPERAND_NAMESPACE, name: 'config' };
  return { metadata, data: { 'config.yaml': canonicalJson(config) } };
}

/** The plain kube-apiserver of today has no cloud providers built in, and no flags for them. */
const BUILT_IN_PROVIDERS: ReadonlySet<string> = new Set(['cloud-config', 'cloud-provider']);

/**
 * The configuration as flags of the plain kube-apiserver, which knows no configuration file. It takes files with public keys
 * where OpenShift's build takes directories: `filesIn` lists them.
 */
export function serverFlags(config: Config, filesIn: (directory: string) => readonly string[]): string[] {
  const given = valueAt(config, ['apiServerArguments']);
  const flags = new Map<string, readonly string[]>();
  for (const [name, values] of Object.entries(isMapping(given) ? given : {})) {
    if (!BUILT_IN_PROVIDERS.has(name)) flags.set(name, texts(values));
  }
  const [bindAddress, port] = splitAddress(textAt(config, ['servingInfo', 'bindAddress']));
  const origins = 'cors-allowed-origins';
  if (!flags.has(origins)) flags.set(origins, texts(valueAt(config, ['corsAllowedOrigins'])));
  flags.set('bind-address', [bindAddress]);
  flags.set('secure-port', [port]);
  flags.set('service-cluster-ip-range', [textAt(config, ['servicesSubnet'])]);
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
    const pair = `${textAt(entry, ['certFile'])},${textAt(entry, ['keyFile'])}`;
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
  return list(value).map(String);
}

function textAt(config: ConfigValue, path: readonly string[]): string {
  const value = valueAt(config, path);
  if (typeof value === 'string' && value !== '') return value;
  throw new Error(`expected a text in ${path.join('.')} of the configuration of kube-apiserver, found none`);
}
