import { appendFileSync, mkdirSync } from 'node:fs';
import nodeModule from 'node:module';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import type { LocalCluster } from '../../local/cluster.ts';
import { type ClusterLayout, LAYOUT_NAMES, type LayoutName, OtherLayout } from '../../local/layout.ts';
import type { ClusterPart } from '../../local/part.ts';
import type { PartReport } from '../../local/part-board.ts';
import type { ProgramOptions } from '../../local/programs.ts';
import { type RealProgramFlags, withRealProgramFlags } from '../bootstrap/real-programs.ts';
import { rotationDayFrom, wholeNumberFrom } from '../flag-values.ts';
import { handOverFrom, withHandOverFlag } from '../hand-over-flag.ts';
import { HAND_BACK_ALGORITHM, keyAlgorithmFrom, TRIAL_ALGORITHM, withKeyAlgorithmFlag } from '../key-algorithm.ts';
import { untilStopped } from '../signals.ts';
import { UsageError } from '../usage-error.ts';
import { addDown } from './down.ts';
import { addPower } from './power.ts';
import { Progress } from './progress.ts';
import { addStatus } from './status.ts';

interface Flags extends RealProgramFlags {
  dir: string;
  controlPlane: string;
  workers: string;
  rotationDay: string;
  keyAlgorithm?: string | undefined;
  handOver: string;
  apiPort: string;
  consolePort: string;
  real?: boolean | undefined;
  layout: string;
  adopt: boolean;
}

/** `rotunda up`: a cluster on this machine; `rotunda down` and `rotunda status` for it. */
export function addUp(program: Command): void {
  const command = program
    .command('up')
    .summary('start a cluster on this machine: API, nodes, etcd and kube-apiserver with their operators at work')
    .description(
      'Starts the embedded API, nodes whose root file systems are folders below <dir>/nodes, and the operators of etcd and\n' +
        'kube-apiserver, which make the certificate chains, cut revisions and roll static pods out node by node. etcd is the real one\n' +
        'where it is found on PATH. kube-apiserver, and etcd where there is none, is played by a TLS server that reads the same files\n' +
        'and follows the same reload rules. The log is <dir>/rotunda.log. State survives a stop and a start. Stop it with Ctrl-C or\n' +
        '`rotunda down`.\n\n' +
        'With --real the API is kube-apiserver itself, on the nodes, over etcd on the nodes: the operators run against the servers whose\n' +
        'certificates they rotate. A folder without such a cluster gets one first, as by `rotunda bootstrap`.\n\n' +
        "With --layout kubeadm nodes are as kubeadm leaves them: certificates, kubeconfigs and manifests below etc/kubernetes of each node's\n" +
        'folder, the ConfigMaps of kubeadm in the API. The cluster is adopted at its first start (rotunda adopt kubeadm), unless --no-adopt.\n' +
        'Leaves live 365 rotation days and CAs 3650: with --rotation-day 1s leaves are renewed every two and a half minutes.',
    );
  const withKeys = withKeyAlgorithmFlag(command, `${HAND_BACK_ALGORITHM} with --real, else ${TRIAL_ALGORITHM}`);
  withHandOverFlag(withRealProgramFlags(withKeys))
    .option('--dir <folder>', 'where everything is kept', '.rotunda')
    .option('--control-plane <number>', 'control-plane nodes, 1 to 9', '3')
    .option('--workers <number>', 'worker nodes, 0 to 100', '2')
    .option('--rotation-day <duration>', 'length of one rotation day, for all chains', '24h')
    .option('--api-port <number>', 'port of the API; 0 keeps that of the last start, or chooses a free one', '0')
    .option('--console-port <number>', 'port of the console; 0 chooses a free one', '0')
    .option(
      '--layout <name>',
      'openshift, or kubeadm: files where kubeadm puts them, and nobody but kubeadm-agents and the kubelet renews them',
      'openshift',
    )
    .option('--no-adopt', 'with --layout kubeadm: leave the cluster as kubeadm does, until rotunda adopt kubeadm')
    .option('--real', 'real etcd, kube-apiserver, kube-controller-manager and kube-scheduler, serving themselves')
    .action(async (flags: Flags) => {
      const dir = resolve(flags.dir);
      const controlPlane = wholeNumberFrom('--control-plane', flags.controlPlane, flags.real ? 3 : 1, 9);
      const workers = wholeNumberFrom('--workers', flags.workers, 0, 100);
      const apiPort = wholeNumberFrom('--api-port', flags.apiPort, 0, 65_535);
      const consolePort = wholeNumberFrom('--console-port', flags.consolePort, 0, 65_535);
      const dayMs = rotationDayFrom(flags.rotationDay);
      const keyAlgorithm = keyAlgorithmFrom(flags.keyAlgorithm, flags.real ? HAND_BACK_ALGORITHM : TRIAL_ALGORITHM);
      const handOver = handOverFrom(flags.handOver);
      const layoutName = layoutFrom(flags);
      const programs = await programsFrom(flags);
      mkdirSync(dir, { recursive: true, mode: 0o700 });
      // What is compiled now is compiled for the programs on the nodes too, and for the next start.
      const compileCache = process.env.NODE_COMPILE_CACHE ?? join(dir, 'cache');
      nodeModule.enableCompileCache?.(compileCache);
      const [startCluster, layout, { writeClusterRecord }, { StoreLockedError }, { FolderInUse }, { createLog }] =
        await Promise.all([
          flags.real
            ? import('../../local/real/cluster.ts').then(({ startRealCluster }) => startRealCluster)
            : import('../../local/cluster.ts').then(({ startLocalCluster }) => startLocalCluster),
          LAYOUTS[layoutName](dir, flags),
          import('../../local/cluster-record.ts'),
          import('../../api/api.ts'),
          import('../../local/holder.ts'),
          import('../../controller/log.ts'),
        ]);
      const { consolePart } = await import('./console-part.ts');
      nodeModule.flushCompileCache?.();
      const logFile = join(dir, 'rotunda.log');
      const log = createLog({
        name: 'rotunda',
        destination: { write: line => appendFileSync(logFile, line, { mode: 0o600 }) },
      });
      const console_ = consolePart(consolePort, layoutName);
      const stopped = untilStopped();
      const stop = new AbortController();
      void stopped.then(() => stop.abort(new Error('stopped while it was coming up')));
      // Progress goes to standard error; standard output is for the ready line.
      const progress = new Progress(process.stderr);
      const startedAt = new Date().toISOString();
      let cluster: LocalCluster | undefined;
      let isReady = false;
      const tell = (parts: readonly PartReport[]) => {
        if (!isReady) progress.show(parts);
        if (cluster === undefined) return;
        const { kubeconfigPath: kubeconfig, standIns } = cluster;
        const { name } = cluster.layout;
        writeClusterRecord(dir, { startedAt, url: cluster.api.url, kubeconfig, layout: name, standIns, parts });
      };
      progress.say(`starting the API and ${controlPlane + workers} nodes below ${dir}`);
      cluster = await startCluster({
        dir,
        controlPlane,
        workers,
        apiPort,
        dayMs,
        log,
        compileCache,
        keyAlgorithm,
        handOver,
        programs,
        layout,
        moreParts: [...layout.moreParts, console_],
        signal: stop.signal,
        onProgress: tell,
      }).catch((error: unknown) => {
        const isUsage = [StoreLockedError, FolderInUse, OtherLayout].some(kind => error instanceof kind);
        throw isUsage ? new UsageError((error as Error).message) : error;
      });
      try {
        tell(cluster.parts());
        isReady = await Promise.race([
          cluster.ready().then(() => true),
          cluster.ended.then(() => false),
          stopped.then(() => false),
        ]);
        progress.end();
        if (isReady) {
          const { api, kubeconfigPath, standIns } = cluster;
          const note = standIns.length === 0 ? '' : `, stand-ins: ${standIns.join(', ')}`;
          log.info({ url: api.url, standIns }, 'ready');
          process.stdout.write(
            `ready: ${api.url}, kubeconfig ${kubeconfigPath}, console ${console_.loginUrl()}${note}\n`,
          );
          await Promise.race([stopped, cluster.ended]);
        }
      } finally {
        progress.say('stopping');
        await cluster.close();
      }
    });
  addDown(program);
  addStatus(program);
  addPower(program);
}

