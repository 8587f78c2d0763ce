import { spawn } from 'node:child_process';
import { resolve } from 'node:path';
import type { Clock } from './clock.ts';
import { minutes, seconds } from './duration.ts';
import { floorToMs, parseRfc3339 } from './time.ts';

/** A credential plugin as a kubeconfig names it (client.authentication.k8s.io). */
export interface ExecConfig {
  readonly apiVersion: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly provideClusterInfo: boolean;
  readonly installHint: string | undefined;
}

export interface ExecCredential {
  readonly token?: string | undefined;
  readonly certificate?: string | undefined;
  readonly key?: string | undefined;
}

/** What a plugin may be told about the cluster. */
export interface ClusterInfo {
  readonly server: URL;
  readonly ca: string | undefined;
  readonly insecure: boolean;
  readonly serverName: string | undefined;
}

/** Runs a plugin and gives what it wrote to its standard output. */
export type RunPlugin = (call: PluginCall) => Promise<string>;

export interface PluginCall {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly timeoutMs: number;
  readonly largestOutput: number;
}

const API_VERSIONS = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1'];
/** People log in through plugins, with a browser for instance, but not for ever. */
const PLUGIN_TIMEOUT_MS = minutes(1);
const LARGEST_OUTPUT_BYTES = 1024 * 1024;
/** Credentials are renewed so long before they end, so that no request carries one that ends on its way. */
const EARLY_MS = seconds(10);
/** A plugin whose credentials are refused, or that fails, is not started again sooner. */
const SHORTEST_GAP_MS = seconds(10);

/** The credentials of one plugin, kept until they expire or are refused. */
export class ExecCredentials {
  readonly #exec: ExecConfig;
  readonly #clock: Clock;
  readonly #run: RunPlugin;
  readonly #env: PluginCall['env'];
  #kept: { readonly credential: ExecCredential; readonly endsMs: number } | undefined;
  #failure: unknown;
  #ranMs = Number.NEGATIVE_INFINITY;

  constructor(exec: ExecConfig, world: { clock: Clock; run: RunPlugin; env: PluginCall['env'] }) {
    this.#exec = exec;
    this.#clock = world.clock;
    this.#run = world.run;
    this.#env = world.env;
  }

