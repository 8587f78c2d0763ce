import { appendFileSync, mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { rotationDayFrom, wholeNumberFrom } from '../flag-values.ts';
import { untilStopped } from '../signals.ts';
import { UsageError } from '../usage-error.ts';

interface Flags {
  dir: string;
  controlPlane: string;
  workers: string;
  rotationDay: string;
  apiPort: string;
}

/** `rotunda up`: a cluster on this machine. */
export function addUp(program: Command): void {
  program
    .command('up')
    .summary('start a cluster on this machine: API, nodes, and the kube-apiserver operator at work')
    .description(
      'Starts the embedded API, nodes whose root file systems are folders below <dir>/nodes, and the kube-apiserver operator,\n' +
        'which makes the certificate chains, cuts revisions and rolls static pods out node by node. kube-apiserver itself is played\n' +
        'by a TLS server that reads the same files and follows the same reload rules. The log is <dir>/rotunda.log. State survives\n' +
        'a stop and a start. Stop it with Ctrl-C.',
    )
    .option('--dir <folder>', 'where everything is kept', '.rotunda')
    .option('--control-plane <number>', 'control-plane nodes, 1 to 9', '3')
    .option('--workers <number>', 'worker nodes, 0 to 100', '2')
    .option('--rotation-day <duration>', 'length of one rotation day, for all chains', '24h')
    .option('--api-port <number>', 'port of the API; 0 keeps that of the last start, or chooses a free one', '0')
    .action(async (flags: Flags) => {
      const dir = resolve(flags.dir);
      const controlPlane = wholeNumberFrom('--control-plane', flags.controlPlane, 1, 9);
      const workers = wholeNumberFrom('--workers', flags.workers, 0, 100);
      const apiPort = wholeNumberFrom('--api-port', flags.apiPort, 0, 65_535);
      const dayMs = rotationDayFrom(flags.rotationDay);
      const [{ startLocalCluster }, { StoreLockedError }, { createLog }] = await Promise.all([
        import('../../local/cluster.ts'),
        import('../../api/api.ts'),
        import('../../controller/log.ts'),
      ]);
      mkdirSync(dir, { recursive: true, mode: 0o700 });
      const logFile = join(dir, 'rotunda.log');
      const log = createLog({
        name: 'rotunda',
        destination: { write: line => appendFileSync(logFile, line, { mode: 0o600 }) },
      });
      const stopped = untilStopped();
      say(`starting the API and ${controlPlane + workers} nodes below ${dir}`);
      const cluster = await startLocalCluster({
        dir,
        controlPlane,
        workers,
        apiPort,
        dayMs,
        log,
        // A real kube-apiserver would need a real etcd behind it.
        programs: { useRealBinaries: false },
      }).catch((error: unknown) => {
        throw error instanceof StoreLockedError ? new UsageError(error.message) : error;
      });
      try {
        say(
          'waiting for the certificate chains, the first revision and a ready kube-apiserver pod on every control-plane node',
        );
        const ready = await Promise.race([cluster.ready().then(() => true), stopped.then(() => false)]);
        if (ready) {
          process.stdout.write(`ready: ${cluster.api.url}, kubeconfig ${cluster.kubeconfigPath}\n`);
          await Promise.race([stopped, cluster.ended]);
        }
      } finally {
        say('stopping');
        await cluster.close();
      }
    });
}

/** Progress goes to standard error; standard output is for the ready line. */
function say(text: string): void {
  process.stderr.write(`${text}\n`);
}