/** What a cluster is made from, and what else is done to one of that layout. */
type LayoutChoice = ClusterLayout & { readonly moreParts: readonly ClusterPart[] };

const LAYOUTS: Readonly<Record<LayoutName, (dir: string, flags: Flags) => Promise<LayoutChoice>>> = {
  async openshift() {
    const { OPENSHIFT_LAYOUT } = await import('../../local/openshift-layout.ts');
    return { ...OPENSHIFT_LAYOUT, moreParts: [] };
  },
  async kubeadm(dir, { adopt }) {
    const [{ kubeadmLayout }, { adoptionPart }] = await Promise.all([
      import('../../local/kubeadm/layout.ts'),
      import('./adoption-part.ts'),
    ]);
    return { ...kubeadmLayout(dir), moreParts: [adoptionPart(adopt)] };
  },
};

function layoutFrom({ layout, real, adopt }: Flags): LayoutName {
  const found = LAYOUT_NAMES.find(name => name === layout);
  if (found === undefined) throw new UsageError(`--layout must be ${LAYOUT_NAMES.join(' or ')}, found "${layout}"`);
  if (found === 'kubeadm' && real) throw new UsageError('--real is for --layout openshift');
  if (found !== 'kubeadm' && !adopt) throw new UsageError('--no-adopt is for --layout kubeadm');
  return found;
}

async function programsFrom(flags: Flags): Promise<ProgramOptions> {
  if (flags.real) return (await import('../bootstrap/real-programs.ts')).realPrograms(flags);
  // A real kube-apiserver would be a second API, with nothing in it.
  return { binaries: flags.binaries ?? process.env.KUBEBUILDER_ASSETS ?? [], useRealBinaries: ['etcd'] };
}
