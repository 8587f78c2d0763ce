import { createInterface } from 'node:readline/promises';
import type { Kube } from '../../kube/port.ts';
import { SECRETS } from '../../kube/resource.ts';
import { floorToMs, parseRfc3339 } from '../../kube/time.ts';
import type { Published } from '../../kubeadm/exchange.ts';
import { accountKeysIn } from '../../kubeadm/operator/account-keys.ts';
import { FirstSeen, podTrust } from '../../kubeadm/operator/older-pods.ts';
import { SERVICE_ACCOUNT, SERVICE_ACCOUNT_KEYS } from '../../kubeadm/service-account-keys.ts';
import { withCluster } from '../cluster.ts';
import { confirm } from '../confirm.ts';
import { visible } from '../table.ts';
import { UsageError } from '../usage-error.ts';
import { accountPlanText } from './account-plan.ts';
import { accountRequest, listed, tokenText } from './account-request.ts';
import { readAccountScene } from './account-scene.ts';
import type { Aim } from './aim.ts';
import type { RotateFlags } from './command.ts';
import { follow } from './follow.ts';
import { wrap } from './lines.ts';
import { planText } from './plan.ts';
import { lookAtTokens, renewSecretTokens } from './renew-tokens.ts';
import { type Request, retireRequest, rotationRequest, takeBackRequest, write } from './request.ts';
import { readPods, readScene, type Scene } from './scene.ts';

const REQUESTS = { rotate: rotationRequest, 'take-back': takeBackRequest, retire: retireRequest } as const;
/** A leader renews its lease more often than this. */
const SILENT_MS = 150_000;

export async function runRotate(what: Published, flags: RotateFlags): Promise<void> {
  if ([flags.plan, flags.retire, flags.takeBack].filter(Boolean).length > 1)
    throw new UsageError('--plan, --retire and --take-back exclude each other');
  const aim: Aim = flags.retire ? 'retire' : flags.takeBack ? 'take-back' : 'rotate';
  await withCluster(flags, async ({ kube }) => {
    const scene = await readScene(kube, new Date());
    const { request, plan } = await meant(what, aim, kube, scene);
    if (request.is === 'refused') throw new Error(request.why);
    if (aim === 'rotate' && (flags.plan || request.is === 'asked')) process.stdout.write(lines(await plan()));
    if (flags.plan) return;
    for (const line of warnings(scene)) process.stderr.write(`${visible(line)}\n`);
    if (request.is === 'there') process.stderr.write(`${visible(request.says)}\n`);
    else {
      await agree(aim, request, flags.yes);
      if (what === SERVICE_ACCOUNT && aim === 'retire') {
        const stopped = 'nothing is retired yet; run the same command again to go on';
        const isDone = await untilStopped(stopped, signal => renewSecretTokens({ kube, signal, print }));
        if (!isDone) return;
        const { notes } = await lookAtTokens(kube);
        await write(kube, { ...request, notes: { ...notes, ...request.notes } });
      } else await write(kube, request);
      process.stderr.write(`${wrap(visible(request.says))}\n`);
    }
    if (!flags.follow) return;
    const stopped = 'it goes on by itself; run the same command again to follow it';
    const isOver = await untilStopped(stopped, signal => follow(what, aim, { kube, signal, print }));
    if (isOver && what === SERVICE_ACCOUNT && aim !== 'retire') await tellOfTokens(kube);
  });
}

const print = (line: string) => process.stdout.write(`${visible(line)}\n`);

/** False: the person did not want to wait any longer, and was told what that means. */
async function untilStopped(says: string, work: (signal: AbortSignal) => Promise<void>): Promise<boolean> {
  const stop = new AbortController();
  const onSignal = () => stop.abort();
  process.once('SIGINT', onSignal);
  try {
    await work(stop.signal);
    return true;
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    process.stderr.write(`\n${says}\n`);
    return false;
  } finally {
    process.off('SIGINT', onSignal);
  }
}

/** The operator may not read Secrets: it is told whether any holds a token that would keep the key before for good. */
async function tellOfTokens(kube: Kube): Promise<void> {
  const keys = accountKeysIn([await kube.get(SECRETS, SERVICE_ACCOUNT_KEYS)]);
  if (keys === undefined || keys === 'unusable' || keys.previous === undefined) return;
  const { older, notes } = await lookAtTokens(kube);
  if (older.length > 0) {
    const text = `tokens that do not end keep the key before accepted, in ${listed(older.map(tokenText))}; --retire gives these Secrets other ones`;
    return void process.stdout.write(lines(wrap(text)));
  }
  if (Object.keys(notes).length > 0) await write(kube, { is: 'asked', key: SERVICE_ACCOUNT_KEYS, notes, says: '' });
}

/** What is asked for, and what would come of it. */
async function meant(
  what: Published,
  aim: Aim,
  kube: Kube,
  scene: Scene,
): Promise<{ readonly request: Request; plan(): Promise<string> }> {
  if (what === SERVICE_ACCOUNT) {
    const account = await readAccountScene(kube, scene);
    return { request: accountRequest(aim, scene, account), plan: async () => accountPlanText(scene, account) };
  }
  return {
    request: REQUESTS[aim](what, scene),
    plan: async () => planText(what, scene, what === 'ca' ? await olderPods(kube, scene) : []),
  };
}

async function olderPods(kube: Kube, scene: Scene) {
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
