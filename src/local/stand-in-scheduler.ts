import { aborted } from '../kube/aborted.ts';
import { type Env, managerServer } from './kubeadm/manager/program.ts';
import { SCHEDULER_PORT } from './kubeadm/names.ts';
import { serveUntilStopped } from './stand-in-main.ts';

/**
 * Takes the place of kube-scheduler where it is not installed: it leads with the certificate in its kubeconfig, as it was at its start, and
 * schedules nothing. Resolves with the exit code.
 */
export function standInSchedulerMain(argv: readonly string[], env: Env): Promise<number> {
  return serveUntilStopped('stand-in-scheduler', async log => [
    await managerServer({
      name: 'kube-scheduler',
      port: SCHEDULER_PORT,
      argv,
      env,
      log,
      inputs: [],
      work: (_kube, _loaded, signal) => aborted(signal),
    }),
  ]);
}

if (import.meta.main) process.exitCode = await standInSchedulerMain(process.argv.slice(2), process.env);
