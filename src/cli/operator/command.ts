import type { Command } from 'commander';
import { OPERATOR_LEASE as ETCD_LEASE } from '../../etcd/names.ts';
import type { EtcdOperand } from '../../etcd/operator.ts';
import { VERSION } from '../../kube/version.ts';
import { OPERATOR_LEASE as KUBE_APISERVER_LEASE } from '../../kube-apiserver/namespaces.ts';
import type { OperandProgram } from '../../kube-apiserver/target-config/controller.ts';
import { rotationDayFrom } from '../flag-values.ts';
import { handOverFrom, withHandOverFlag } from '../hand-over-flag.ts';
import { HAND_BACK_ALGORITHM, keyAlgorithmFrom, withKeyAlgorithmFlag } from '../key-algorithm.ts';
import { UsageError } from '../usage-error.ts';
import { withOperatorFlags } from './flags.ts';
import { addMachineConfig } from './machine-config.ts';
import type { OperatorFlags, OperatorTools } from './process.ts';

interface KubeApiserverFlags extends OperatorFlags {
  readonly rotationDay?: string;
  readonly keyAlgorithm?: string;
  readonly handOver: string;
  readonly flavor: string;
  readonly image: string;
  readonly kubernetesVersion?: string;
  readonly operatorImage?: string;
}

/** The operators, one process each, against any cluster. */
export function addOperators(program: Command): void {
  addKubeApiserverOperator(program);
  addEtcdOperator(program);
  addMachineConfig(program);
}

function addKubeApiserverOperator(program: Command): void {
  const command = withOperatorFlags(
    program
      .command('kube-apiserver-operator')
      .summary('rotate the certificates of kube-apiserver and roll its static pods out')
      .description(
        'Keeps the twelve certificate chains of kube-apiserver, what is derived from them, and its static pods in order, on the\n' +
          'cluster the kubeconfig names. Needs the definitions in manifests/crds/.',
      ),
  );
  withHandOverFlag(withKeyAlgorithmFlag(command))
    .option(
      '--rotation-day <duration>',
      'length of one rotation day, for all chains, where the cluster does not say yet (default 24h)',
    )
    .option('--flavor <name>', 'how kube-apiserver is started: kubernetes or openshift', 'kubernetes')
    .option('--image <image>', 'image with kube-apiserver', 'kube-apiserver')
    .option(
      '--kubernetes-version <version>',
      'version of kube-apiserver in that image (default: OPERAND_IMAGE_VERSION, else its tag)',
    )
    .option('--operator-image <image>', 'image with this program (default: that of the own pod, else rotunda)')
    .action(async (flags: KubeApiserverFlags) => {
      const { flavor, image } = flags;
      if (flavor !== 'kubernetes' && flavor !== 'openshift') {
        throw new UsageError(`--flavor must be kubernetes or openshift, found "${flavor}"`);
      }
      const dayMs = flags.rotationDay === undefined ? undefined : rotationDayFrom(flags.rotationDay);
      const keyAlgorithm = keyAlgorithmFrom(flags.keyAlgorithm, HAND_BACK_ALGORITHM);
      const handOver = handOverFrom(flags.handOver);
      const [{ runOperator }, { runKubeApiserverOperator }, { versionOfImage }, { systemKeys }] = await Promise.all([
        import('./process.ts'),
        import('../../kube-apiserver/operator.ts'),
        import('../../kube-apiserver/operand-version.ts'),
        import('../../pki/keys.ts'),
      ]);
      // Where upstream's Deployment tells it (spec 30, 13.6).
      const told = process.env.OPERAND_IMAGE_VERSION;
      const kubernetesVersion = flags.kubernetesVersion ?? told ?? versionOfImage(image);
      const versions = { operator: VERSION, operand: kubernetesVersion ?? 'unknown' };
      await runOperator(
        {
          name: 'kube-apiserver-operator',
          namespace: KUBE_APISERVER_LEASE.namespace,
          lease: KUBE_APISERVER_LEASE.name,
          work: async (tools, signal) => {
            const program: OperandProgram = {
              flavor,
              image,
              operatorImage: await operatorImageOf(flags, tools),
              operatorCommand: ['rotunda'],
              version: VERSION,
            };
            const deps = {
              ...tools,
              keys: systemKeys,
              keyAlgorithm,
              handOver,
              program,
              dayMs,
              kubernetesVersion,
              versions,
            };
            await runKubeApiserverOperator(deps, signal);
          },
        },
        flags,
      );
    });
}

interface EtcdFlags extends OperatorFlags {
  readonly rotationDay?: string;
  readonly keyAlgorithm?: string;
  readonly image: string;
  readonly operatorImage?: string;
  readonly etcdVersion: string;
  readonly layout: string;
}

function addEtcdOperator(program: Command): void {
  const command = withOperatorFlags(
    program
      .command('etcd-operator')
      .summary('rotate the certificates of etcd and roll its members out without ever costing quorum')
      .description(
        'Keeps the certificates of every etcd member, their signers and bundles, and the static pods of etcd in order, on the\n' +
          'cluster the kubeconfig names. Needs the definitions in manifests/crds/.',
      ),
  );
  withKeyAlgorithmFlag(command)
    .option('--rotation-day <duration>', 'length of one rotation day, for all chains (default 24h)')
    .option('--image <image>', 'image with etcd', 'etcd')
    .option('--operator-image <image>', 'image with this program (default: that of the own pod, else rotunda)')
    .option('--etcd-version <version>', 'version of etcd in that image', 'unknown')
    .option('--layout <release>', 'objects and change of signers as in 4.16 (by hand) or later (by itself)', 'later')
    .action(async (flags: EtcdFlags) => {
      const { layout } = flags;
      if (layout !== '4.16' && layout !== 'later') {
        throw new UsageError(`--layout must be 4.16 or later, found "${layout}"`);
      }
      const dayMs = flags.rotationDay === undefined ? undefined : rotationDayFrom(flags.rotationDay);
      const keyAlgorithm = keyAlgorithmFrom(flags.keyAlgorithm, HAND_BACK_ALGORITHM);
      const [{ runOperator }, { ensureCluster }, { etcdProgram }, { chosenProfile }] = await Promise.all([
        import('./process.ts'),
        import('../../etcd/ensure-cluster.ts'),
        import('../../etcd/program.ts'),
        import('../../etcd/chosen-profile.ts'),
      ]);
      const { image, etcdVersion: version } = flags;
      await runOperator(
        {
          name: 'etcd-operator',
          namespace: ETCD_LEASE.namespace,
          lease: ETCD_LEASE.name,
          work: async (tools, signal) => {
            const operand: EtcdOperand = {
              image,
              operatorImage: await operatorImageOf(flags, tools),
              version,
              command: ['rotunda'],
              listenOn: 'all',
              withMetricsProxy: true,
              guards: true,
            };
            await ensureCluster(tools.kube, signal);
            const profile = await chosenProfile(tools.kube, { layout, dayMs }, signal);
            await etcdProgram({ ...tools, operand, profile, keyAlgorithm }).run(signal);
          },
        },
        flags,
      );
    });
}

/** Installers and side containers run from the image of the operator, unless somebody says otherwise. */
async function operatorImageOf(flags: { readonly operatorImage?: string }, tools: OperatorTools): Promise<string> {
  return flags.operatorImage ?? (await tools.ownImage()) ?? 'rotunda';
}
