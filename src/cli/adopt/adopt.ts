import { objectsOf } from '../../kubeadm/adopt/objects.ts';
import { isPodsPolicy, refreshFrom } from '../../kubeadm/cluster-record.ts';
import { type Cluster, withCluster } from '../cluster.ts';
import { positiveDurationFrom } from '../cluster-flags.ts';
import { layoutOf } from '../look/layout.ts';
import { lookAtCluster } from '../look/look-at-cluster.ts';
import { summaryOf } from '../look/words.ts';
import { visible } from '../table.ts';
import { UsageError } from '../usage-error.ts';
import type { AdoptFlags } from './command.ts';
import { install } from './install.ts';
import { yamlOf } from './manifests.ts';
import { type AdoptionPlan, type AdoptionWishes, planAdoption, recordOf } from './plan.ts';
import { lines, tell, untilInterrupted } from './saying.ts';
import { readAdoption } from './sight.ts';
import { untilAdopted } from './until-adopted.ts';

/** `rotunda adopt kubeadm`: looks, says, and with `--yes` does (spec 80, 4). */
export async function runAdopt(layout: string, flags: AdoptFlags): Promise<void> {
  const wishes = wishesFrom(layout, flags);
  const timeoutMs = positiveDurationFrom('--timeout', flags.timeout);
  if (flags.output !== 'text' && flags.output !== 'yaml')
    throw new UsageError(`--output must be text or yaml, found "${flags.output}"`);
  await withCluster(flags, async cluster => {
    const { kube } = cluster;
    await refuseOthers(cluster);
    const planned = planAdoption(await readAdoption(kube), wishes);
    if ('refusal' in planned) throw new Error(`this cluster cannot be adopted: ${planned.refusal}`);
    const { plan } = planned;
    if (flags.output === 'yaml') {
      process.stdout.write(documentsOf(plan));
      return;
    }
    const isToBeDone = flags.yes === true && flags.dryRun !== true;
    process.stdout.write(lines(await found(cluster, plan), sayingOf(plan, isToBeDone)));
    if (!isToBeDone) return;
    await untilInterrupted(
      'stopped: what was installed stays; the same command goes on from here, rotunda release kubeadm undoes it',
      async signal => {
        await install(kube, plan, {
          signal,
          onChange: ({ kind, metadata }, what) =>
            tell(`${kind} ${[metadata?.namespace, metadata?.name].filter(Boolean).join('/')}: ${what}`),
        });
        const message = await untilAdopted(kube, { signal, timeoutMs, onProgress: text => tell(`waiting: ${text}`) });
        process.stdout.write(
          lines([`Adopted. ${message}`, 'See rotunda get certs, and rotunda plan --days 365 for what will happen.']),
        );
      },
    );
  });
}

export function wishesFrom(layout: string, flags: AdoptFlags): AdoptionWishes {
  if (layout !== 'kubeadm')
    throw new UsageError(`only clusters that kubeadm made can be adopted: expected kubeadm, found "${layout}"`);
  const { image, pods, refresh: fraction } = flags;
  if (image !== undefined && !/^[^\s/]\S{0,1000}$/.test(image))
    throw new UsageError(`--image must be a reference such as registry.example.com/rotunda:1.2.3, found "${image}"`);
  if (pods !== undefined && !isPodsPolicy(pods))
    throw new UsageError(`--pods must be wait, restart or ignore, found "${pods}"`);
  const refresh = fraction === undefined ? undefined : refreshFrom(fraction);
  if (fraction !== undefined && refresh === undefined)
    throw new UsageError(`--refresh must be a number above 0 and below 1 such as 0.666, found "${fraction}"`);
  return { image, pods, refresh, keysOnNodes: flags.keysOnNodes };
}

async function refuseOthers(cluster: Cluster): Promise<void> {
  if ((await layoutOf({}, cluster)) === 'kubeadm') return;
  throw new Error(
    'this cluster was not made by kubeadm: there is neither ConfigMap kube-system/kubeadm-config nor kube-public/cluster-info',
  );
}

function documentsOf({ installation, settings }: AdoptionPlan): string {
  const objects = objectsOf(installation);
  const first = objects.findIndex(({ part }) => part !== 'namespaces');
  const record = { ...objects[0], reasons: undefined, object: recordOf(settings) } as (typeof objects)[number];
  return yamlOf([...objects.slice(0, first), record, ...objects.slice(first)]);
}

/** The answer, and what ends next as things are. */
async function found(cluster: Cluster, { answer, isAdopted }: AdoptionPlan): Promise<string[]> {
  if (isAdopted) return [answer];
  const now = new Date();
  const { items } = await lookAtCluster(cluster, now);
  const { first } = summaryOf(items, [], now);
  return [answer, ...first.split('\n').filter(Boolean)];
}

function sayingOf({ would, notes, isAdopted }: AdoptionPlan, isToBeDone: boolean): string[] {
  return [
    isToBeDone ? 'What is done:' : `With --yes${isAdopted ? ', where it is not so yet' : ''}:`,
    ...would.map(text => `- ${visible(text)}`),
    ...(notes.length > 0 ? ['To know before:', ...notes.map(text => `- ${visible(text)}`)] : []),
    ...(isToBeDone ? [] : ['Nothing was written.']),
  ];
}
