import { createServer } from 'node:http';
import { systemClock } from '../kube/clock.ts';
import { closeAtOnce, listenOn } from '../kube/listen.ts';
import { type Endpoint, etcdSettings, type ServerSettings } from './stand-in-flags.ts';
import { serveUntilStopped } from './stand-in-main.ts';
import { type StandInOptions, StandInServer, sendJson } from './stand-in-server.ts';

const ANSWERS: Readonly<Record<string, object>> = {
  '/health': { health: 'true', reason: '' },
  '/version': { etcdserver: '3.5.0+rotunda-stand-in', etcdcluster: '3.5.0' },
  // A read of its own copy, which is empty: that is how it is asked whether it is well.
  '/v3/kv/range': { header: {}, count: '0' },
};

/** Takes the place of etcd where it is not installed: its TLS listeners and their reload rules, no store. */
export function standInEtcdMain(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  return serveUntilStopped('stand-in-etcd', log => {
    const { client, peer, metrics, plainMetrics, member } = etcdSettings(argv, env);
    // It knows of no others.
    const answers = { ...ANSWERS, '/v3/cluster/member/list': { header: {}, members: [member] } };
    const answer: StandInOptions['answer'] = (path, response) => {
      const body = new Map<string, object>(Object.entries(answers)).get(path);
      if (body !== undefined) sendJson(response, body);
      return body !== undefined;
    };
    const server = (name: string, settings: ServerSettings, more: Partial<StandInOptions> = {}) =>
      new StandInServer({ name, settings, log, clock: systemClock, ...more });
    return [
      server('etcd', client, { answer }),
      ...(peer === undefined ? [] : [server('etcd-peer', peer)]),
      ...(metrics === undefined ? [] : [server('etcd-metrics', metrics, { answer })]),
      ...plainMetrics.map(plainHealth),
    ];
  });
}

/** What probes ask where metrics are served without TLS. */
function plainHealth({ host, port }: Endpoint): { start(): Promise<void>; stop(): Promise<void> } {
  const server = createServer((request, response) => {
    const isHealth = request.url?.split('?')[0] === '/health';
    if (isHealth) sendJson(response, ANSWERS['/health'] as object);
    else response.writeHead(404).end();
  });
  return {
    start: async () => void (await listenOn(server, port, host)),
    stop: () => closeAtOnce(server),
  };
}

if (import.meta.main) process.exitCode = await standInEtcdMain(process.argv.slice(2), process.env);
