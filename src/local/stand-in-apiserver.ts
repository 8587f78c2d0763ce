import { systemClock } from '../kube/clock.ts';
import { apiserverSettings } from './stand-in-flags.ts';
import { FRONTED_API, frontServer } from './stand-in-front.ts';
import { serveUntilStopped } from './stand-in-main.ts';
import { type StandInOptions, StandInServer, sendJson } from './stand-in-server.ts';

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
    const settings = apiserverSettings(argv, env);
    const options = { name: 'kube-apiserver', settings, log, clock: systemClock };
    // With an API behind it, what it cannot answer by itself is passed on; without one it has none.
    const behind = env[FRONTED_API];
    if (behind !== undefined && behind !== '') return [frontServer(options, behind)];
    const answer: StandInOptions['answer'] = (path, response) => {
      if (path === '/version') sendJson(response, VERSION_ANSWER);
      return path === '/version';
    };
    return [new StandInServer({ ...options, answer })];
  });
}

if (import.meta.main) process.exitCode = await standInApiserverMain(process.argv.slice(2), process.env);
