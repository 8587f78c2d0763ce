import { access as canAccess } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { CORE_SCHEMA, load as parseYaml, YAMLException } from 'js-yaml';
import { type Access, type Connection, RereadAccess, type TlsMaterial } from './access.ts';
import { type Clock, systemClock } from './clock.ts';
import { type ExecConfig, ExecCredentials, parseExec, type RunPlugin, runPlugin } from './exec-credential.ts';
import { inClusterAccess, isInCluster } from './in-cluster.ts';
import { readSmallFile } from './small-file.ts';

export interface LoadOptions {
  /** A file that has to exist. Absent: `KUBECONFIG`, then `~/.kube/config`, then the service account of the pod. */
  readonly path?: string | undefined;
  /** Absent: the file's `current-context`. */
  readonly context?: string | undefined;
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  readonly home?: string | undefined;
  readonly clock?: Clock | undefined;
  readonly onError?: ((error: Error) => void) | undefined;
  readonly runPlugin?: RunPlugin | undefined;
  /** Where a file that the kubeconfig names is; where it says unless told otherwise. */
  readonly placeOf?: ((path: string) => string) | undefined;
}

/** Finds out how to reach the API the way `kubectl` does. */
export async function loadAccess(options: LoadOptions = {}): Promise<Access> {
  const env = options.env ?? process.env;
  const { clock = systemClock, onError } = options;
  const paths = await kubeconfigPaths(options, env);
  if (paths.length === 0 && isInCluster(env)) return inClusterAccess({ env, clock, onError });
  if (paths.length === 0) {
    throw new Error('no kubeconfig found: neither in KUBECONFIG nor at ~/.kube/config, and this is not a pod');
  }
  const plugins = new PluginCache(clock, options.runPlugin ?? runPlugin, env);
  const { placeOf = path => path } = options;
  const read = async () => chooseContext(await readKubeconfig(paths, placeOf), options.context);
  const { namespace } = await read();
  return new RereadAccess(async refresh => connect(await read(), plugins, refresh), { namespace, clock, onError });
}

async function kubeconfigPaths(
  { path, home = homedir() }: LoadOptions,
  env: Readonly<Record<string, string | undefined>>,
): Promise<string[]> {
  if (path !== undefined) return [resolve(path)];
  const listed = env.KUBECONFIG ?? '';
  const candidates = listed === '' ? [join(home, '.kube', 'config')] : listed.split(delimiter).filter(Boolean);
  const present = await Promise.all(candidates.map(candidate => exists(candidate)));
  const paths = candidates.filter((_, index) => present[index]).map(candidate => resolve(candidate));
  if (paths.length === 0 && listed !== '') throw new Error(`none of the files in KUBECONFIG exists: ${listed}`);
  return paths;
}

async function exists(path: string): Promise<boolean> {
  try {
    await canAccess(path);
    return true;
  } catch {
    return false;
  }
}

type Fields = Record<string, unknown>;
type PlaceOf = (path: string) => string;

/** Several files seen as one. Each entry remembers the directory of its file, which its relative paths start from. */
interface Kubeconfig {
  readonly source: string;
  readonly currentContext: string;
  readonly contexts: ReadonlyMap<string, Entry>;
  readonly clusters: ReadonlyMap<string, Entry>;
  readonly users: ReadonlyMap<string, Entry>;
}

class Entry {
  readonly where: string;
  readonly directory: string;
  readonly fields: Fields;
  readonly #placeOf: PlaceOf;

  constructor(where: string, directory: string, fields: Fields, placeOf: PlaceOf) {
    this.where = where;
    this.directory = directory;
    this.fields = fields;
    this.#placeOf = placeOf;
  }

