import { randomBytes } from 'node:crypto';
import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { isNotFound } from '../../kube/error.ts';
import type { Kube } from '../../kube/port.ts';
import { SECRETS } from '../../kube/resource.ts';
import { MACHINE_CONFIG_POOLS } from '../../machine-config-api/machine-config.ts';
import { objectText } from '../../trust/object.ts';
import { heldBack } from '../certificates/gate.ts';
import { platformVerdict } from '../certificates/platform.ts';
import { setRegeneration, whatFollows } from '../certificates/regenerate.ts';
import { readPlanObjects } from '../plan/objects.ts';
import { simulate } from '../plan/simulate.ts';
import type { Action, ActionPreview, ActionResult } from './model.ts';
import type { Session } from './sessions.ts';

/** Plans that were shown and not yet acted upon, of one session. */
const MOST_PREVIEWS = 20;
const NAME = /^[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?$/;

/** Reads what the page asks for; undefined when it makes no sense. */
export function actionFrom(body: unknown): Action | undefined {
  const { kind, object, pool, overrideGate } = (body ?? {}) as Record<string, unknown>;
  if (kind === 'pause' || kind === 'resume') return isName(pool) ? { kind, pool } : undefined;
  if (kind !== 'regenerate') return undefined;
  const { namespace, name } = (object ?? {}) as Record<string, unknown>;
  if (!isName(namespace) || !isName(name)) return undefined;
  return { kind, object: { kind: 'Secret', namespace, name }, overrideGate: overrideGate === true };
}

function isName(text: unknown): text is string {
  return typeof text === 'string' && NAME.test(text);
}

/** Says what an action would do, by the rules themselves, and remembers that it was said. Writes nothing. */
export async function previewAction(session: Session, action: Action, now: Date): Promise<ActionPreview> {
  const shown =
    action.kind === 'regenerate'
      ? await previewRegeneration(session, action, now)
      : await previewPool(session, action, now);
  const id = randomBytes(16).toString('base64url');
  if (shown.refusal === undefined) {
    session.previews.set(id, action);
    for (const [oldest] of [...session.previews].slice(0, -MOST_PREVIEWS)) session.previews.delete(oldest);
  }
  return { id, ...shown };
}

/** Carries an action out, with the rights of the session. */
export async function performAction(
  { principal: { kube } }: Session,
  action: Action,
  now: Date,
): Promise<ActionResult> {
  if (action.kind !== 'regenerate') {
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
type Pausing = Exclude<Action, { kind: 'regenerate' }>;

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
  // The API is asked whether it would let this user do it.
  const trial = await setRegeneration(kube, secret, verb, { dryRun: true }, now);
  if (trial.outcome !== 'done') return { title, refusal: trial.text, events: [], notes: [] };
  const events = await whatFollows(feed.source, [action.object], now);
  const notes =
    verb === 'leaf'
      ? []
      : ['A signer that was replaced stays trusted until it expires; leaves follow later. This cannot be undone.'];
  return { title, gate, events, notes };
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
