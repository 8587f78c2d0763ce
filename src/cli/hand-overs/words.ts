import type { HandOverItem } from '../../inventory/model.ts';
import { secondsText } from '../output/time.ts';

/** Phases in which something is still to come from others. */
export function isUnderWay({ phase }: Pick<HandOverItem, 'phase'>): boolean {
  return phase === 'Distributing' || phase === 'Signing';
}

/** How many of those who are counted have loaded it, or show it; empty where nobody was asked. */
export function loadedText({ receipts, presenters }: Pick<HandOverItem, 'receipts' | 'presenters'>): string {
  const said = [...receipts, ...presenters];
  if (said.length === 0) return '';
  return `${said.filter(({ isLoaded }) => isLoaded).length}/${said.length}`;
}

/** The answer in a sentence, and what was not looked at. */
export function handOverSummary(items: readonly HandOverItem[]): { readonly first: string; readonly last: string } {
  const count = (phase: HandOverItem['phase']) => items.filter(item => item.phase === phase).length;
  const underWay = items.filter(isUnderWay);
  const waiting = (isPresenter: boolean) =>
    new Set(items.flatMap(item => (item.presenters.length > 0 === isPresenter ? item.waitingFor : []))).size;
  const [verifiers, presenters] = [waiting(false), waiting(true)];
  const parts = [
    `${underWay.length} ${underWay.length === 1 ? 'hand-over' : 'hand-overs'} under way`,
    ...(verifiers === 0 ? [] : [`waiting for ${verifiers} ${verifiers === 1 ? 'verifier' : 'verifiers'}`]),
    ...(presenters === 0 ? [] : [`${presenters} still to show a new certificate`]),
    ...(count('Retiring') === 0 ? [] : [`${count('Retiring')} with an old CA still trusted`]),
    `${count('Steady')} ${count('Steady') === 1 ? 'signer' : 'signers'} steady`,
  ];
  return { first: parts.join('; '), last: footOf(items).join('\n') };
}

function footOf(items: readonly HandOverItem[]): string[] {
  const uncounted = new Map<string, string>();
  for (const { notCounted } of items) for (const { process, why } of notCounted) uncounted.set(process, why);
  const unasked = items
    .filter(item => isUnderWay(item) && item.because === UNASKED)
    .map(({ metadata }) => metadata.name);
  const asked = items.filter(({ receiptsFrom, operator }) => receiptsFrom === 'here' && operator !== 'etcd');
  return [
    ...(asked.length === 0
      ? []
      : [`note: asked from here, not by its operator: ${asked.map(({ metadata }) => metadata.name).join(', ')}`]),
    ...(unasked.length === 0 ? [] : [`note: nobody has asked the verifiers of ${unasked.join(', ')}: try --ask`]),
    ...(uncounted.size === 0
      ? []
      : [
          `note: not counted, for nobody can know what they have loaded: ${[...uncounted].map(([name, why]) => `${name} (${why})`).join(', ')}`,
        ]),
  ];
}

/** What `decide` says when there are no receipts. */
const UNASKED = 'nobody has been asked yet';

/** What would let a hand-over that waits go on (spec 90, HO-7); empty where it does not wait. */
export function whatEndsTheWait(item: HandOverItem): string[] {
  const { receipts, presenters, waitingFor, waitsUntil, operator } = item;
  if (waitingFor.length === 0) return [];
  const nodes = [...receipts, ...presenters].flatMap(({ verifier, node }) =>
    waitingFor.includes(verifier) && node !== undefined ? [node] : [],
  );
  return [
    presenters.length > 0 ? 'each of them shows a certificate of the signer in use' : 'each of them loads it',
    ...(operator === 'machine-config-server'
      ? ['then rotunda regenerate-machine-config-server-serving-cert is run again']
      : []),
    ...(operator === 'etcd' ? ['a revision with it is rolled out to their nodes'] : []),
    ...[...new Set(nodes)].map(node => `rotunda waive node/${node}, or the node is deleted`),
    ...(waitsUntil === undefined ? [] : [`${secondsText(waitsUntil)}: waiting longer would harm everybody (HO-7)`]),
  ];
}

/** The rule that a phase goes by, and when it goes on (spec 90, section 2). */
export const PHASE_RULES: Readonly<Record<HandOverItem['phase'], { readonly rule: string; readonly goesOn: string }>> =
  {
    Steady: { rule: 'HO-1', goesOn: 'the signer is due, or somebody asks for a new one' },
    Distributing: { rule: 'HO-2', goesOn: 'every verifier that is counted has loaded the next signer' },
    Signing: { rule: 'HO-3', goesOn: 'every leaf is signed by the signer in use, and everybody shows it' },
    Retiring: { rule: 'HO-3', goesOn: 'the old CA ends, or remove-old-trust takes it out' },
  };
