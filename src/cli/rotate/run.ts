import { createInterface } from 'node:readline/promises';
import { floorToMs, parseRfc3339 } from '../../kube/time.ts';
import type { SignerName } from '../../kubeadm/chains.ts';
import { FirstSeen, podTrust } from '../../kubeadm/operator/older-pods.ts';
import { withCluster } from '../cluster.ts';
import { confirm } from '../confirm.ts';
import { visible } from '../table.ts';
import { UsageError } from '../usage-error.ts';
import type { RotateFlags } from './command.ts';
import { type Aim, follow } from './follow.ts';
import { wrap } from './lines.ts';
import { planText } from './plan.ts';
import { type Request, retireRequest, rotationRequest, takeBackRequest, write } from './request.ts';
import { readPods, readScene, type Scene } from './scene.ts';

const REQUESTS = { rotate: rotationRequest, 'take-back': takeBackRequest, retire: retireRequest } as const;
/** A leader renews its lease more often than this. */
const SILENT_MS = 150_000;

export async function runRotate(what: SignerName, flags: RotateFlags): Promise<void> {
  if ([flags.plan, flags.retire, flags.takeBack].filter(Boolean).length > 1)
    throw new UsageError('--plan, --retire and --take-back exclude each other');
  const aim: Aim = flags.retire ? 'retire' : flags.takeBack ? 'take-back' : 'rotate';
  await withCluster(flags, async ({ kube }) => {
    const scene = await readScene(kube, new Date());
    const request = REQUESTS[aim](what, scene);
    if (request.is === 'refused') throw new Error(request.why);
    if (aim === 'rotate' && (flags.plan || request.is === 'asked')) {
      const older = what === 'ca' ? await olderPods(kube, scene) : [];
      process.stdout.write(lines(planText(what, scene, older)));
    }
    if (flags.plan) return;
    for (const line of warnings(scene)) process.stderr.write(`${visible(line)}\n`);
    if (request.is === 'there') process.stderr.write(`${visible(request.says)}\n`);
    else {
      await agree(aim, request, flags.yes);
      await write(kube, request);
      process.stderr.write(`${wrap(visible(request.says))}\n`);
    }
    if (!flags.follow) return;
    const stop = new AbortController();
    const onSignal = () => stop.abort();
    process.once('SIGINT', onSignal);
    try {
      const print = (line: string) => process.stdout.write(`${visible(line)}\n`);
      await follow(what, aim, { kube, signal: stop.signal, print });
    } catch (error) {
      if (!stop.signal.aborted) throw error;
      process.stderr.write('\nit goes on by itself; run the same command again to follow it\n');
    } finally {
      process.off('SIGINT', onSignal);
    }
  });
}

async function olderPods(kube: Parameters<typeof readPods>[0], scene: Scene) {
  const ca = scene.families.find(({ name }) => name === 'ca');
  const { pods, rootCas } = await readPods(kube);
  // Whatever runs now has begun before a CA that is not there yet.
  const asIfNow = rootCas.map(configMap => ({ ...configMap, metadata: { ...configMap.metadata, managedFields: [] } }));
  const known = ca === undefined ? [] : [ca.current];
  return ca === undefined ? [] : podTrust(pods, asIfNow, ca.current, known, new FirstSeen(() => scene.now)).older;
}

/** What would keep the operator from answering. */
function warnings({ lease, now, nodes }: Scene): string[] {
  const renewed = parseRfc3339(lease?.spec?.renewTime ?? '');
  const isSilent = renewed === undefined || now.getTime() - floorToMs(renewed).getTime() > SILENT_MS;
  const mute = nodes.filter(({ report }) => report === undefined).map(({ name }) => name);
  return [
    ...(isSilent
      ? ['warning: no operator leads: see kubectl -n rotunda get pods; what is asked for waits for it']
      : []),
    ...(mute.length > 0 ? [`warning: the agents of ${mute.join(', ')} say nothing: it will wait for them`] : []),
  ];
}

/** What can be taken back is asked about once; what cannot, as everywhere. */
async function agree(aim: Aim, { says }: Extract<Request, { is: 'asked' }>, yes: boolean | undefined): Promise<void> {
  if (aim === 'retire') return confirm(wrap(says), yes);
  if (yes) return;
  if (!process.stdin.isTTY || !process.stderr.isTTY)
    throw new UsageError('nobody can be asked here: say --yes, or look first with --plan');
  const prompt = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = (await prompt.question(aim === 'rotate' ? 'Go on? [y/N] ' : `${wrap(says)}. Go on? [y/N] `)).trim();
    if (!['y', 'yes'].includes(answer.toLowerCase())) throw new Error('stopped: nothing was written');
  } finally {
    prompt.close();
  }
}

function lines(text: string): string {
  return `${text.trimEnd().split('\n').map(visible).join('\n')}\n`;
}
