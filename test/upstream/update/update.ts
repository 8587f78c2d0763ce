import { kernelArgumentChanges } from '../../../src/daemon/apply/kernel-arguments.ts';
import { reconcile } from '../../../src/daemon/decide/reconcile.ts';
import { decideDisruption } from '../../../src/machine-config-api/disruption.ts';
import { mergePolicies } from '../../../src/machine-config-api/disruption-policy.ts';
import type { MachineConfig } from '../../../src/machine-config-api/machine-config.ts';
import { registriesDrainReason } from '../../../src/machine-config-api/registries-conf.ts';
import { attempt, clone, plain, unlike, unlikeAt } from '../difference.ts';
import { type Difference, type Judged, judged } from '../judged.ts';
import type { Random } from '../random.ts';
import { configAndNext, type GeneratedConfig, registriesFile } from './configs.ts';
import { editedRegistriesConf, registriesConf } from './registries-text.ts';

interface Input {
  Old: GeneratedConfig;
  New: GeneratedConfig;
  Policies: object;
  Override: boolean;
}

interface Decided {
  irreconcilable: string;
  diff: object;
  files: string[];
  units: string[];
  actions: string[];
  drain: boolean;
  drainErr: string;
  policy: unknown;
  policyDrain: boolean;
  policyDrainErr: string;
}

/** What an agent makes of a new config: whether it can, what changes, what it does for it, and whether it drains. */
const update = judged<Input>({
  name: 'update',
  program: 'mcodiff',
  op: 'update',
  generate: r => ({ ...configAndNext(r), Policies: policies(r), Override: r.chance(0.1) }),
  compare: ({ Old, New, Policies, Override }, { out, err }) => {
    if (err !== undefined) return [{ class: `upstream: ${plain(err)}`, mine: undefined, theirs: err }];
    const { decision, policies: merged } = out as { decision: Decided; policies: object };
    const ours = mergePolicies(Policies);
    return [
      ...unlikeAt('merged policies', ours, merged, true),
      ...decisions(Old, New, decision, {
        policies: ours,
        hasDrainOverride: Override,
      }),
    ];
  },
});

type Disruption = NonNullable<Parameters<typeof decideDisruption>[2]>;

function decisions(
  old: MachineConfig,
  next: MachineConfig,
  theirs: Decided,
  { policies, hasDrainOverride }: Disruption,
): Difference[] {
  const possible = attempt(() => reconcile(old, next, undefined));
  if (possible.kind !== 'value')
    return [{ class: `rotunda throws: ${plain(possible.error)}`, mine: possible.error, theirs: theirs.irreconcilable }];
  const mine = possible.value;
  if (mine.isPossible !== (theirs.irreconcilable === '')) {
    const name = mine.isPossible
      ? `rotunda reconciles, upstream does not: ${plain(theirs.irreconcilable).slice(40)}`
      : `upstream reconciles, rotunda does not: ${plain(mine.reason)}`;
    return [{ class: name, mine: mine.isPossible || mine.reason, theirs: theirs.irreconcilable }];
  }
  if (!mine.isPossible) return [];
  const { before, after } = mine;
  return [
    ...builtIn(
      attempt(() => decideDisruption(before, after, { hasDrainOverride })),
      theirs,
    ),
    ...byPolicy(
      attempt(() => decideDisruption(before, after, { policies })),
      theirs,
    ),
  ];
}

type Decision = ReturnType<typeof attempt<ReturnType<typeof decideDisruption>>>;

function builtIn(mine: Decision, theirs: Decided): Difference[] {
  if (mine.kind !== 'value' || theirs.drainErr !== '')
    return unlike(
      `cannot decide: "${plain(mine.error)}", "${plain(theirs.drainErr)}"`,
      mine.kind !== 'value',
      theirs.drainErr !== '',
    );
  const { difference, changedFiles, changedUnits, actions, needsDrain, drainReasons } = mine.value;
  const found = [
    ...unlikeAt('difference', difference, theirs.diff),
    ...unlike('changed files', changedFiles, theirs.files),
    ...unlike('changed units', changedUnits, theirs.units),
  ];
  if (found.length > 0) return found;
  const action = 'action' in actions ? [actions.action] : undefined;
  return [
    ...unlike('built-in action', action, theirs.actions),
    ...unlike(`built-in drain: ${plain(drainReasons[0])}`, needsDrain, theirs.drain),
  ];
}

