import { once } from 'node:events';
import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import { isNotFound } from '../../kube/error.ts';
import type { Kube } from '../../kube/port.ts';
import { VERSION } from '../../kube/version.ts';
import { CONTROLLER_LEASE, MCO_NAMESPACE, OPERATOR_LEASE } from '../../machine-config-api/names.ts';
import type { KeyAlgorithm } from '../../pki/keys.ts';
import { wholeNumberFrom } from '../flag-values.ts';
import { handOverFrom, withHandOverFlag } from '../hand-over-flag.ts';
import { HAND_BACK_ALGORITHM, keyAlgorithmFrom, withKeyAlgorithmFlag } from '../key-algorithm.ts';
import { UsageError } from '../usage-error.ts';
import { withOperatorFlags, withProcessFlags } from './flags.ts';
import type { OperatorFlags, OperatorTools } from './process.ts';

/** The three processes of machine configuration, central side. */
export function addMachineConfig(program: Command): void {
  addOperator(program);
  addController(program);
  addServer(program);
}

interface MachineConfigOperatorFlags extends OperatorFlags {
  readonly releaseVersion: string;
  readonly apiServerUrl?: string;
  readonly keyAlgorithm?: string;
  readonly handOver: string;
  readonly inputs: boolean;
  readonly disruptionPolicies: boolean;
}

function addOperator(program: Command): void {
  const command = withOperatorFlags(
    program
      .command('machine-config-operator')
      .summary('collect CA bundles, pull secrets and cluster configuration for machines')
      .description(
        'Watches everything machines need to know of the cluster and publishes it in one ControllerConfig: certificates at once,\n' +
          'without a reboot, everything else through rendered configs. Keeps the pools master and worker, the pointer configs of new\n' +
          'machines and ClusterOperator machine-config. Needs the definitions in manifests/crds/.',
      ),
  );
  withHandOverFlag(withKeyAlgorithmFlag(command))
    .option('--release-version <version>', 'the release whose images are to be used', VERSION)
    .option('--api-server-url <url>', 'where machines find the API, for a cluster that does not say so itself')
    .option(
      '--no-inputs',
      'do not make what is missing on clusters that are not OpenShift, such as an empty pull secret',
    )
    .option('--disruption-policies', 'publish disruption policies for agents to follow', false)
    .action(async (flags: MachineConfigOperatorFlags) => {
      const { releaseVersion, apiServerUrl, disruptionPolicies } = flags;
      const keyAlgorithm = keyAlgorithmFrom(flags.keyAlgorithm, HAND_BACK_ALGORITHM);
      const handOver = handOverFrom(flags.handOver);
      if (apiServerUrl !== undefined) checkUrl('--api-server-url', apiServerUrl);
      const [{ runOperator }, { machineConfigOperator }, { OWN_VERSION: version }] = await Promise.all([
        import('./process.ts'),
        import('../../machine-config/operator/operator.ts'),
        import('../../machine-config/own-version.ts'),
      ]);
      await runOperator(
        {
          name: 'machine-config-operator',
          namespace: MCO_NAMESPACE,
          lease: OPERATOR_LEASE.name,
          work: async (tools, signal) => {
            if (flags.inputs) await provideInputs(tools, { releaseVersion, apiServerUrl, keyAlgorithm }, signal);
            await machineConfigOperator({ ...tools, version, releaseVersion, disruptionPolicies, handOver }).run(
              signal,
            );
          },
        },
        flags,
      );
    });
}

async function provideInputs(
  { kube, clock, log, apiServer }: OperatorTools,
  options: { releaseVersion: string; apiServerUrl: string | undefined; keyAlgorithm: KeyAlgorithm },
  signal: AbortSignal,
): Promise<void> {
  const [{ ensureMachineConfigInputs }, { systemKeys: keys }] = await Promise.all([
    import('../../machine-config/inputs/ensure.ts'),
    import('../../pki/keys.ts'),
  ]);
  const reachedAt = apiServer.origin;
  const isOurs = await ensureMachineConfigInputs({ ...options, kube, clock, keys, reachedAt, signal }).catch(
    (error: unknown) => {
      if (!isNotFound(error)) throw error;
      throw new Error(`${error.message}: are the definitions in manifests/crds/ installed?`);
    },
  );
  log.info({}, isOurs ? 'what machines need of the cluster is there' : 'this is OpenShift: its inputs are used');
}

