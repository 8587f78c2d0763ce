import { randomBytes } from 'node:crypto';
import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { readPlanObjects } from '../../forecast/objects.ts';
import { simulate } from '../../forecast/simulate.ts';
import { isNotFound } from '../../kube/error.ts';
import { getIfPresent } from '../../kube/get.ts';
import type { Kube } from '../../kube/port.ts';
import { NODES, SECRETS } from '../../kube/resource.ts';
import { MACHINE_CONFIG_POOLS } from '../../machine-config-api/machine-config.ts';
import { objectText } from '../../trust/object.ts';
import { heldBack } from '../certificates/gate.ts';
import { alreadyBegun, handOverOf, isBegun, whatBegins } from '../certificates/new-signer.ts';
import { platformVerdict } from '../certificates/platform.ts';
import { setRegeneration, whatFollows } from '../certificates/regenerate.ts';
import { readHandOvers } from '../hand-overs/items.ts';
import { takeBack, type WayBack, wayBack } from '../hand-overs/take-back.ts';
import { waiveNode, whatWaivingMeans } from '../hand-overs/waive.ts';
import type { Action, ActionPreview, ActionResult } from './model.ts';
import type { Session } from './sessions.ts';

/** Plans that were shown and not yet acted upon, of one session. */
const MOST_PREVIEWS = 20;
const NAME = /^[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?$/;

/** Reads what the page asks for; undefined when it makes no sense. */
export function actionFrom(body: unknown): Action | undefined {
  const { kind, object, pool, node, overrideGate } = (body ?? {}) as Record<string, unknown>;
  if (kind === 'pause' || kind === 'resume') return isName(pool) ? { kind, pool } : undefined;
  if (kind === 'waive' || kind === 'count') return isName(node) ? { kind, node } : undefined;
  if (kind !== 'regenerate' && kind !== 'take-back') return undefined;
  const { namespace, name } = (object ?? {}) as Record<string, unknown>;
  if (!isName(namespace) || !isName(name)) return undefined;
  const signer = { kind: 'Secret', namespace, name } as const;
  if (kind === 'take-back') return { kind, object: signer };
  return { kind, object: signer, overrideGate: overrideGate === true };
}

function isName(text: unknown): text is string {
  return typeof text === 'string' && NAME.test(text);
}

/** Says what an action would do, by the rules themselves, and remembers that it was said. Writes nothing. */
export async function previewAction(session: Session, action: Action, now: Date): Promise<ActionPreview> {
  const shown = await previewOf(session, action, now);
  const id = randomBytes(16).toString('base64url');
  if (shown.refusal === undefined) {
    session.previews.set(id, action);
    for (const [oldest] of [...session.previews].slice(0, -MOST_PREVIEWS)) session.previews.delete(oldest);
  }
  return { id, ...shown };
}

function previewOf(session: Session, action: Action, now: Date): Promise<Shown> {
  if ('node' in action) return previewWaiver(session, action, now);
  if ('pool' in action) return previewPool(session, action, now);
  return action.kind === 'take-back'
    ? previewTakeBack(session, action, now)
    : previewRegeneration(session, action, now);
}

/** Carries an action out, with the rights of the session. */
export async function performAction(
  { principal: { kube } }: Session,
  action: Action,
  now: Date,
): Promise<ActionResult> {
  if ('node' in action) {
    const isWanted = action.kind === 'waive';
    await waiveNode(kube, action.node, { isWanted, dryRun: false }, now);
    return { text: `node/${action.node} ${isWanted ? 'waived' : 'is waited for again'}` };
  }
  if (action.kind === 'take-back') {
    const way = await wayBackOf(kube, action, now);
    if ('refusal' in way) throw new ActionRefused(way.refusal);
    await takeBack(kube, way, false, now);
    return { text: `${objectText(action.object)}: ${way.told}` };
  }
  if ('pool' in action) {
    const paused = action.kind === 'pause';
    await patchPaused(kube, action.pool, paused, false);
    return { text: `machineconfigpool/${action.pool} ${paused ? 'paused' : 'resumed'}` };
  }
  const { object, overrideGate } = action;
  const { secret, verb, refusal } = await judged(kube, action);
  if (refusal !== undefined) throw new ActionRefused(refusal);
  const gate = verb === 'leaf' ? await gateNow(secret, kube, now) : undefined;
  if (gate !== undefined && !overrideGate) throw new ActionRefused(gate);
  const { outcome, text } = await setRegeneration(kube, secret, verb, { overrideGate: gate !== undefined }, now);
  if (outcome !== 'done') throw new ActionRefused(text);
  return { text: `${objectText(object)}: ${text}` };
}

/** The action is understood and will not be done. */
export class ActionRefused extends Error {
  override readonly name = 'ActionRefused';
}

type Shown = Omit<ActionPreview, 'id'>;
type Regeneration = Extract<Action, { kind: 'regenerate' }>;
type Pausing = Extract<Action, { pool: string }>;
type Waiving = Extract<Action, { node: string }>;
type TakingBack = Extract<Action, { kind: 'take-back' }>;

async function previewRegeneration(
  { principal: { kube, feed } }: Session,
  action: Regeneration,
  now: Date,
): Promise<Shown> {
  const { secret, verb, refusal } = await judged(kube, action);
  const { name } = action.object;
  const title = verb === 'leaf' ? `Regenerate the certificate ${name}` : `Replace the signer ${name}`;
  if (refusal !== undefined) return { title, refusal, events: [], notes: [] };
  const gate = verb === 'leaf' ? await gateNow(secret, kube, now) : undefined;
  const handOver = verb === 'top-level' ? handOverOf(secret, await readHandOvers(kube, now)) : undefined;
  if (handOver !== undefined && isBegun(handOver)) {
    return { title, refusal: `it ${alreadyBegun(secret, handOver).text}`, events: [], notes: [] };
  }
  // The API is asked whether it would let this user do it.
  const trial = await setRegeneration(kube, secret, verb, { dryRun: true }, now);
  if (trial.outcome !== 'done') return { title, refusal: trial.text, events: [], notes: [] };
  const events = await whatFollows(feed.source, [action.object], now);
  const notes =
    verb === 'leaf'
      ? []
      : [
          ...(handOver === undefined ? [] : whatBegins(handOver).map(sentence)),
          'A signer that was replaced stays trusted until it expires; leaves follow the new one.',
        ];
  return { title, gate, events, notes };
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

async function judged(kube: Kube, { object }: Regeneration) {
  const { namespace, name } = object;
  let secret: Secret;
  try {
    secret = await kube.get(SECRETS, { namespace, name });
  } catch (error) {
    if (isNotFound(error)) throw new ActionRefused(`secret "${name}" not found in namespace ${namespace}`);
    throw error;
  }
  const [leaf, topLevel] = [
    platformVerdict(secret, 'leaf', undefined),
    platformVerdict(secret, 'top-level', undefined),
  ];
  if (leaf.act === true) return { secret, verb: 'leaf' as const };
  if (topLevel.act === true) return { secret, verb: 'top-level' as const };
  return { secret, verb: 'leaf' as const, refusal: `nobody would make it anew: ${leaf.because}` };
}

async function gateNow(secret: Secret, kube: Kube, now: Date): Promise<string | undefined> {
  return (await heldBack(kube, [secret], now)).get(secret)?.because;
}

async function previewWaiver({ principal: { kube } }: Session, { kind, node }: Waiving, now: Date): Promise<Shown> {
  const isWanted = kind === 'waive';
  const title = isWanted ? `Hand over without node ${node}` : `Wait for node ${node} again`;
  const found = await getIfPresent(kube, NODES, { name: node });
  if (found === undefined) throw new ActionRefused(`node "${node}" not found`);
  await waiveNode(kube, node, { isWanted, dryRun: true }, now);
  const notes = isWanted
    ? whatWaivingMeans(found, await readHandOvers(kube, now))
    : ['Hand-overs wait again for what runs on it.'];
  return { title, events: [], notes };
}

async function previewTakeBack({ principal: { kube } }: Session, action: TakingBack, now: Date): Promise<Shown> {
  const title = `Take back the hand-over of ${action.object.name}`;
  const way = await wayBackOf(kube, action, now);
  if ('refusal' in way) return { title, refusal: way.refusal, events: [], notes: [] };
  await takeBack(kube, way, true, now);
  return { title, events: [], notes: [way.says] };
}

async function wayBackOf(kube: Kube, { object: { namespace, name } }: TakingBack, now: Date): Promise<WayBack> {
  const handOvers = await readHandOvers(kube, now);
  const item = handOvers.find(({ metadata }) => metadata.namespace === namespace && metadata.name === name);
  if (item === undefined)
    throw new ActionRefused(`secret "${name}" in namespace ${namespace} is no signer that is handed over`);
  return wayBack(kube, item, false, now);
}

async function previewPool({ principal: { kube, feed } }: Session, { kind, pool }: Pausing, now: Date): Promise<Shown> {
  const paused = kind === 'pause';
  const title = `${paused ? 'Pause' : 'Resume'} the pool ${pool}`;
  const objects = await readPlanObjects(feed.source);
  if (!objects.pools.some(({ metadata }) => metadata?.name === pool)) {
    throw new ActionRefused(`machineconfigpool "${pool}" not found`);
  }
  await patchPaused(kube, pool, paused, true);
  const pools = objects.pools.map(found =>
    found.metadata?.name === pool ? { ...found, spec: { ...found.spec, paused } } : found,
  );
  const { events, notes } = await simulate({ ...objects, pools }, { now, until: now });
  const about = (text: string) => text.includes(`machineconfigpool/${pool} `);
  return {
    title,
    events: events.filter(({ change, reason }) => change === 'reboot' && about(reason)),
    notes: [
      ...(paused
        ? [
            'Its nodes keep the configuration they have until the pool is resumed. Certificates still reach them: they do not go through pools.',
          ]
        : ['Nodes that are behind are updated, as many at a time as the pool allows.']),
      ...notes.filter(about),
    ],
  };
}

async function patchPaused(kube: Kube, name: string, paused: boolean, dryRun: boolean): Promise<void> {
  const body = { spec: { paused } };
  await kube.patch(
    MACHINE_CONFIG_POOLS,
    { name },
    { type: 'merge', body },
    { dryRun, fieldManager: 'rotunda-console' },
  );
}
