import { errorText } from '../controller/aggregate-error.ts';
import { createLog, type Log } from '../controller/log.ts';

type Servers = readonly { start(): Promise<void>; stop(): Promise<void> }[];

/** Runs servers until the process is told to stop. Resolves with the exit code. */
export async function serveUntilStopped(name: string, make: (log: Log) => Servers | Promise<Servers>): Promise<number> {
  const log = createLog({ name });
  try {
    const servers = await make(log);
    const stopped = new Promise<string>(resolve => {
      for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => resolve(signal));
    });
    for (const server of servers) await server.start();
    log.info({ signal: await stopped }, 'told to stop');
    await Promise.all(servers.map(server => server.stop()));
    return 0;
  } catch (error) {
    log.error({ err: error }, 'cannot serve');
    process.stderr.write(`${errorText(error)}\n`);
    return 1;
  }
}
