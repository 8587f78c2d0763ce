import { request } from 'node:http';
import type { Log } from '../../controller/log.ts';
import { type Clock, sleep } from '../../kube/clock.ts';
import { seconds } from '../../kube/duration.ts';
import type { AgentMetrics } from './metrics.ts';

export interface KubeletHealthOptions {
  /** Plain HTTP, such as `http://localhost:10248/healthz`. */
  readonly endpoint: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Pick<AgentMetrics, 'kubeletFailures'>;
  readonly ask?: ((endpoint: string, signal: AbortSignal) => Promise<string>) | undefined;
}

const EVERY_MS = seconds(30);
const MOST_BODY = 1024;

/** Asks the kubelet every 30 s how it is. Only silence counts as failure: any answer ends the row (spec 60, 13.3). */
export async function watchKubeletHealth(options: KubeletHealthOptions, signal: AbortSignal): Promise<void> {
  const { endpoint, clock, log, metrics, ask = askOverHttp } = options;
  let failures = 0;
  while (!signal.aborted) {
    try {
      const answer = await ask(endpoint, signal);
      failures = 0;
      if (answer.trim() !== 'ok') log.warn({ endpoint, answer }, 'the kubelet is not well');
    } catch (error) {
      if (signal.aborted) return;
      failures++;
      log.warn({ endpoint, err: error, failures }, 'the kubelet does not answer');
    }
    metrics.kubeletFailures(failures);
    await sleep(clock, EVERY_MS, signal).catch(() => {});
  }
}

/** The beginning of the body. Rejects when nobody answers in time. */
function askOverHttp(endpoint: string, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const asked = request(endpoint, { signal, timeout: EVERY_MS, agent: false }, response => {
      let body = '';
      response.setEncoding('utf8');
      response.on('data', (part: string) => {
        body = (body + part).slice(0, MOST_BODY);
      });
      response.on('end', () => resolve(body));
      response.on('error', reject);
    });
    asked.on('timeout', () => asked.destroy(new Error(`no answer within ${EVERY_MS} ms`)));
    asked.on('error', reject);
    asked.end();
  });
}
