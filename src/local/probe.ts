import { spawn } from 'node:child_process';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect } from 'node:net';
import type { Container, Probe } from 'kubernetes-types/core/v1.d.ts';
import { seconds } from '../kube/duration.ts';

export interface ProbeResult {
  readonly success: boolean;
  readonly message: string;
}

/** What a probe needs to know of the container it looks at. */
export interface ProbeTarget {
  readonly container: Container;
  readonly address: string;
  /** For `exec`: the environment and the translation of paths are those of the container. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  rewrite(text: string): string;
}

/** The timing of a probe with the defaults of Kubernetes. */
export interface ProbeTiming {
  readonly initialDelayMs: number;
  readonly periodMs: number;
  readonly timeoutMs: number;
  readonly successThreshold: number;
  readonly failureThreshold: number;
}

const LARGEST_ANSWER = 10 * 1024;

export function probeTiming(probe: Probe): ProbeTiming {
  return {
    initialDelayMs: seconds(probe.initialDelaySeconds ?? 0),
    periodMs: seconds(probe.periodSeconds || 10),
    timeoutMs: seconds(probe.timeoutSeconds || 1),
    successThreshold: probe.successThreshold || 1,
    failureThreshold: probe.failureThreshold || 3,
  };
}

/** Looks once. Never rejects: whatever goes wrong is a failure of the probe. */
export async function probeOnce(probe: Probe, target: ProbeTarget, signal: AbortSignal): Promise<ProbeResult> {
  const { timeoutMs } = probeTiming(probe);
  const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  try {
    if (probe.httpGet !== undefined) return await httpProbe(probe.httpGet, target, limit);
    if (probe.tcpSocket !== undefined) {
      return await tcpProbe(
        probe.tcpSocket.host || target.address,
        portOf(probe.tcpSocket.port, target.container),
        limit,
      );
    }
    if (probe.exec !== undefined) return await execProbe(probe.exec.command ?? [], target, limit);
    return { success: false, message: 'expected httpGet, tcpSocket or exec, found another kind of probe' };
  } catch (error) {
    if (limit.aborted && !signal.aborted) return { success: false, message: `no answer within ${timeoutMs / 1000}s` };
    return { success: false, message: error instanceof Error ? error.message : String(error) };
  }
}

/** The number of a port that may be given by its name. */
export function portOf(port: number | string, container: Container): number {
  if (typeof port === 'number') return port;
  if (/^\d+$/.test(port)) return Number(port);
  const named = container.ports?.find(({ name }) => name === port)?.containerPort;
  if (named === undefined) throw new Error(`container ${container.name} has no port named ${JSON.stringify(port)}`);
  return named;
}

function httpProbe(
  get: NonNullable<Probe['httpGet']>,
  { container, address }: ProbeTarget,
  signal: AbortSignal,
): Promise<ProbeResult> {
  const isTls = get.scheme === 'HTTPS';
  const path = get.path ?? '/';
  const options = {
    host: get.host || address,
    port: portOf(get.port, container),
    path: path.startsWith('/') ? path : `/${path}`,
    headers: {
      'user-agent': 'kube-probe/1.29',
      ...Object.fromEntries((get.httpHeaders ?? []).map(h => [h.name, h.value])),
    },
    agent: false,
    signal,
  };
  return new Promise((resolve, reject) => {
    // A probe asks whether somebody serves, not who it is; kubelets do not verify either.
    const sent = isTls ? httpsRequest({ ...options, rejectUnauthorized: false }) : httpRequest(options);
    sent.once('error', reject);
    sent.once('response', response => {
      let size = 0;
      response.on('data', (chunk: Buffer) => {
        size += chunk.length;
        if (size > LARGEST_ANSWER) response.destroy();
      });
      response.once('error', reject);
      response.once('close', () => {
        const code = response.statusCode ?? 0;
        const success = code >= 200 && code < 400;
        resolve({ success, message: success ? '' : `HTTP probe failed with statuscode: ${code}` });
      });
    });
    sent.end();
  });
}

function tcpProbe(host: string, port: number, signal: AbortSignal): Promise<ProbeResult> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port });
    const onAbort = () => socket.destroy(signal.reason as Error);
    signal.addEventListener('abort', onAbort, { once: true });
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.destroy();
      resolve({ success: true, message: '' });
    });
    socket.once('close', () => signal.removeEventListener('abort', onAbort));
  });
}

function execProbe(command: readonly string[], target: ProbeTarget, signal: AbortSignal): Promise<ProbeResult> {
  const [program = '', ...args] = command.map(word => target.rewrite(word));
  const { env, cwd } = target;
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { env, cwd, signal, killSignal: 'SIGKILL', stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    const collect = (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(0, LARGEST_ANSWER);
    };
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    child.once('error', reject);
    child.once('close', code =>
      resolve({ success: code === 0, message: code === 0 ? '' : output.trim() || `exit code ${code}` }),
    );
  });
}
