import { HostnameSource } from '../../certrotation/hostname-source.ts';
import type { Reconcile } from '../../controller/reconcile.ts';
import type { Source } from '../../controller/trigger.ts';
import type { ObjectKey } from '../../kube/resource.ts';
import type { DynamicHostnames } from '../chains.ts';
import { CLUSTER, type Infrastructure, type Network } from '../resources.ts';
import { decideHostnames, type HostnameInputs } from './hostnames.ts';

/** A cache of one kind of object that tells of changes. */
interface Followed<T extends Network | Infrastructure> extends Source<T> {
  get(key: ObjectKey): T | undefined;
}

export type HostnameSources = Readonly<Record<DynamicHostnames, HostnameSource>>;

const SOURCES: readonly DynamicHostnames[] = ['service-network', 'external-load-balancer', 'internal-load-balancer'];

export function hostnameSources(): HostnameSources {
  return {
    'service-network': new HostnameSource(),
    'external-load-balancer': new HostnameSource(),
    'internal-load-balancer': new HostnameSource(),
  };
}

/**
 * Keeps all three sources as the cluster's configuration says, from the first listing on and with every change of either object,
 * the internal load balancer included (trap 10.1.1). A source that cannot be told keeps the names it has. Returns the way to
 * stop that.
 */
export function followHostnames(
  sources: HostnameSources,
  networks: Followed<Network>,
  infrastructures: Followed<Infrastructure>,
): () => void {
  const follow = () => {
    const inputs = { network: networks.get(CLUSTER), infrastructure: infrastructures.get(CLUSTER) };
    for (const name of SOURCES) {
      const answer = decideHostnames(name, inputs);
      if (answer.ok) sources[name].set(answer.hostnames);
    }
  };
  const handlers = { add: follow, update: follow, delete: follow };
  const stops = [networks.subscribe(handlers), infrastructures.subscribe(handlers)];
  return () => {
    for (const stop of stops) stop();
  };
}

/** Fails with everything that keeps host names from being told, so that it shows in a condition. */
export function hostnameReconcile(inputs: () => HostnameInputs): Reconcile {
  return async () => {
    const answers = SOURCES.map(name => decideHostnames(name, inputs()));
    const problems = new Set(answers.flatMap(answer => (answer.ok ? [] : [answer.problem])));
    if (problems.size > 0) throw new Error([...problems].join('\n'));
  };
}
