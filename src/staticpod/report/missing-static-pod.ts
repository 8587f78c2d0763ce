import type { ConfigMap, Pod } from 'kubernetes-types/core/v1.d.ts';
import { earlier, type Reconcile } from '../../controller/reconcile.ts';
import { formatGoDuration, minutes, seconds } from '../../kube/duration.ts';
import { CONFIG_MAPS, PODS } from '../../kube/resource.ts';
import { mirrorPodName, type StaticPodOperatorConfig } from '../config.ts';
import { REVISION_LABEL, timeOf } from '../installer/operand.ts';
import { INSTALLER_LABELS, revisionOfInstallerPod } from '../installer/pod-name.ts';
import { decodePod } from '../node/manifest.ts';
import { notFound, type Objects } from '../objects.ts';
import { copyName, parseRevision } from '../revision/number.ts';

export interface MissingStaticPodOptions {
  readonly config: Pick<StaticPodOperatorConfig, 'operandName' | 'operandNamespace' | 'staticPodName' | 'topology'>;
  readonly cached: Objects;
}

const MULTI_NODE_MS = seconds(150);
const SINGLE_NODE_MS = seconds(180);
const DEFAULT_GRACE_SECONDS = 30;
/** The same finding is told again after this time. */
const TELL_AGAIN_MS = minutes(30);

/**
 * Fails when an installer has done its work and the kubelet has not (spec 30, section 16). To be wrapped so that the
 * failure becomes a condition.
 */
export function missingStaticPodReconcile({ config, cached }: MissingStaticPodOptions): Reconcile {
  const told = new Map<string, { revision: number; atMs: number }>();
  return async (_key, { clock, events }) => {
    const namespace = config.operandNamespace;
    const now = clock.now();
    const failures: string[] = [];
    let againAt: Date | undefined;
    const installers = latestInstallers(await cached.list(PODS, { namespace, labels: INSTALLER_LABELS }));
    for (const { nodeName, revision, finishedAt } of installers) {
      if (finishedAt === undefined) continue;
      const name = copyName(`${config.operandName}-pod`, revision);
      const stopMs = graceMs(await cached.get(CONFIG_MAPS, { namespace, name }), namespace, name);
      const isSingleNode = await config.topology?.();
      const thresholdMs = stopMs + (isSingleNode === false ? MULTI_NODE_MS : SINGLE_NODE_MS);
      const dueMs = finishedAt.getTime() + thresholdMs + 1;
      if (now.getTime() < dueMs) {
        againAt = earlier(againAt, new Date(dueMs));
        continue;
      }
      const key = { namespace, name: mirrorPodName(config, nodeName) };
      if (runningRevision(await cached.get(PODS, key)) >= revision) continue;
      const where = `static pod: "${config.staticPodName}" in namespace: "${namespace}" for revision: ${revision} on node: "${nodeName}"`;
      const text = `static pod lifecycle failure - ${where} didn't show up, waited: ${formatGoDuration(thresholdMs)}`;
      failures.push(text);
      const last = told.get(nodeName);
      if (last?.revision !== revision || now.getTime() - last.atMs > TELL_AGAIN_MS) {
        events.event('Normal', 'MissingStaticPod', text);
        told.set(nodeName, { revision, atMs: now.getTime() });
      }
    }
    if (failures.length > 0) throw new Error(failures.join('\n'));
    return { againAt };
  };
}

/** The installer of the highest revision on each node, and when it succeeded. */
function latestInstallers(
  pods: readonly Pod[],
): { nodeName: string; revision: number; finishedAt: Date | undefined }[] {
  const latest = new Map<string, { pod: Pod; revision: number }>();
  for (const pod of pods) {
    const { name = '' } = pod.metadata ?? {};
    if (!name.startsWith('installer-')) continue;
    const nodeName = pod.spec?.nodeName ?? '';
    if (nodeName === '') throw new Error(`node name for installer pod "${name}" is empty`);
    const revision = revisionOfInstallerPod(name);
    const known = latest.get(nodeName);
    if (known === undefined || isLater(pod, revision, known)) latest.set(nodeName, { pod, revision });
  }
  return [...latest].map(([nodeName, { pod, revision }]) => ({ nodeName, revision, finishedAt: successOf(pod) }));
}

/** Of several attempts at one revision the last one that succeeded counts. */
function isLater(pod: Pod, revision: number, known: { pod: Pod; revision: number }): boolean {
  if (revision !== known.revision) return revision > known.revision;
  return (successOf(pod)?.getTime() ?? 0) > (successOf(known.pod)?.getTime() ?? 0);
}

function successOf({ status }: Pod): Date | undefined {
  const container = status?.containerStatuses?.find(({ name }) => name === 'installer');
  const terminated = container?.state?.terminated;
  return terminated?.exitCode === 0 ? timeOf(terminated.finishedAt) : undefined;
}

/** How long the operand of a revision may take to stop. */
function graceMs(configMap: ConfigMap | undefined, namespace: string, name: string): number {
  if (configMap === undefined) throw notFound(CONFIG_MAPS, name);
  const text = configMap.data?.['pod.yaml'];
  if (text === undefined) throw new Error(`didn't find required key "pod.yaml" in cm: ${name}/${namespace}`);
  const where = `pod.yaml of configmap ${namespace}/${name}`;
  const spec: unknown = decodePod(text, where).spec ?? {};
  if (typeof spec !== 'object' || spec === null || Array.isArray(spec)) {
    throw new Error(`expected a mapping in spec, ${where}, found ${JSON.stringify(spec)}`);
  }
  const { terminationGracePeriodSeconds } = spec as { terminationGracePeriodSeconds?: unknown };
  const grace = terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS;
  if (typeof grace !== 'number') {
    throw new Error(
      `expected a number in spec.terminationGracePeriodSeconds, ${where}, found ${JSON.stringify(grace)}`,
    );
  }
  return seconds(grace);
}

/** -1 = there is no pod. */
function runningRevision(pod: Pod | undefined): number {
  if (pod === undefined) return -1;
  const label = pod.metadata?.labels?.[REVISION_LABEL] ?? '';
  const revision = parseRevision(label);
  if (revision === undefined) {
    throw new Error(
      `failed to get a revision for the static pod "${pod.metadata?.name}" - label "${label}" is not a number`,
    );
  }
  return revision;
}
