import { readFileSync } from 'node:fs';
import { CORE_SCHEMA, load } from 'js-yaml';
import { PathMap } from '../staticpod/node/path-map.ts';
import type { InputSpec } from './stand-in-input.ts';

type Env = Readonly<Record<string, string | undefined>>;

/** Flags of any name with all their values; a flag without one has the value `true`. */
export class Flags {
  readonly #values = new Map<string, string[]>();

  constructor(argv: readonly string[]) {
    for (let index = 0; index < argv.length; index++) {
      const match = /^--?([^=]+)(?:=(.*))?$/s.exec(argv[index] as string);
      if (match === null) continue;
      const next = argv[index + 1];
      const takesNext = match[2] === undefined && next !== undefined && !next.startsWith('-');
      if (takesNext) index++;
      this.add(match[1] as string, takesNext ? next : (match[2] ?? 'true'));
    }
  }

  add(name: string, value: string): void {
    this.#values.set(name, [...this.all(name), value]);
  }

  all(name: string): readonly string[] {
    return this.#values.get(name) ?? [];
  }

  /** The last one counts. */
  get(name: string): string | undefined {
    return this.all(name).at(-1);
  }
}

/** A certificate for some names; none given: those in the certificate. */
export interface SniPair {
  readonly cert: string;
  readonly key: string;
  readonly names: readonly string[];
}

export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

/** What a TLS server needs to know before it starts. */
export interface ServerSettings {
  readonly listen: readonly Endpoint[];
  readonly serving: { readonly cert: string; readonly key: string };
  readonly sni: readonly SniPair[];
  readonly clientCa?: string | undefined;
  /** The pair and the CA are read again at: */
  readonly servingReload: InputSpec['reload'];
  readonly clientCaReload: InputSpec['reload'];
  /** Whatever else the real server reads. */
  readonly others: readonly InputSpec[];
}

/** Files of kube-apiserver besides those of its listener, by flag, with the reload rules of spec 20, section 7. */
const PAIRS = [
  ['proxy-client', 'proxy-client-cert-file', 'proxy-client-key-file', 'watch'],
  ['kubelet-client', 'kubelet-client-certificate', 'kubelet-client-key', 'watch'],
  ['etcd-client', 'etcd-certfile', 'etcd-keyfile', 'handshake'],
] as const;
const SINGLES = [
  ['requestheader-client-ca', 'requestheader-client-ca-file', 'bundle', 'watch'],
  ['kubelet-ca', 'kubelet-certificate-authority', 'bundle', 'start'],
  ['etcd-ca', 'etcd-cafile', 'bundle', 'start'],
  ['service-account-signing-key', 'service-account-signing-key-file', 'key', 'start'],
  ['token-webhook', 'authentication-token-webhook-config-file', 'file', 'start'],
  ['encryption-config', 'encryption-provider-config', 'file', 'start'],
  ['audit-policy', 'audit-policy-file', 'file', 'start'],
] as const;

/** kube-apiserver tells clients of these together with the client CAs (spec 20, section 7). */
const LISTED = 'requestheader-client-ca';
const DEFAULT_PORT = 6443;

/** The settings of kube-apiserver, from its flags and from OpenShift's configuration file (spec 20, 4.4). */
export function apiserverSettings(argv: readonly string[], env: Env): ServerSettings {
  const paths = PathMap.fromEnv(env);
  const flags = new Flags(argv);
  const configPath = flags.get('openshift-config');
  const config = configPath === undefined ? {} : readConfig(configPath);
  const given = new Flags([]);
  for (const [name, values] of Object.entries(config.apiServerArguments ?? {})) {
    if (flags.all(name).length === 0) for (const value of values) given.add(name, value);
  }
  const one = (name: string): string | undefined => flags.get(name) ?? given.get(name);
  const all = (name: string): readonly string[] => (flags.all(name).length > 0 ? flags.all(name) : given.all(name));
  const path = (name: string): string | undefined => {
    const value = one(name);
    return value === undefined ? undefined : paths.outside(value);
  };
  const { servingInfo = {} } = config;
  const cert = path('tls-cert-file') ?? mapped(servingInfo.certFile, paths);
  const key = path('tls-private-key-file') ?? mapped(servingInfo.keyFile, paths);
  if (cert === undefined || key === undefined)
    throw new Error('--tls-cert-file and --tls-private-key-file are required');
  const named = (servingInfo.namedCertificates ?? []).map(({ certFile = '', keyFile = '', names = [] }) => ({
    cert: paths.outside(certFile),
    key: paths.outside(keyFile),
    names,
  }));
  const publicKeys = [...all('service-account-key-file'), ...(config.serviceAccountPublicKeyFiles ?? [])];
  const others: InputSpec[] = [];
  for (const [name, certFlag, keyFlag, reload] of PAIRS) {
    const [certPath, keyPath] = [path(certFlag), path(keyFlag)];
    if (certPath !== undefined && keyPath !== undefined)
      others.push({ name, kind: 'pair', paths: [certPath, keyPath], reload });
  }
  for (const [name, flag, kind, reload] of SINGLES) {
    const file = path(flag);
    if (file !== undefined)
      others.push({ name, kind, paths: [file], reload, ...(name === LISTED && { isListed: true }) });
  }
  if (publicKeys.length > 0) {
    const files = publicKeys.map(file => paths.outside(file));
    others.push({ name: 'service-account-public-keys', kind: 'directory', paths: files, reload: 'start' });
  }
  if (configPath !== undefined)
    others.push({ name: 'openshift-config', kind: 'file', paths: [configPath], reload: 'start' });
  return {
    listen: [listenAddress(one('bind-address'), one('secure-port'), servingInfo.bindAddress, env)],
    serving: { cert, key },
    sni: [...all('tls-sni-cert-key').map(value => sniPair(value, paths)), ...named],
    clientCa: path('client-ca-file') ?? mapped(servingInfo.clientCA, paths),
    servingReload: 'watch',
    clientCaReload: 'watch',
    others,
  };
}

