import { appendFileSync, mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { rotationDayFrom, wholeNumberFrom } from '../flag-values.ts';
import { HAND_BACK_ALGORITHM, keyAlgorithmFrom, withKeyAlgorithmFlag } from '../key-algorithm.ts';
import { untilStopped } from '../signals.ts';
import { Progress } from '../up/progress.ts';
import { type RealProgramFlags, withRealProgramFlags } from './real-programs.ts';

interface Flags extends RealProgramFlags {
  dir: string;
  controlPlane: string;
  rotationDay: string;
  keyAlgorithm?: string | undefined;
}

/** `rotunda bootstrap`: a control plane of real programs that serves itself, for `rotunda up --real` to run. */
export function addBootstrap(program: Command): void {
  const command = program
    .command('bootstrap')
    .summary('make a control plane of real etcd and kube-apiserver that serves itself')
    .description(
      'Makes the first certificates, manifests and objects of a new control plane and brings up etcd and kube-apiserver from them, as\n' +
        'static pods on nodes below <dir>/nodes, with the operators at work on a temporary API. When all nodes serve, the objects move to\n' +
        'the real API, the temporary one goes away, and everything stops: `rotunda up --real` with the same folder runs it from then on.\n' +
        "Interrupted, it goes on where it was. <dir>/kubeconfig is the administrator's. Needs the programs etcd, kube-apiserver,\n" +
        'kube-controller-manager and kube-scheduler.',
    );
  withRealProgramFlags(withKeyAlgorithmFlag(command))
    .requiredOption('--dir <folder>', 'where everything is kept')
    .option('--control-plane <number>', 'control-plane nodes, 3 to 9', '3')
    .option('--rotation-day <duration>', 'length of one rotation day, for all chains', '24h')
    .action(async (flags: Flags) => {
      const dir = resolve(flags.dir);
      const controlPlane = wholeNumberFrom('--control-plane', flags.controlPlane, 3, 9);
      const dayMs = rotationDayFrom(flags.rotationDay);
      const keyAlgorithm = keyAlgorithmFrom(flags.keyAlgorithm, HAND_BACK_ALGORITHM);
      const programs = await (await import('./real-programs.ts')).realPrograms(flags);
      mkdirSync(dir, { recursive: true, mode: 0o700 });
      const [{ bootstrap }, { createLog }] = await Promise.all([
        import('../../local/real/bootstrap.ts'),
        import('../../controller/log.ts'),
      ]);
      const logFile = join(dir, 'rotunda.log');
      const log = createLog({
        name: 'rotunda',
        destination: { write: line => appendFileSync(logFile, line, { mode: 0o600 }) },
      });
      const progress = new Progress(process.stderr);
      const stop = new AbortController();
      void untilStopped().then(() => stop.abort(new Error('stopped before the control plane was there')));
      progress.say(`making a control plane of ${controlPlane} nodes below ${dir}`);
      const moved = await bootstrap({
        dir,
        controlPlane,
        workers: 0,
        dayMs,
        keyAlgorithm,
        programs,
        onProgress: parts => progress.show(parts),
        signal: stop.signal,
        log,
      });
      progress.end();
      const objects = Object.values(moved ?? {}).reduce((sum, count) => sum + count, 0);
      const note = moved === undefined ? 'was there already' : `${objects} objects moved to it`;
      process.stdout.write(`done: the control plane ${note}, kubeconfig ${join(dir, 'kubeconfig')}\n`);
    });
}