function addController(program: Command): void {
  withOperatorFlags(
    program
      .command('machine-config-controller')
      .summary('render the configs of pools and roll them out within maxUnavailable')
      .description(
        'Makes MachineConfigs from ControllerConfig, KubeletConfigs and ContainerRuntimeConfigs, renders one config a pool, points\n' +
          'nodes at it within the maxUnavailable of their pool, and drains nodes whose agents ask for it.',
      ),
  ).action(async (flags: OperatorFlags) => {
    const [{ runOperator }, { machineConfigController }, { OWN_VERSION: version }] = await Promise.all([
      import('./process.ts'),
      import('../../machine-config/controller/controller.ts'),
      import('../../machine-config/own-version.ts'),
    ]);
    await runOperator(
      {
        name: 'machine-config-controller',
        namespace: MCO_NAMESPACE,
        lease: CONTROLLER_LEASE.name,
        work: (tools, signal) => machineConfigController({ ...tools, version }).run(signal),
      },
      flags,
    );
  });
}

interface ServerFlags extends OperatorFlags {
  readonly apiServerUrl?: string;
  readonly cert: string;
  readonly key: string;
  readonly host?: string;
  readonly port: string;
}

function addServer(program: Command): void {
  withProcessFlags(
    program
      .command('machine-config-server')
      .summary('give new machines their first config over TLS')
      .description(
        'Answers GET /config/<pool> with the Ignition document of a new machine of that pool: its rendered config, the CAs of now and a\n' +
          'kubeconfig with which it asks for its first certificate. Whoever reaches the port is answered: let only machines-to-be reach it.',
      ),
  )
    .option(
      '--api-server-url <url>',
      'where the kubelets of new machines find the API (default: what Infrastructure cluster says)',
    )
    .option('--cert <file>', 'serving certificate, of Secret machine-config-server-tls', '/etc/ssl/mcs/tls.crt')
    .option('--key <file>', 'its private key', '/etc/ssl/mcs/tls.key')
    .option('--host <address>', 'address to serve on (default: all)')
    .option('--port <number>', 'port to serve on; 0 takes any that is free', '22623')
    .action(async (flags: ServerFlags) => {
      const { cert: certFile, key: keyFile, host } = flags;
      if (flags.apiServerUrl !== undefined) checkUrl('--api-server-url', flags.apiServerUrl);
      const port = wholeNumberFrom('--port', flags.port, 0, 65_535);
      for (const [flag, file] of [
        ['--cert', certFile],
        ['--key', keyFile],
      ] as const) {
        if (!existsSync(file)) throw new UsageError(`${flag}: ${file} does not exist`);
      }
      const [{ runOperator }, { startMachineConfigServer }] = await Promise.all([
        import('./process.ts'),
        import('../../machine-config/server/server.ts'),
      ]);
      await runOperator(
        {
          name: 'machine-config-server',
          namespace: MCO_NAMESPACE,
          work: async ({ kube, log }, signal) => {
            const apiServerUrl = flags.apiServerUrl ?? (await publishedUrl(kube));
            const server = await startMachineConfigServer({ kube, log, apiServerUrl, certFile, keyFile, host, port });
            log.info({ port: server.port }, 'serving first configs');
            if (!signal.aborted) await once(signal, 'abort');
            await server.stop();
          },
        },
        // Each of them answers by itself.
        { ...flags, leaderElect: false },
      );
    });
}

/** Machines are told what the cluster tells them elsewhere. */
async function publishedUrl(kube: Kube): Promise<string> {
  const { INFRASTRUCTURES } = await import('../../machine-config-api/cluster-config.ts');
  const { status } = await kube.get(INFRASTRUCTURES, { name: 'cluster' });
  if (status?.apiServerInternalURI) return status.apiServerInternalURI;
  throw new Error('infrastructure cluster: status.apiServerInternalURI is empty; give --api-server-url');
}

function checkUrl(flag: string, text: string): void {
  if (URL.canParse(text) && new URL(text).protocol === 'https:') return;
  throw new UsageError(`${flag} must be an https URL such as https://api.example.com:6443, found "${text}"`);
}
