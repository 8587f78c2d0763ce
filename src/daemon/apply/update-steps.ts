import type { Log } from '../../controller/log.ts';
import { readOperatingSystem } from '../../host/os-release.ts';
import type { Host, UnitEnablement } from '../../host/port.ts';
import { unitLinks } from '../../host/units-on-disk.ts';
import { type Clock, systemClock } from '../../kube/clock.ts';
import { configDifference, EMPTY_CONFIG, type ReadConfig } from '../../machine-config-api/config-difference.ts';
import { changedUnits } from '../../machine-config-api/ignition/difference.ts';
import { readConfig } from '../../machine-config-api/reconciliation.ts';
import { isInPlace, isLeftToCertificateWriter, wantedFile, writeFiles } from './files.ts';
import { restoreImages } from './images.ts';
import type { Journal } from './journal.ts';
import { applyTuning } from './kernel-arguments.ts';
import { noOriginalStampOf, originalOf } from './originals.ts';
import { type OsOptions, updateOs } from './os.ts';
import { updatePasswords } from './password.ts';
import { decidePruning, type Pruning, prune } from './prune.ts';
import { updateSshKeys } from './ssh-keys.ts';
import type { Step } from './steps.ts';
import { store } from './stored.ts';
import { dropinPath, isUnitInPlace, unitPath, writeUnits } from './units.ts';

export interface StepOptions {
  readonly log?: Log | undefined;
  readonly clock?: Clock | undefined;
  readonly report?: OsOptions['report'] | undefined;
}

const KUBECONFIG = '/etc/kubernetes/kubeconfig';
const KUBECONFIG_MODE = 0o600;

/** The steps of an update from its first file to its commit, each with its undo (spec 60, 8.1, steps 9 to 15). */
export async function updateSteps(host: Host, journal: Journal, options: StepOptions = {}): Promise<Step[]> {
  const system = await readOperatingSystem(host.files);
  const [before, after] = configsOf(journal);
  const { skipCertificateWrite, hasForceFile, images } = journal;
  const { log, clock = systemClock, report } = options;
  const [oldUsers, newUsers] = [before.ignition.passwd?.users ?? [], after.ignition.passwd?.users ?? []];
  const unitOptions = { isCoreOSVariant: system.isCoreOSVariant, log };
  const osOptions: OsOptions = { clock, system, hasForceFile, ...(report && { report }) };

  const files: Step = {
    name: 'files',
    async run() {
      // First what goes: a mask or a file may be in the way of what comes.
      const removed = await prune(host, journal.prunings, unitOptions);
      for (const path of removed) log?.info({ path }, 'Removed stale file');
      const written = await writeFiles(host, after.ignition.storage?.files ?? [], { skipCertificateWrite });
      log?.info({ written: written.length, config: after.name }, 'files of the config are in place');
      // Units that the journal names: after an interruption one of them may look finished and not be.
      const units = (after.ignition.systemd?.units ?? []).filter(({ name }) => Object.hasOwn(journal.enablement, name));
      await writeUnits(host, units, unitOptions);
    },
    async undo() {
      await disableTouched(host, journal);
      await restoreImages(host, images.files);
      await enableAsBefore(host, journal);
    },
  };
  const kubeconfigMode: Step = { name: 'kubeconfig-mode', run: () => protectKubeconfig(host) };
  const ssh: Step = {
    name: 'ssh',
    run: () => updateSshKeys(host, system, oldUsers, newUsers, log),
    undo: () => restoreImages(host, images.keys),
  };
  const password: Step = {
    name: 'password',
    run: () => updatePasswords(host, oldUsers, newUsers, log),
    async undo() {
      await updatePasswords(host, newUsers, oldUsers, log);
      for (const [user, hash] of Object.entries(journal.passwords)) await host.accounts.setPasswordHash(user, hash);
    },
  };
  const os: Step = {
    name: 'os',
    run: () => updateOs(host, before, after, osOptions),
    undo: () => updateOs(host, after, before, { ...osOptions, hasForceFile: false }),
  };
  const tuning: Step = { name: 'tuning', run: () => applyTuning(host, system) };
  const stored: Step = {
    name: 'store-current',
    run: () => store(host, journal.to, journal.image),
    undo: () => restoreImages(host, images.stored),
  };
  return [
    files,
    kubeconfigMode,
    ...(configDifference(before, after).passwd ? [ssh] : []),
    password,
    ...(host.os === undefined ? [] : [os]),
    tuning,
    stored,
  ];
}

