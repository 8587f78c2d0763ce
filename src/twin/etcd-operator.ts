import type { ConnectEtcd } from '../etcd/client/gateway.ts';
import { ensureCluster } from '../etcd/ensure-cluster.ts';
import type { Profile } from '../etcd/profile.ts';
import { etcdProgram } from '../etcd/program.ts';
import type { Keys } from '../pki/keys.ts';
import type { Tools } from './component.ts';

export interface EtcdOperatorParts {
  readonly keys: Keys;
  readonly profile: Profile;
  readonly connect: ConnectEtcd;
}

/** The real etcd operator, as its command starts it. */
export async function runEtcdOperator(
  tools: Tools,
  { keys, profile, connect }: EtcdOperatorParts,
  signal: AbortSignal,
): Promise<void> {
  const operand = {
    image: 'etcd:1',
    operatorImage: 'operator:1',
    version: '1.0.0',
    command: ['rotunda'],
    listenOn: 'all',
    withMetricsProxy: true,
    guards: true,
  } as const;
  await ensureCluster(tools.kube, signal);
  await etcdProgram({ ...tools, keys, keyAlgorithm: 'P-256', profile, operand, connect }).run(signal);
}
