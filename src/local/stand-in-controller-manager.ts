import { days, parseGoDuration } from '../kube/duration.ts';
import { runControllers } from './kubeadm/manager/controllers.ts';
import { type Env, managerServer } from './kubeadm/manager/program.ts';
import { MANAGER_PORT } from './kubeadm/names.ts';
import { Flags } from './stand-in-flags.ts';
import { serveUntilStopped } from './stand-in-main.ts';

const SIGNED_MS = days(365);

/**
 * Takes the place of kube-controller-manager where it is not installed: the files of its flags with their reload rules (spec 80, 2), and those
 * of its controllers that certificates go through. Resolves with the exit code.
 */
export function standInControllerManagerMain(argv: readonly string[], env: Env): Promise<number> {
  const duration = new Flags(argv).get('cluster-signing-duration');
  const signedMs = (duration && parseGoDuration(duration)) || SIGNED_MS;
  return serveUntilStopped('stand-in-controller-manager', async log => [
    await managerServer({
      name: 'kube-controller-manager',
      port: MANAGER_PORT,
      argv,
      env,
      log,
      clientCaFlag: 'client-ca-file',
      inputs: [
        { name: 'root-ca', kind: 'bundle', reload: 'start', flags: ['root-ca-file'] },
        { name: 'requestheader-client-ca', kind: 'bundle', reload: 'watch', flags: ['requestheader-client-ca-file'] },
        { name: 'service-account-key', kind: 'key', reload: 'start', flags: ['service-account-private-key-file'] },
        {
          name: 'cluster-signing',
          kind: 'pair',
          reload: 'watch',
          isAlone: true,
          flags: ['cluster-signing-cert-file', 'cluster-signing-key-file'],
        },
      ],
      work: (kube, loaded, signal) => runControllers({ kube, loaded, signedMs, log }, signal),
    }),
  ]);
}

if (import.meta.main) process.exitCode = await standInControllerManagerMain(process.argv.slice(2), process.env);