/** Both configs of a journal, read. */
export function configsOf({ from, to }: Pick<Journal, 'from' | 'to'>): [before: ReadConfig, after: ReadConfig] {
  return [from === null ? EMPTY_CONFIG : readConfig(from, { isStored: true }), readConfig(to)];
}

type Change = Pick<Journal, 'from' | 'to' | 'skipCertificateWrite' | 'hasForceFile'>;

/** Every path that the file step may change: files and units, links that enable them, what is remembered about originals. */
export async function touchedPaths(host: Host, change: Change, prunings: readonly Pruning[]): Promise<string[]> {
  const [before, after] = configsOf(change);
  const paths = new Set(prunings.map(({ path }) => path));
  for (const file of after.ignition.storage?.files ?? []) {
    if (isLeftToCertificateWriter(file.path, change)) continue;
    if (!(await isInPlace(host.files, await wantedFile(host, file)))) paths.add(file.path);
  }
  const units = new Set(await touchedUnitNames(host, change));
  for (const { name, dropins = [] } of [before, after].flatMap(({ ignition }) => ignition.systemd?.units ?? [])) {
    if (!units.has(name)) continue;
    for (const path of [unitPath(name), ...dropins.map(dropin => dropinPath(name, dropin.name))]) paths.add(path);
  }
  const links: string[] = [];
  for (const unit of units) links.push(...(await unitLinks(host.files, unit)));
  const remembered: string[] = [];
  for (const path of paths) {
    const isPruned = prunings.some(pruning => pruning.path === path);
    // Once there is a stamp, nothing is remembered anew; a removal forgets it.
    const isSettled = !isPruned && (await host.files.stat(noOriginalStampOf(path))) !== undefined;
    if (!isSettled) remembered.push(originalOf(path), noOriginalStampOf(path));
  }
  return [...paths, ...links, ...remembered];
}

/** What leaves the disk with the change. */
export async function pruningsOf(host: Host, change: Change): Promise<Pruning[]> {
  const [before, after] = configsOf(change);
  return decidePruning(host, before.ignition, after.ignition);
}

/** The passwords that the change may replace. The old config need not know them. */
export async function passwordsBefore({ accounts }: Host, change: Change): Promise<Record<string, string>> {
  const passwords: Record<string, string> = {};
  for (const { name } of configsOf(change).flatMap(({ ignition }) => ignition.passwd?.users ?? [])) {
    const hash = await accounts.passwordHash?.(name);
    if (hash !== undefined) passwords[name] = hash;
  }
  return passwords;
}

/** How the units are enabled now that the file step may change. */
export async function touchedEnablement(host: Host, change: Change): Promise<Record<string, UnitEnablement>> {
  const enablement: Record<string, UnitEnablement> = {};
  for (const unit of await touchedUnitNames(host, change)) enablement[unit] = await host.services.isEnabled(unit);
  return enablement;
}

/** Units that changed or are not on disk as the config says; all of them when everything is to be written again. */
async function touchedUnitNames(host: Host, change: Change): Promise<string[]> {
  const [before, after] = configsOf(change);
  const names = new Set(changedUnits(before.ignition, after.ignition));
  for (const unit of after.ignition.systemd?.units ?? []) {
    if (change.hasForceFile || !(await isUnitInPlace(host, unit))) names.add(unit.name);
  }
  return [...names];
}

/** While their files are still the new ones: links are made by what is in them. */
async function disableTouched({ services }: Host, { enablement }: Journal): Promise<void> {
  for (const unit of Object.keys(enablement)) {
    if ((await services.isEnabled(unit)) === 'enabled') await services.disable([unit]);
  }
}

/** Their links are back already; what those units enable along with them (`Also=`) may not be. */
async function enableAsBefore({ services }: Host, { enablement }: Journal): Promise<void> {
  const enabled = Object.keys(enablement).filter(unit => enablement[unit] === 'enabled');
  if (enabled.length > 0) await services.enable(enabled);
}

/** It holds a token; a machine without it has nothing to protect (spec 60, 8.1 step 10, D-32). */
async function protectKubeconfig({ files }: Host): Promise<void> {
  const stat = await files.stat(KUBECONFIG);
  if (stat?.kind === 'file' && stat.mode !== KUBECONFIG_MODE) await files.chmod(KUBECONFIG, KUBECONFIG_MODE);
}