/** The settings of etcd's client, peer and metrics listeners, the last as the first: leaves at every handshake, CAs only at the start. */
export function etcdSettings(argv: readonly string[], env: Env): EtcdSettings {
  const flags = new Flags(argv);
  const paths = PathMap.fromEnv(env);
  const path = (name: string): string | undefined => mapped(flags.get(name), paths);
  const urlsOf = (flag: string): string[] => (flags.get(flag) ?? '').split(',').filter(Boolean);
  const isPlain = (url: string): boolean => url.startsWith('http:');
  const listener = (prefix: string, urls: string): ServerSettings | undefined => {
    const [cert, key] = [path(`${prefix}cert-file`), path(`${prefix}key-file`)];
    const endpoints = urlsOf(urls)
      .filter(url => !isPlain(url))
      .map(url => endpointOf(url, env));
    if (cert === undefined || key === undefined || endpoints.length === 0) return undefined;
    const clientCa = path(`${prefix}trusted-ca-file`);
    const rules = { servingReload: 'handshake', clientCaReload: 'start' } as const;
    return { listen: endpoints, serving: { cert, key }, sni: [], clientCa, ...rules, others: [] };
  };
  const client = listener('', 'listen-client-urls');
  if (client === undefined) throw new Error('--cert-file, --key-file and --listen-client-urls are required');
  return {
    client,
    peer: listener('peer-', 'listen-peer-urls'),
    metrics: listener('', 'listen-metrics-urls'),
    plainMetrics: urlsOf('listen-metrics-urls')
      .filter(isPlain)
      .map(url => endpointOf(url, env)),
    member: { name: flags.get('name') ?? '', clientURLs: urlsOf('advertise-client-urls') },
  };
}

interface EtcdSettings {
  readonly client: ServerSettings;
  readonly peer: ServerSettings | undefined;
  readonly metrics: ServerSettings | undefined;
  /** Where metrics are served without TLS. */
  readonly plainMetrics: readonly Endpoint[];
  /** What it is to others. */
  readonly member: { readonly name: string; readonly clientURLs: readonly string[] };
}

/** `cert,key` or `cert,key:name,name`. */
function sniPair(value: string, paths: PathMap): SniPair {
  const match = /^([^,]+),([^,:]+)(?::(.*))?$/.exec(value);
  if (match === null) throw new Error(`--tls-sni-cert-key: expected cert,key[:names], found ${JSON.stringify(value)}`);
  const [, cert = '', key = '', names = ''] = match;
  return { cert: paths.outside(cert), key: paths.outside(key), names: names.split(',').filter(Boolean) };
}

/** Several nodes share this machine: who would listen everywhere listens at the address of its node. */
function listenAddress(
  host: string | undefined,
  port: string | undefined,
  bindAddress: string | undefined,
  env: Env,
): Endpoint {
  const match = /^(.*):(\d+)$/.exec(bindAddress ?? '');
  const wanted = host ?? match?.[1]?.replace(/^\[(.*)\]$/, '$1') ?? '0.0.0.0';
  return { host: ownAddress(wanted, env), port: Number(port ?? match?.[2] ?? DEFAULT_PORT) };
}

function endpointOf(url: string, env: Env): Endpoint {
  const { hostname, port } = new URL(url);
  return { host: ownAddress(hostname.replace(/^\[(.*)\]$/, '$1'), env), port: Number(port) };
}

function ownAddress(host: string, env: Env): string {
  const isAll = host === '0.0.0.0' || host === '::' || host === '';
  return isAll ? env.ROTUNDA_NODE_ADDRESS || host || '0.0.0.0' : host;
}

interface OpenShiftConfig {
  readonly apiServerArguments?: Readonly<Record<string, readonly string[]>>;
  readonly serviceAccountPublicKeyFiles?: readonly string[];
  readonly servingInfo?: {
    readonly bindAddress?: string;
    readonly certFile?: string;
    readonly keyFile?: string;
    readonly clientCA?: string;
    readonly namedCertificates?: readonly { certFile?: string; keyFile?: string; names?: readonly string[] }[];
  };
}

function readConfig(path: string): OpenShiftConfig {
  const value = load(readFileSync(path, 'utf8'), { schema: CORE_SCHEMA });
  if (typeof value !== 'object' || value === null) throw new Error(`${path}: expected a configuration, found nothing`);
  return value;
}

function mapped(path: string | undefined, paths: PathMap): string | undefined {
  return path === undefined || path === '' ? undefined : paths.outside(path);
}