  /** Content of a file that is named relative to this one. */
  read(path: string): Promise<string> {
    return readSmallFile(this.#placeOf(resolve(this.directory, path)));
  }

  /** A text, undefined when absent or empty. */
  text(field: string): string | undefined {
    const value = this.fields[field];
    if (value === undefined || value === null || value === '') return undefined;
    if (typeof value !== 'string') throw new Error(`${this.where}: ${field} must be a string, is a ${typeof value}`);
    return value;
  }

  flag(field: string): boolean {
    const value = this.fields[field] ?? false;
    if (typeof value !== 'boolean') throw new Error(`${this.where}: ${field} must be true or false`);
    return value;
  }

  /** `<field>-data`, which wins, or the content of the file that `<field>` names. */
  async material(field: string): Promise<string | undefined> {
    const inline = this.text(`${field}-data`);
    if (inline !== undefined) return decodeBase64(inline, `${this.where}: ${field}-data`);
    const path = this.text(field);
    return path === undefined ? undefined : this.read(path);
  }
}

/** Reads and merges: the first file that has an entry, or a current context, wins. */
async function readKubeconfig(paths: readonly string[], placeOf: PlaceOf): Promise<Kubeconfig> {
  const [contexts, clusters, users] = [new Map(), new Map(), new Map()] as Map<string, Entry>[] as [
    Map<string, Entry>,
    Map<string, Entry>,
    Map<string, Entry>,
  ];
  let currentContext = '';
  for (const path of paths) {
    const file = parse(await readSmallFile(path), path);
    for (const [into, list, one] of [
      [contexts, 'contexts', 'context'],
      [clusters, 'clusters', 'cluster'],
      [users, 'users', 'user'],
    ] as const) {
      for (const [name, fields] of entriesOf(file, list, one, path)) {
        if (!into.has(name)) into.set(name, new Entry(`${path}: ${one} "${name}"`, dirname(path), fields, placeOf));
      }
    }
    const current = file['current-context'];
    if (currentContext === '' && typeof current === 'string') currentContext = current;
  }
  return { source: paths.join(delimiter), currentContext, contexts, clusters, users };
}

function parse(text: string, path: string): Fields {
  let content: unknown;
  let fault: string | undefined;
  try {
    content = text.trim() === '' ? {} : parseYaml(text, { schema: CORE_SCHEMA });
  } catch (error) {
    // The parser's error quotes the lines around the fault, and those may hold a key or a token: keep only where it is.
    fault = error instanceof YAMLException && error.mark ? ` in line ${error.mark.line + 1}` : '';
  }
  if (fault !== undefined) throw new Error(`${path}: not readable as YAML${fault}`);
  if (!isFields(content)) throw new Error(`${path}: expected a kubeconfig, found something that is no mapping`);
  return content;
}

function entriesOf(file: Fields, list: string, one: string, path: string): [name: string, fields: Fields][] {
  const entries = file[list] ?? [];
  if (!Array.isArray(entries)) throw new Error(`${path}: ${list} must be a list`);
  return entries.map((entry: unknown) => {
    if (!isFields(entry) || typeof entry.name !== 'string') throw new Error(`${path}: an entry of ${list} has no name`);
    const fields = entry[one] ?? {};
    if (!isFields(fields)) throw new Error(`${path}: ${one} "${entry.name}" must be a mapping`);
    return [entry.name, fields];
  });
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

interface Chosen {
  readonly cluster: Entry;
  readonly user: Entry | undefined;
  readonly namespace: string;
}

function chooseContext(config: Kubeconfig, wanted: string | undefined): Chosen {
  const name = wanted ?? config.currentContext;
  if (name === '') throw new Error(`${config.source}: no current-context; name one`);
  const context = config.contexts.get(name);
  if (context === undefined) throw new Error(`${config.source}: there is no context "${name}"`);
  const [clusterName, userName] = [context.text('cluster') ?? '', context.text('user')];
  const cluster = config.clusters.get(clusterName);
  if (cluster === undefined) throw new Error(`${context.where}: there is no cluster "${clusterName}"`);
  const user = userName === undefined ? undefined : config.users.get(userName);
  if (userName !== undefined && user === undefined) throw new Error(`${context.where}: there is no user "${userName}"`);
  return { cluster, user, namespace: context.text('namespace') ?? 'default' };
}

async function connect({ cluster, user }: Chosen, plugins: PluginCache, refresh: boolean): Promise<Connection> {
  const server = serverOf(cluster);
  const insecure = cluster.flag('insecure-skip-tls-verify');
  const ca = await cluster.material('certificate-authority');
  if (insecure && ca !== undefined) {
    throw new Error(`${cluster.where}: certificate-authority and insecure-skip-tls-verify exclude each other`);
  }
  const tls: TlsMaterial = { ca, insecure, serverName: cluster.text('tls-server-name') };
  if (user === undefined) return { server, tls, headers: {} };
  refuseUnsupported(user);
  const [certificate, key] = [await user.material('client-certificate'), await user.material('client-key')];
  const impersonation = impersonationOf(user);
  const authorization = await authorizationOf(user);
  if (user.fields.exec === undefined || user.fields.exec === null) {
    return { server, tls: { ...tls, certificate, key }, headers: { ...impersonation, ...authorization } };
  }
  const exec = parseExec(user.fields.exec, user.where, user.directory);
  const given = await plugins.of(exec).get({ server, ca, insecure, serverName: tls.serverName }, refresh);
  const bearer = given.token === undefined ? authorization : { authorization: `Bearer ${given.token}` };
  return {
    server,
    tls: { ...tls, certificate: given.certificate ?? certificate, key: given.key ?? key },
    headers: { ...impersonation, ...bearer },
  };
}

function serverOf(cluster: Entry): URL {
  const text = cluster.text('server');
  if (text === undefined) throw new Error(`${cluster.where}: has no server`);
  if (!URL.canParse(text)) throw new Error(`${cluster.where}: server is not a URL`);
  if (cluster.text('proxy-url') !== undefined) {
    throw new Error(`${cluster.where}: proxy-url is not supported; use a server that can be reached directly`);
  }
  return new URL(text);
}

function refuseUnsupported(user: Entry): void {
  if (user.fields['auth-provider'] === undefined) return;
  throw new Error(`${user.where}: auth-provider was removed from Kubernetes; use an exec credential plugin`);
}

/** A token file wins over a token, which stands in while the file cannot be read. */
async function authorizationOf(user: Entry): Promise<Record<string, string>> {
  const [token, tokenFile] = [user.text('token'), user.text('tokenFile')];
  const [username, password] = [user.text('username'), user.text('password')];
  if (tokenFile !== undefined) {
    try {
      const content = (await user.read(tokenFile)).trim();
      if (content !== '') return { authorization: `Bearer ${content}` };
      if (token === undefined) throw new Error(`${user.where}: the token file ${tokenFile} is empty`);
    } catch (error) {
      if (token === undefined) throw error;
    }
  }
  if (token !== undefined) return { authorization: `Bearer ${token.trim()}` };
  if (username === undefined) return {};
  return { authorization: `Basic ${Buffer.from(`${username}:${password ?? ''}`).toString('base64')}` };
}

function impersonationOf(user: Entry): Record<string, string | string[]> {
  const as = user.text('as');
  if (user.fields['as-user-extra'] !== undefined) throw new Error(`${user.where}: as-user-extra is not supported`);
  const [uid, groups] = [user.text('as-uid'), user.fields['as-groups'] ?? []];
  if (!Array.isArray(groups) || !groups.every(group => typeof group === 'string')) {
    throw new Error(`${user.where}: as-groups must be a list of strings`);
  }
  if (as === undefined && (uid !== undefined || groups.length > 0)) {
    throw new Error(`${user.where}: impersonating a uid or groups needs a user in "as"`);
  }
  return {
    ...(as === undefined ? {} : { 'impersonate-user': as }),
    ...(uid === undefined ? {} : { 'impersonate-uid': uid }),
    ...(groups.length === 0 ? {} : { 'impersonate-group': groups }),
  };
}

function decodeBase64(text: string, where: string): string {
  const compact = text.replaceAll(/\s/g, '');
  if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(compact)) {
    throw new Error(`${where} is not base64`);
  }
  return Buffer.from(compact, 'base64').toString('utf8');
}

/** Keeps what a plugin answered while the kubeconfig around it is read again and again. */
class PluginCache {
  readonly #make: (exec: ExecConfig) => ExecCredentials;
  #last: { readonly id: string; readonly credentials: ExecCredentials } | undefined;

  constructor(clock: Clock, run: RunPlugin, env: Readonly<Record<string, string | undefined>>) {
    this.#make = exec => new ExecCredentials(exec, { clock, run, env });
  }

  of(exec: ExecConfig): ExecCredentials {
    const id = JSON.stringify(exec);
    if (this.#last?.id !== id) this.#last = { id, credentials: this.#make(exec) };
    return this.#last.credentials;
  }
}