function byPolicy(mine: Decision, theirs: Decided): Difference[] {
  if (mine.kind !== 'value' || theirs.policyDrainErr !== '')
    return unlike('cannot decide by policies', mine.kind !== 'value', theirs.policyDrainErr !== '');
  const { actions, needsDrain, drainReasons } = mine.value;
  const kubeletCA = theirs.files.includes('/etc/kubernetes/kubelet-ca.crt') ? ', kubelet-ca.crt changed' : '';
  const found = unlike(
    `actions by policy${kubeletCA}`,
    'actions' in actions ? actions.actions : undefined,
    theirs.policy,
    true,
  );
  return found.length > 0
    ? found
    : unlike(`drain by policy: ${plain(drainReasons[0])}`, needsDrain, theirs.policyDrain);
}

const POLICY_FILES = [
  '/etc/a',
  '/etc/b',
  '/etc/containers/policy.json',
  '/etc/containers/registries.conf',
  '/var/lib/kubelet/config.json',
  '/etc/c/d',
  '/etc/containers/registries.d/x.yaml',
];

function policies(r: Random): object {
  const actions = (count: number) =>
    r.times(count, () =>
      r.pick<object>([
        { type: 'None' },
        { type: 'Drain' },
        { type: 'Reboot' },
        { type: 'Reload', reload: { serviceName: 'crio.service' } },
        { type: 'Restart', restart: { serviceName: 'x.service' } },
        { type: 'DaemonReload' },
      ]),
    );
  return {
    ...(r.chance(0.7) && {
      files: r.some(POLICY_FILES, 0.4).map(path => ({ path, actions: actions(1 + r.int(2)) })),
    }),
    ...(r.chance(0.6) && {
      units: r
        .some(['a.service', 'b.service', 'c.socket', 'kubelet.service'])
        .map(name => ({ name, actions: actions(1 + r.int(2)) })),
    }),
    ...(r.chance(0.5) && { sshkey: { actions: actions(r.int(3)) } }),
  };
}

/** Whether a change of `registries.conf` alone needs a drain. */
const registriesDrain = judged<{ before: string; after: string }>({
  name: 'drain for registries.conf',
  program: 'mcodiff',
  op: 'update',
  generate: r => {
    const before = registriesConf(r);
    return { before, after: editedRegistriesConf(r, before) };
  },
  question: ({ before, after }) => {
    const config = (text: string) => ({
      metadata: { name: 'x' },
      spec: { config: { ignition: { version: '3.4.0' }, storage: { files: [registriesFile(text)] } } },
    });
    return { Old: config(before), New: config(after), Policies: {}, Override: false };
  },
  keep: ({ out, err }) => {
    const { drain, drainErr } = (out as { decision: Decided }).decision;
    return { out: { drain, drainErr }, err };
  },
  compare: ({ before, after }, { out }) => {
    if (before === after) return [];
    const { drain, drainErr } = out as Decided;
    const mine = attempt(() => registriesDrainReason(before, after));
    if (mine.kind !== 'value' || drainErr !== '')
      return unlike(
        `cannot decide: "${plain(mine.error)}", "${plain(drainErr)}"`,
        mine.kind !== 'value',
        drainErr !== '',
      );
    return unlike(`drains because ${plain(mine.value)}`, mine.value !== undefined, drain);
  },
});

const SPACES = ['a', 'b=c', ' ', '  ', '"', '\t', '\n', '=', 'x"y z"', '\v', '\f', 'ä'];
const UNICODE_SPACES = ['\u00a0', '\u2003', '\u0085'];

/** What is said to the program that changes kernel arguments. */
const kernelArguments = judged<{ Old: string[]; New: string[] }>({
  name: 'kernel arguments',
  program: 'mcodiff',
  op: 'kargs',
  generate: r => {
    const argument = () => r.list(7, () => r.pick([...SPACES, ...(r.chance(0.05) ? UNICODE_SPACES : [])])).join('');
    return { Old: r.list(3, argument), New: r.list(3, argument) };
  },
  compare: ({ Old, New }, { out }) => {
    const all = [...Old, ...New];
    const isOpen = all.some(argument => argument.split('"').length % 2 === 0);
    const isForeign = /[\u00a0\u2003\u0085]/.test(all.join(''));
    const isBlank = all.some(argument => argument.trim() === '');
    return unlike(
      isOpen
        ? 'an open quotation mark'
        : isForeign
          ? 'white space beyond ASCII'
          : isBlank
            ? 'a blank argument'
            : 'arguments',
      clone(kernelArgumentChanges(Old, New)),
      out ?? [],
    );
  },
});

export const UPDATE: readonly Judged[] = [update, registriesDrain, kernelArguments];
