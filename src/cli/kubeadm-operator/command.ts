import type { Command } from 'commander';
import { OPERATOR_LEASE } from '../../kubeadm/operator/names.ts';
import { withOperatorFlags } from '../operator/flags.ts';
import type { OperatorFlags } from '../operator/process.ts';

/** The operator of a control plane that kubeadm made. */
export function addKubeadmOperator(program: Command): void {
  withOperatorFlags(
    program
      .command('kubeadm-operator')
      .summary('keep the certificates of a control plane that kubeadm made, and hand its CAs over')
      .description(
        'Tells the agents of an adopted cluster (rotunda adopt kubeadm), one node at a time, what their files are to be like: leaves are made\n' +
          'anew in time, and a new CA signs only when everybody has loaded it. Does nothing before the nodes were seen to agree. What it is\n' +
          'doing, and for whom it waits, stands in ConfigMap kubeadm of namespace rotunda-pki.',
      ),
  ).action(async (flags: OperatorFlags) => {
    const [{ runOperator }, { kubeadmOperator }] = await Promise.all([
      import('../operator/process.ts'),
      import('../../kubeadm/operator/operator.ts'),
    ]);
    await runOperator(
      {
        name: 'kubeadm-operator',
        namespace: OPERATOR_LEASE.namespace,
        lease: OPERATOR_LEASE.name,
        work: (tools, signal) => kubeadmOperator(tools).run(signal),
      },
      flags,
    );
  });
}
