import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { GATE_OVERRIDE, NOT_AFTER, REQUESTED_AT } from '../../certrotation/annotations.ts';
import type { PlanEvent } from '../../forecast/model.ts';
import { readPlanObjects } from '../../forecast/objects.ts';
import { simulate } from '../../forecast/simulate.ts';
import { rotationDayFrom } from '../../forecast/units.ts';
import { FORCED } from '../../inventory/forced.ts';
import { clusterSource, type ObjectSource } from '../../inventory/source.ts';
import { days } from '../../kube/duration.ts';
import type { Kube } from '../../kube/port.ts';
import { SECRETS } from '../../kube/resource.ts';
import { type ObjectRef, objectText } from '../../trust/object.ts';
import { withCluster } from '../cluster.ts';
import { confirm } from '../confirm.ts';
import { momentFrom } from '../moment.ts';
import { visible } from '../table.ts';
import type { RegenerateFlags, RegenerateVerb } from './command.ts';
import { type Gate, heldBack, surroundings } from './gate.ts';
import { alreadyBegun, handOverOf, isBegun, whatBegins } from './new-signer.ts';
import { type Outcome, printLocal, printOutcomes, reportMissing, verbFormat } from './outcome.ts';
import { platformVerdict, refOf, type Verdict } from './platform.ts';
import { readLocal, readSelected, selectedFrom } from './selection.ts';

/** Who writes, as upstream calls it (spec 70, 2.1 and 2.2). */
const FIELD_MANAGERS = { leaf: 'regenerate-leaf-certificates', 'top-level': 'regenerate-signers' } as const;

/** `regenerate-leaf` and `regenerate-top-level`: takes the date of a certificate away, so that its operator makes a new one. */
export async function runRegenerate(
  verb: RegenerateVerb,
  words: readonly string[],
  flags: RegenerateFlags,
): Promise<void> {
  const format = verbFormat(flags.output);
  const validBefore = flags.validBefore === undefined ? undefined : momentFrom('--valid-before', flags.validBefore);
  // What is wrong with the call is said before any cluster is asked.
  const selected = selectedFrom(SECRETS, words, flags, '');
  if (flags.local) {
    const { objects, missing, warnings } = readLocal(SECRETS, flags, selected);
    const judged = objects.map(secret => ({ secret, verdict: platformVerdict(secret, verb, validBefore) }));
    const chosen = judged.filter(({ verdict }) => verdict.act === true);
    const items = chosen.map(({ secret }) => applyBody(secret, verb, false, new Date()));
    const outcomes = judged.flatMap(passedOver);
    printLocal(items, { outcomes, missing, warnings }, format, flags.verbose ?? false);
    return;
  }
  await withCluster(flags, async ({ kube, namespace }) => {
    const now = new Date();
    const { objects, missing } = await readSelected(kube, SECRETS, selectedFrom(SECRETS, words, flags, namespace));
    const judged = objects.map(secret => ({ secret, verdict: platformVerdict(secret, verb, validBefore) }));
    const acting = judged.filter(({ verdict }) => verdict.act === true).map(({ secret }) => secret);
    const gates = verb === 'leaf' ? await heldBack(kube, acting, now) : new Map<Secret, Gate>();
    const held = flags.overrideGate ? new Map<Secret, Gate>() : gates;
    const { handOvers } = verb === 'leaf' || acting.length === 0 ? NO_HAND_OVERS : await surroundings(kube, now);
    const isStarting = (secret: Secret) => {
      const handOver = handOverOf(secret, handOvers);
      return handOver === undefined || !isBegun(handOver);
    };
    const chosen = acting.filter(secret => !held.has(secret) && isStarting(secret));
    if (flags.overrideGate && !flags.dryRun) await confirmOverride(gates, flags.yes);
    if (verb === 'top-level' && chosen.length > 0 && !flags.dryRun) {
      const names = chosen.map(({ metadata }) => metadata?.name).join(', ');
      await confirm(`${chosen.length} signers will be replaced: ${names}.`, flags.yes);
    }
    const outcomes: Outcome[] = [];
    for (const { secret, verdict } of judged) {
      const gate = held.get(secret);
      const handOver = verdict.act === true && verb === 'top-level' ? handOverOf(secret, handOvers) : undefined;
      if (verdict.act !== true) outcomes.push(...passedOver({ secret, verdict }));
      else if (handOver !== undefined && isBegun(handOver)) outcomes.push(alreadyBegun(secret, handOver));
      else if (handOver !== undefined) {
        const outcome = await setRegeneration(kube, secret, verb, flags, now);
        outcomes.push(outcome.outcome === 'done' ? { ...outcome, details: whatBegins(handOver) } : outcome);
      } else if (gate !== undefined)
        outcomes.push({ object: refOf(secret), outcome: 'held', text: `${gate.because}; --override-gate goes ahead` });
      else outcomes.push(await setRegeneration(kube, secret, verb, flags, now));
    }
    const follows = flags.dryRun ? await whatFollows(clusterSource(kube), chosen.map(refOf), now) : undefined;
    printOutcomes(outcomes, format, { dryRun: flags.dryRun ?? false, verbose: flags.verbose ?? false, follows });
    if (follows !== undefined && format.kind === 'table') printFollowing(follows);
    reportMissing(missing);
    if (acting.length === 0 && missing.length === 0) {
      process.stderr.write(
        `nothing to do: none of ${objects.length} secrets is a ${verb === 'leaf' ? 'leaf' : 'top-level signer'} to regenerate\n`,
      );
    }
  });
}

