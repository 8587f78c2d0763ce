import { getIfPresent } from '../../kube/get.ts';
import type { Kube } from '../../kube/port.ts';
import { DEPLOYMENTS, NAMESPACES, NODES } from '../../kube/resource.ts';
import { AGENTS, OPERATOR } from '../../kubeadm/adopt/accounts.ts';
import { DAEMON_SETS, type InstalledObject } from '../../kubeadm/adopt/objects.ts';
import { PKI_NAMESPACE, ROTUNDA_NAMESPACE } from '../../kubeadm/names.ts';
import { FIELD_MANAGER, removeFrom } from './install.ts';
import { type Answer, type PatienceOptions, untilTrue } from './patience.ts';
import { NODE_ANNOTATIONS, type ReleaseSight, readRelease } from './release-sight.ts';
import { isReady, readAdoption } from './sight.ts';

const DEPLOYMENT = { namespace: ROTUNDA_NAMESPACE, name: OPERATOR };

/**
 * Takes an adoption back. The operator stops first, and what it may have begun in that moment is looked for once more; then agents, and
 * only then what restrains them. Cut off at any moment, the next run goes on where this one ended.
 */
export async function undo(kube: Kube, options: PatienceOptions): Promise<void> {
  const { signal, onProgress } = options;
  const waitFor = (question: () => Promise<Answer<true>>) =>
    untilTrue({ ...options, onProgress: text => onProgress(`waiting: ${text}`) }, question);
  await waitFor(async () => {
    const { decision } = await readRelease(kube, signal);
    refuse(decision);
    return decision.awaited.length === 0 ? { done: true } : { missing: decision.awaited };
  });
  const replicas = await stopOperator(kube, signal);
  await waitFor(() => podsAreGone(kube, [OPERATOR], signal));
  const sight = await readRelease(kube, signal);
  if (sight.decision.refused.length > 0 || sight.decision.awaited.length > 0) {
    await scale(kube, replicas, signal);
    throw new Error(
      [
        'the operator began something in this moment, and goes on:',
        ...sight.decision.refused,
        ...sight.decision.awaited,
      ].join('\n- '),
    );
  }
  const { present } = sight;
  const remove = async (isMeant: (one: InstalledObject) => boolean) => {
    for (const { resource, object } of present.filter(isMeant)) {
      if (await removeFrom(kube, resource, object, signal))
        onProgress(
          `${object.kind} ${[object.metadata?.namespace, object.metadata?.name].filter(Boolean).join('/')}: removed`,
        );
    }
  };
  await remove(({ resource }) => resource === DAEMON_SETS);
  await waitFor(() => podsAreGone(kube, AGENTS, signal));
  await remove(({ part }) => part === 'policies');
  await remove(({ part }) => part !== 'namespaces' && part !== 'policies');
  await removeNamespaces(kube, sight, options);
  await waitFor(() => namespacesAreGone(kube, sight, signal));
  // Last: as long as there are keys of CAs in Secrets, what nodes report tells whether there are others.
  await clearNodes(kube, sight, signal);
}

function refuse({ refused }: ReleaseSight['decision']): void {
  if (refused.length > 0) throw new Error(refused.join('\n'));
}

/** How many there were. */
async function stopOperator(kube: Kube, signal: AbortSignal | undefined): Promise<number> {
  const deployment = await getIfPresent(kube, DEPLOYMENTS, DEPLOYMENT, { signal });
  if (deployment === undefined) return 0;
  await scale(kube, 0, signal);
  return deployment.spec?.replicas ?? 1;
}

async function scale(kube: Kube, replicas: number, signal: AbortSignal | undefined): Promise<void> {
  await kube.patch(DEPLOYMENTS, DEPLOYMENT, { type: 'merge', body: { spec: { replicas } } }, { signal });
}

/** Pods on nodes that are away stay in the API until those are back, or deleted; they do nothing there. */
async function podsAreGone(
  kube: Kube,
  apps: readonly string[],
  signal: AbortSignal | undefined,
): Promise<Answer<true>> {
  const { pods, nodes } = await readAdoption(kube, signal);
  const ready = new Set(nodes.filter(isReady).map(({ metadata }) => metadata?.name));
  const left = pods.filter(
    ({ metadata, spec }) => apps.includes(metadata?.labels?.app ?? '') && ready.has(spec?.nodeName),
  );
  return left.length === 0
    ? { done: true }
    : { missing: [`${left.length} ${left.length === 1 ? 'pod' : 'pods'} of ${apps.join(' and ')} to end`] };
}

async function clearNodes(kube: Kube, { noted }: ReleaseSight, signal: AbortSignal | undefined): Promise<void> {
  const annotations = Object.fromEntries(NODE_ANNOTATIONS.map(name => [name, null]));
  for (const name of noted)
    await kube.patch(NODES, { name }, { type: 'merge', body: { metadata: { annotations } } }, { signal });
}

async function removeNamespaces(
  kube: Kube,
  { present, others }: ReleaseSight,
  { signal, onProgress }: PatienceOptions,
): Promise<void> {
  for (const { resource, object } of present.filter(({ part }) => part === 'namespaces')) {
    if (object.metadata?.name === ROTUNDA_NAMESPACE && others.length > 0) {
      // Without the labels that let agents in.
      const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: ROTUNDA_NAMESPACE } };
      await kube.patch(
        NAMESPACES,
        { name: ROTUNDA_NAMESPACE },
        { type: 'apply', body },
        { fieldManager: FIELD_MANAGER, force: true, signal },
      );
    } else if (await removeFrom(kube, resource, object, signal))
      onProgress(`Namespace ${object.metadata?.name}: removed`);
  }
}

async function namespacesAreGone(
  kube: Kube,
  { others }: ReleaseSight,
  signal: AbortSignal | undefined,
): Promise<Answer<true>> {
  const names = others.length > 0 ? [PKI_NAMESPACE] : [PKI_NAMESPACE, ROTUNDA_NAMESPACE];
  const found = await Promise.all(names.map(name => getIfPresent(kube, NAMESPACES, { name }, { signal })));
  const left = found.flatMap(namespace => namespace?.metadata?.name ?? []);
  return left.length === 0 ? { done: true } : { missing: [`namespace ${left.join(' and ')} to go`] };
}
