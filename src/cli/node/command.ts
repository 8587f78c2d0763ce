import type { Command } from 'commander';
import type { Log } from '../../controller/log.ts';

/** A program that runs in a pod on a control-plane node. Its flags are upstream's and are read by the program itself. */
interface NodeProgram {
  readonly name: string;
  readonly summary: string;
  readonly usage: string;
  /** Started by local nodes only. */
  readonly hidden?: boolean;
  run(argv: readonly string[]): Promise<number>;
}

const PROGRAMS: readonly NodeProgram[] = [
  {
    name: 'installer',
    summary: 'put one revision of a static pod onto this node',
    usage:
      '--revision N --namespace NS --pod CONFIGMAP --resource-dir DIR --pod-manifest-dir DIR [--configmaps A,B] [--secrets A,B] [--cert-dir DIR ...]',
    run: async argv => (await import('../../staticpod/node/main.ts')).installerMain(argv, process.env),
  },
  {
    name: 'prune',
    summary: 'remove revisions of a static pod that nobody needs any more from this node',
    usage:
      '--max-eligible-revision N --protected-revisions N,N --resource-dir DIR --cert-dir DIR --static-pod-name NAME',
    run: async argv => (await import('../../staticpod/node/main.ts')).pruneMain(argv, process.env),
  },
  {
    name: 'cert-syncer',
    summary: 'keep the certificate files of the kube-apiserver pod equal to their Secrets and ConfigMaps',
    usage: '--kubeconfig FILE --namespace NS --destination-dir DIR [--tls-server-name-override NAME]',
    run: async argv => {
      const { certSyncerMain } = await import('../../staticpod/node/main.ts');
      const { UNREVISIONED } = await import('../../kube-apiserver/operand-objects.ts');
      return certSyncerMain(argv, process.env, UNREVISIONED);
    },
  },
  {
    name: 'startup-monitor',
    summary: 'watch a new revision of kube-apiserver start, and go back to the last good one when it does not',
    usage:
      '--revision N --node-name NAME --manifests-dir DIR --resource-dir DIR --target-name NAME --fallback-timeout-duration D',
    run: async argv => {
      const { startupMonitorMain } = await import('../../staticpod/node/main.ts');
      const { monitoredKubeApiserver } = await import('../../kube-apiserver/programs/startup-readiness.ts');
      return startupMonitorMain(argv, process.env, monitoredKubeApiserver);
    },
  },
  {
    name: 'cert-regeneration-controller',
    summary: 'bring a cluster whose certificates have expired back, beside the operator or without it',
    usage: '--kubeconfig FILE --namespace NS [--key-algorithm NAME]',
    run: async argv => (await import('../../kube-apiserver/programs/main.ts')).certRegenerationMain(argv, process.env),
  },
  {
    name: 'insecure-readyz',
    summary: 'tell load balancers over plain HTTP whether kube-apiserver is ready',
    usage: '[--insecure-port N] [--delegate-url URL]',
    run: async argv => (await import('../../kube-apiserver/programs/main.ts')).insecureReadyzMain(argv, process.env),
  },
  {
    name: 'check-endpoints',
    summary: 'write down when the endpoints a node depends on cannot be reached',
    usage: '--kubeconfig FILE --namespace NS [--listen ADDRESS:PORT]',
    run: async argv => (await import('../../kube-apiserver/programs/main.ts')).checkEndpointsMain(argv, process.env),
  },
  {
    name: 'etcd-readyz',
    summary: 'say whether the etcd member of this node is ready',
    usage: 'the flags of cluster-etcd-operator readyz',
    run: async argv => asNodeProgram('etcd-readyz', argv, (await import('../../etcd/program.ts')).readyzProgram),
  },
  {
    name: 'etcd-metrics-proxy',
    summary: 'serve the metrics of the etcd member of this node',
    usage: 'the flags of etcd grpc-proxy start',
    run: async argv =>
      asNodeProgram('etcd-metrics-proxy', argv, (await import('../../etcd/program.ts')).metricsProxyProgram),
  },
  {
    name: 'stand-in-apiserver',
    summary: 'a TLS server that reads the files of kube-apiserver and follows its reload rules',
    usage: 'the flags of kube-apiserver',
    hidden: true,
    run: async argv => (await import('../../local/stand-in-apiserver.ts')).standInApiserverMain(argv, process.env),
  },
  {
    name: 'stand-in-etcd',
    summary: 'a TLS server that reads the files of etcd',
    usage: 'the flags of etcd',
    hidden: true,
    run: async argv => (await import('../../local/stand-in-etcd.ts')).standInEtcdMain(argv, process.env),
  },
  {
    name: 'stand-in-controller-manager',
    summary: 'what of kube-controller-manager certificates go through, with its files and their reload rules',
    usage: 'the flags of kube-controller-manager',
    hidden: true,
    run: async argv =>
      (await import('../../local/stand-in-controller-manager.ts')).standInControllerManagerMain(argv, process.env),
  },
  {
    name: 'stand-in-scheduler',
    summary: 'leads with the certificate of kube-scheduler, and schedules nothing',
    usage: 'the flags of kube-scheduler',
    hidden: true,
    run: async argv => (await import('../../local/stand-in-scheduler.ts')).standInSchedulerMain(argv, process.env),
  },
];

async function asNodeProgram(
  name: string,
  argv: readonly string[],
  work: (argv: readonly string[], log: Log, signal: AbortSignal) => Promise<void>,
): Promise<number> {
  const { asProgram } = await import('../../staticpod/node/main.ts');
  return asProgram(name, process.env, (log, signal) => work(argv, log, signal));
}

/** `rotunda installer`, `prune`, `cert-syncer`: what runs in pods on control-plane nodes. */
export function addNodePrograms(program: Command): void {
  for (const { name, summary, usage, hidden = false, run } of PROGRAMS) {
    program
      .command(name, { hidden })
      .summary(summary)
      .description(
        `${summary[0]?.toUpperCase()}${summary.slice(1)}. Started by the operators; the flags are those of OpenShift's program.`,
      )
      .usage(usage)
      .allowUnknownOption()
      .allowExcessArguments()
      .action(async () => {
        process.exitCode = await run(process.argv.slice(process.argv.indexOf(name) + 1));
      });
  }
}
