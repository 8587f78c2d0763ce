import { systemClock } from '../kube/clock.ts';
import { apiserverSettings } from './stand-in-flags.ts';
import { serveUntilStopped } from './stand-in-main.ts';
import { StandInServer, sendJson } from './stand-in-server.ts';

const VERSION_ANSWER = { major: '1', minor: '29', gitVersion: 'v1.29.0+rotunda-stand-in', platform: 'linux/amd64' };

/**
 * Takes the place of kube-apiserver where it is not installed: the same files, the same moments at which they are read again, no
 * API. Resolves with the exit code.
 */
export function standInApiserverMain(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  return serveUntilStopped('stand-in-apiserver', log => {
    const answer: ConstructorParameters<typeof StandInServer>[0]['answer'] = (path, response) => {
      if (path === '/version') sendJson(response, VERSION_ANSWER);
      return path === '/version';
    };
    const settings = apiserverSettings(argv, env);
    return [new StandInServer({ name: 'kube-apiserver', settings, log, clock: systemClock, answer })];
  });
}

if (import.meta.main) process.exitCode = await standInApiserverMain(process.argv.slice(2), process.env);