const NO_HAND_OVERS = { handOvers: [] } as const;

/** Past the gate somebody may be cut off: who, is said before it happens, and asked about twice (spec 90, HO-2). */
async function confirmOverride(gates: ReadonlyMap<Secret, Gate>, yes: boolean | undefined): Promise<void> {
  if (gates.size === 0) return;
  for (const [secret, { because }] of gates) {
    process.stderr.write(`past the gate: ${objectText(refOf(secret))}: ${visible(because)}\n`);
  }
  await confirm(`${gates.size} certificates would be made that not everybody may accept.`, yes);
  const cutOff = [...new Set([...gates.values()].flatMap(gate => gate.cutOff))].toSorted();
  const who =
    cutOff.length === 0 ? 'Nobody is known to be cut off' : `Cut off until they have it: ${cutOff.join(', ')}`;
  await confirm(`${visible(who)}. Really go on?`, yes);
}

interface Judged {
  readonly secret: Secret;
  readonly verdict: Verdict;
}

/** What is said of a Secret that the verb leaves alone. */
function passedOver({ secret, verdict }: Judged): Outcome[] {
  if (verdict.act === true) return [];
  const outcome = verdict.act === 'error' ? 'failed' : 'skipped';
  return [{ object: refOf(secret), outcome, text: verdict.because }];
}

/** Asks the operator of one certificate for a new one. */
export async function setRegeneration(
  kube: Kube,
  secret: Secret,
  verb: RegenerateVerb,
  flags: Pick<RegenerateFlags, 'overrideGate' | 'dryRun'>,
  now: Date,
): Promise<Outcome> {
  const object = refOf(secret);
  const { namespace, name } = object;
  const body = applyBody(secret, verb, flags.overrideGate ?? false, now);
  try {
    await kube.patch(
      SECRETS,
      { namespace, name },
      { type: 'apply', body },
      { force: true, fieldManager: FIELD_MANAGERS[verb], dryRun: flags.dryRun },
    );
    return { object, outcome: 'done', text: 'regeneration set' };
  } catch (error) {
    return { object, outcome: 'failed', text: (error as Error).message };
  }
}

function applyBody(secret: Secret, verb: RegenerateVerb, isOverridden: boolean, now: Date): Secret {
  const { namespace, name } = refOf(secret);
  const annotations = {
    [NOT_AFTER]: FORCED,
    // So that it is told from one that was taken back a moment ago.
    ...(verb === 'top-level' && { [REQUESTED_AT]: now.toISOString() }),
    ...(isOverridden && { [GATE_OVERRIDE]: now.toISOString() }),
  };
  const place = namespace === '' ? { name } : { namespace, name };
  return { apiVersion: 'v1', kind: 'Secret', metadata: { ...place, annotations } };
}

/** What the rotation code would do next, up to the moment leaves have followed a new signer. */
export async function whatFollows(
  source: ObjectSource,
  force: readonly ObjectRef[],
  now: Date,
): Promise<readonly PlanEvent[]> {
  if (force.length === 0) return [];
  const objects = await readPlanObjects(source);
  const until = new Date(now.getTime() + (rotationDayFrom(objects) / days(1)) * days(7));
  const [planned, anyway] = await Promise.all([
    simulate(objects, { now, until, force }),
    simulate(objects, { now, until }),
  ]);
  const idOf = ({ change, object, at }: PlanEvent) =>
    `${change} ${object?.kind} ${object?.namespace} ${object?.name} ${at}`;
  const expected = new Set(anyway.events.map(idOf));
  return planned.events.filter(event => !expected.has(idOf(event)));
}

function printFollowing(events: readonly PlanEvent[]): void {
  if (events.length === 0) return;
  process.stdout.write('would follow:\n');
  for (const { at, change, object, effects } of events) {
    const what = object === undefined ? '' : ` ${object.kind.toLowerCase()}/${object.name} in ${object.namespace}`;
    const effect = effects.map(({ kind, process: name, nodes }) => `${kind} ${name} on ${nodes.join(',')}`).join('; ');
    process.stdout.write(
      `  ${visible(`${at.slice(0, 19)}Z ${change}${what}${effect === '' ? '' : ` (${effect})`}`)}\n`,
    );
  }
}