  /** With `refresh`, what is kept has been refused by the API. */
  async get(cluster: ClusterInfo, refresh: boolean): Promise<ExecCredential> {
    const nowMs = this.#clock.now().getTime();
    const mayRun = Math.abs(nowMs - this.#ranMs) >= SHORTEST_GAP_MS;
    const isGood = this.#kept !== undefined && nowMs < this.#kept.endsMs - EARLY_MS;
    if (this.#kept !== undefined && isGood && !(refresh && mayRun)) return this.#kept.credential;
    if (this.#failure !== undefined && !mayRun) throw this.#failure;
    this.#ranMs = nowMs;
    try {
      this.#kept = parseCredential(await this.#runPlugin(cluster), this.#exec);
      this.#failure = undefined;
      return this.#kept.credential;
    } catch (error) {
      this.#failure = error;
      throw error;
    }
  }

  async #runPlugin(cluster: ClusterInfo): Promise<string> {
    const { command, args, env, installHint } = this.#exec;
    const info = JSON.stringify(execInfo(this.#exec, cluster));
    try {
      return await this.#run({
        command,
        args,
        env: { ...this.#env, ...env, KUBERNETES_EXEC_INFO: info },
        timeoutMs: PLUGIN_TIMEOUT_MS,
        largestOutput: LARGEST_OUTPUT_BYTES,
      });
    } catch (error) {
      const hint = installHint === undefined ? '' : `\n${installHint}`;
      throw new Error(`credential plugin ${command}: ${(error as Error).message}${hint}`, { cause: error });
    }
  }
}

/** Reads the `exec` part of a kubeconfig user. A command with a slash is relative to the kubeconfig. */
export function parseExec(value: unknown, where: string, directory: string): ExecConfig {
  const fields = value as Record<string, unknown>;
  const refuse = (problem: string) => new Error(`${where}: exec ${problem}`);
  if (typeof value !== 'object' || value === null) throw refuse('must be a mapping');
  const { apiVersion, command, args = [], env = [], interactiveMode, installHint, provideClusterInfo = false } = fields;
  if (typeof command !== 'string' || command === '') throw refuse('has no command');
  if (typeof apiVersion !== 'string' || !API_VERSIONS.includes(apiVersion)) {
    throw refuse(`has apiVersion ${String(apiVersion)}; expected ${API_VERSIONS.join(' or ')}`);
  }
  if (interactiveMode === 'Always')
    throw refuse('wants to ask questions (interactiveMode Always); there is nobody to answer');
  if (!isTextList(args ?? [])) throw refuse('args must be a list of strings');
  const variables = (env ?? []) as { name?: unknown; value?: unknown }[];
  if (
    !Array.isArray(variables) ||
    !variables.every(one => typeof one?.name === 'string' && typeof one.value === 'string')
  ) {
    throw refuse('env must be a list of name and value');
  }
  return {
    apiVersion,
    command: command.includes('/') ? resolve(directory, command) : command,
    args: (args ?? []) as string[],
    env: Object.fromEntries(variables.map(({ name, value }) => [name as string, value as string])),
    provideClusterInfo: provideClusterInfo === true,
    installHint: typeof installHint === 'string' ? installHint : undefined,
  };
}

function isTextList(value: unknown): value is string[] {
  return Array.isArray(value) && value.every(item => typeof item === 'string');
}

function execInfo(exec: ExecConfig, { server, ca, insecure, serverName }: ClusterInfo): object {
  const cluster = {
    server: server.href.replace(/\/$/, ''),
    ...(serverName === undefined ? {} : { 'tls-server-name': serverName }),
    ...(insecure ? { 'insecure-skip-tls-verify': true } : {}),
    ...(ca === undefined ? {} : { 'certificate-authority-data': Buffer.from(ca).toString('base64') }),
    config: null,
  };
  const spec = { interactive: false, ...(exec.provideClusterInfo ? { cluster } : {}) };
  return { kind: 'ExecCredential', apiVersion: exec.apiVersion, spec };
}

/** Never quotes the output: it is a secret. */
function parseCredential(output: string, exec: ExecConfig): { credential: ExecCredential; endsMs: number } {
  const refuse = (problem: string) => new Error(`credential plugin ${exec.command}: its answer ${problem}`);
  let answer: { kind?: unknown; apiVersion?: unknown; status?: Record<string, unknown> };
  try {
    answer = JSON.parse(output) as typeof answer;
  } catch {
    throw refuse('is not JSON');
  }
  if (answer?.kind !== 'ExecCredential') throw refuse('is not of kind ExecCredential');
  if (answer.apiVersion !== exec.apiVersion) throw refuse(`is not of apiVersion ${exec.apiVersion}`);
  const { token, clientCertificateData, clientKeyData, expirationTimestamp } = answer.status ?? {};
  for (const [name, value] of Object.entries({ token, clientCertificateData, clientKeyData, expirationTimestamp })) {
    if (value !== undefined && value !== null && typeof value !== 'string')
      throw refuse(`has a ${name} that is no string`);
  }
  const [certificate, key] = [clientCertificateData || undefined, clientKeyData || undefined] as (string | undefined)[];
  if ((certificate === undefined) !== (key === undefined))
    throw refuse('has a client certificate or key without the other');
  if (!token && certificate === undefined) throw refuse('has neither a token nor a client certificate');
  const credential = { token: (token as string) || undefined, certificate, key };
  if (!expirationTimestamp) return { credential, endsMs: Number.POSITIVE_INFINITY };
  const ends = parseRfc3339(expirationTimestamp as string);
  if (ends === undefined) throw refuse('has an expirationTimestamp that is not RFC 3339');
  return { credential, endsMs: floorToMs(ends).getTime() };
}

/** Runs the plugin as a process. What it writes to its standard error goes to ours, for the person who waits. */
export const runPlugin: RunPlugin = ({ command, args, env, timeoutMs, largestOutput }) =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
    const chunks: Buffer[] = [];
    let size = 0;
    let problem: string | undefined;
    const stop = (why: string) => {
      problem ??= why;
      child.kill('SIGKILL');
      child.stdout.destroy();
    };
    const timer = setTimeout(() => {
      stop(`gave no answer within ${timeoutMs / 1000} s`);
    }, timeoutMs);
    child.stdout.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > largestOutput) stop(`wrote more than ${largestOutput} bytes`);
      else chunks.push(chunk);
    });
    child.on('error', (error: NodeJS.ErrnoException) => {
      clearTimeout(timer);
      reject(new Error(`cannot be started (${error.code ?? 'unknown'})`));
    });
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      if (problem === undefined && code !== 0) problem = `ended with ${signal ?? `code ${code}`}`;
      if (problem === undefined) resolve(Buffer.concat(chunks).toString('utf8'));
      else reject(new Error(problem));
    });
  });
