import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { NOT_AFTER, NOT_BEFORE, REFRESH_PERIOD } from '../../certrotation/annotations.ts';
import { annotationsOf, dataText, TLS_CERT } from '../../certrotation/secret.ts';
import { decideSignerByAnnotations } from '../../certrotation/signer.ts';
import { nextKey, previousKey } from '../../hand-over/family.ts';
import { TAKEN_BACK, TURNED_ROUND } from '../../hand-over/names.ts';
import type { HandOverItem } from '../../inventory/model.ts';
import { certificatesIn } from '../../inventory/relations.ts';
import { days, parseGoDuration } from '../../kube/duration.ts';
import { isNotFound } from '../../kube/error.ts';
import { getIfPresent } from '../../kube/get.ts';
import type { Kube } from '../../kube/port.ts';
import { type ObjectKey, SECRETS } from '../../kube/resource.ts';
import { formatRfc3339 } from '../../kube/time.ts';
import type { Outcome } from '../certificates/outcome.ts';
import { handServerOver, serverNames, serverUnit } from '../certificates/server-hand-over.ts';
import { withCluster } from '../cluster.ts';
import { confirm } from '../confirm.ts';
import { visible } from '../table.ts';
import { UsageError } from '../usage-error.ts';
import type { TakeBackFlags } from './command.ts';
import { readHandOvers } from './items.ts';

export async function runTakeBack(word: string, flags: TakeBackFlags): Promise<void> {
  const [, name] = /^(?:secrets?\/)?([^/]+)$/.exec(word) ?? [];
  if (name === undefined) throw new UsageError(`expected the NAME of a signer, or secret/NAME, found "${word}"`);
  await withCluster(flags, async ({ kube }) => {
    const now = new Date();
    const handOvers = await readHandOvers(kube, now);
    const item = handOvers.find(
      ({ metadata }) =>
        metadata.name === name && (flags.namespace === undefined || metadata.namespace === flags.namespace),
    );
    if (item === undefined) {
      throw new Error(
        `there is no signer "${name}": known are ${handOvers.map(({ metadata }) => metadata.name).join(', ')}`,
      );
    }
    const plan = await wayBack(kube, item, flags.beginAgain ?? false, now);
    if ('refusal' in plan) throw new Error(`${name}: ${plan.refusal}`);
    if (!flags.dryRun) await confirm(plan.says, flags.yes);
    else process.stderr.write(`${visible(plan.says)}\n`);
    await takeBack(kube, plan, flags.dryRun ?? false, now);
    process.stdout.write(
      `${visible(`secret/${name} ${plan.told}${flags.dryRun ? ' (dry run: nothing was written)' : ''}`)}\n`,
    );
  });
}

/** Where to note that a hand-over is not wanted, or why there is no way back. */
export type WayBack =
  | { readonly refusal: string }
  | {
      readonly key: ObjectKey;
      readonly annotation: string;
      readonly says: string;
      readonly told: string;
      /** No operator looks at it: whoever notes it carries it out. */
      readonly isOurs: boolean;
    };

export async function wayBack(kube: Kube, item: HandOverItem, mayBeginAgain: boolean, now: Date): Promise<WayBack> {
  const { namespace = '', name } = item.metadata;
  const place = { namespace, name };
  const isOurs = item.operator === 'machine-config-server';
  if (item.operator === 'etcd')
    return { refusal: "etcd's operator knows no way back: its next signer is the one it keeps" };
  if (item.phase === 'Distributing') {
    if (item.next === undefined) return { refusal: 'its operator has not begun yet: there is nothing to take back' };
    const due = whyDueByItself(await getIfPresent(kube, SECRETS, place), now);
    if (due !== undefined && !mayBeginAgain) {
      return {
        refusal: `it is due by its own dates (${due}) and would begin again at once; --begin-again makes another key pair`,
      };
    }
    const again = due === undefined ? '' : ' Another one is made at once, because the signer in use is due.';
    const says = `"${item.next}" has signed nothing: it leaves the bundles and is forgotten.${again}`;
    return { key: nextKey(place), annotation: TAKEN_BACK, says, told: 'hand-over taken back', isOurs };
  }
  const previous = await getIfPresent(kube, SECRETS, previousKey(place));
  const [before] = previous === undefined ? [] : certificatesIn(dataText(previous, TLS_CERT));
  if (before === undefined) {
    const state =
      item.phase === 'Steady'
        ? 'nothing is being handed over'
        : `it signs already (${item.phase}), and the pair before it is not kept`;
    return { refusal: `${state}: there is nothing to take back` };
  }
  const says = `"${item.current}" signs already: "${before.subject.commonName}" is handed over to again, and leaves are made anew once more.`;
  return { key: place, annotation: TURNED_ROUND, says, told: 'hand-over turned round', isOurs };
}

/** Only what has happened already by the time of the write is not there any more: then nothing is left to do. */
export async function takeBack(
  kube: Kube,
  plan: Exclude<WayBack, { refusal: string }>,
  dryRun: boolean,
  now: Date,
): Promise<void> {
  const body = { metadata: { annotations: { [plan.annotation]: now.toISOString() } } };
  try {
    await kube.patch(SECRETS, plan.key, { type: 'merge', body }, { dryRun, fieldManager: 'rotunda-take-back' });
  } catch (error) {
    if (isNotFound(error))
      throw new Error(`it is over: secret ${plan.key.name} is not there any more; look with rotunda get hand-overs`, {
        cause: error,
      });
    throw error;
  }
  if (plan.isOurs && !dryRun) await carryOut(kube);
}

/** The server shows what its Secret holds with the next connection: it need not be restarted for this. */
async function carryOut(kube: Kube): Promise<void> {
  const outcomes: Outcome[] = [];
  await handServerOver(kube, { unit: serverUnit(await serverNames(kube)), updateIgnition: true }, outcomes);
  const held = outcomes.filter(({ outcome }) => outcome === 'held' || outcome === 'failed');
  if (held.length > 0) throw new Error(`noted, and not done yet: ${held.map(({ text }) => text).join('; ')}`);
}

/** Why the signer in use is due although nobody asked for a new one. */
function whyDueByItself(signer: Secret | undefined, now: Date): string | undefined {
  const [certificate] = signer === undefined ? [] : certificatesIn(dataText(signer, TLS_CERT));
  if (signer === undefined || certificate === undefined) return undefined;
  const refreshMs = parseGoDuration(annotationsOf(signer)[REFRESH_PERIOD] ?? '') ?? days(36_500);
  const dates = {
    [NOT_BEFORE]: formatRfc3339(certificate.notBefore),
    [NOT_AFTER]: formatRfc3339(certificate.notAfter),
  };
  const decision = decideSignerByAnnotations(dates, { refreshMs, validityMs: refreshMs }, now);
  return decision.action === 'regenerate' ? decision.reason : undefined;
}
