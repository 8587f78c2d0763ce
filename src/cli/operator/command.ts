import type { Command } from 'commander';
import { parseGoDuration } from '../../kube/duration.ts';
import { VERSION } from '../../kube/version.ts';
import type { OperandProgram } from '../../kube-apiserver/target-config/controller.ts';
import { UsageError } from '../usage-error.ts';
import type { OperatorFlags } from './process.ts';

interface KubeApiserverFlags extends OperatorFlags {
  readonly rotationDay?: string;
  readonly flavor: string;
  readonly image: string;
  readonly operatorImage: string;
}

/** `rotunda kube-apiserver-operator`: the operators, one process each, against any cluster. */
export function addOperators(program: Command): void {
  withOperatorFlags(
    program
      .command('kube-apiserver-operator')
      .summary('rotate the certificates of kube-apiserver and roll its static pods out')
      .description(
        'Keeps the twelve certificate chains of kube-apiserver, what is derived from them, and its static pods in order, on the\n' +
          'cluster the kubeconfig names. Needs the definitions in manifests/crds/.',
      ),
  )
    .option('--rotation-day <duration>', 'length of one rotation day, for all chains (default 24h)')
    .option('--flavor <name>', 'how kube-apiserver is started: kubernetes or openshift', 'kubernetes')
    .option('--image <image>', 'image with kube-apiserver', 'kube-apiserver')
    .option('--operator-image <image>', 'image with this program', 'rotunda')
    .action(async (flags: KubeApiserverFlags) => {
      const { flavor, image, operatorImage } = flags;
      if (flavor !== 'kubernetes' && flavor !== 'openshift') {
        throw new UsageError(`--flavor must be kubernetes or openshift, found "${flavor}"`);
      }
      const dayMs = flags.rotationDay === undefined ? undefined : rotationDayFrom(flags.rotationDay);
      const [{ runOperator }, { runKubeApiserverOperator }, { systemKeys }] = await Promise.all([
        import('./process.ts'),
        import('../../kube-apiserver/operator.ts'),
        import('../../pki/keys.ts'),
      ]);
      const operandProgram: OperandProgram = {
        flavor,
        image,
        operatorImage,
        operatorCommand: ['rotunda'],
        version: VERSION,
      };
      await runOperator(
        {
          name: 'kube-apiserver-operator',
          namespace: 'openshift-kube-apiserver-operator',
          work: (tools, signal) =>
            runKubeApiserverOperator({ ...tools, keys: systemKeys, program: operandProgram, dayMs }, signal),
        },
        flags,
      );
    });
}

function withOperatorFlags(command: Command): Command {
  return command
    .option(
      '--kubeconfig <file>',
      'how to reach the cluster (default: KUBECONFIG, ~/.kube/config, the service account of the pod)',
    )
    .option('--context <name>', 'context of the kubeconfig')
    .option('--listen <address>', 'where health and metrics are served', '127.0.0.1:0')
    .option('--no-leader-elect', 'work without asking who leads; for a single instance only')
    .option('--log-level <level>', 'debug, info, warn or error', 'info');
}

function rotationDayFrom(text: string): number {
  const duration = parseGoDuration(text);
  if (duration === undefined || duration < 1000 || duration > 86_400_000) {
    throw new UsageError(`--rotation-day must be a duration from 1s to 24h, found "${text}"`);
  }
  return duration;
}
