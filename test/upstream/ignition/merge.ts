import { checkMachineConfig, mergeMachineConfigs } from '../../../src/machine-config/render/merge.ts';
import { canonicalSpec, renderedName } from '../../../src/machine-config/render/name.ts';
import type { MachineConfig } from '../../../src/machine-config-api/machine-config.ts';
import { attempt, same, unlike, unlikeAt, verdicts } from '../difference.ts';
import { type Difference, type Judged, judged } from '../judged.ts';
import { distinct, type Random } from '../random.ts';
import { type GeneratedDocument, ignition3 } from './documents.ts';
import { ignition } from './documents2.ts';

const NAMES = ['00-a', '01-b', '50-c', '99-d', '99-worker-ssh', '98-Z', '98-z', '10-ä'];

interface Input {
  Configs: { metadata: { name: string } }[];
  OS: string;
  Ext: string;
  Pool: string;
}

/** MachineConfigs of a pool become one, under one name. */
function merging(name: string, document: (r: Random) => GeneratedDocument): Judged {
  return judged<Input>({
    name,
    program: 'mcodiff',
    op: 'merge',
    generate: r => ({
      Configs: distinct(
        r.list(4, () => machineConfig(r, document)),
        ({ metadata }) => metadata.name,
      ),
      OS: r.pick(['default-os', '']),
      Ext: r.pick(['default-ext', '']),
      Pool: r.pick(['worker', 'infra']),
    }),
    keep: ({ out, err }) => {
      if (typeof out !== 'object' || out === null) return { out, err };
      const { spec, name: rendered } = out as { spec: unknown; name: string };
      return { out: { spec, name: rendered } };
    },
    compare: ({ Configs, OS, Ext, Pool }, { out, err }) => {
      const mine = attempt(() => {
        const configs = Configs as unknown as MachineConfig[];
        for (const config of configs) checkMachineConfig(config);
        return mergeMachineConfigs(configs, { baseOSContainerImage: OS, baseOSExtensionsContainerImage: Ext });
      });
      const differences = verdicts(mine, err, out);
      if (differences.length > 0 || mine.kind !== 'value') return differences;
      const theirs = out as { spec: object; name: string } | null;
      if (mine.value === undefined || theirs === null)
        return unlike('one merges nothing', mine.value === undefined, theirs === null);
      if (!same(mine.value, theirs.spec)) return unlikeSpecs(mine.value, theirs.spec);
      return unlike('rendered name', renderedName(Pool, canonicalSpec(mine.value)), theirs.name);
    },
  });
}

function unlikeSpecs(mine: unknown, theirs: unknown): Difference[] {
  const inheritable = new Set(['compression', 'verification']);
  const without = (spec: unknown): unknown =>
    JSON.parse(JSON.stringify(spec), (key, value: unknown) => (inheritable.has(key) ? undefined : value));
  if (same(without(mine), without(theirs), true))
    return [{ class: 'compression or verification of an older source is not inherited', mine, theirs }];
  return unlikeAt(same(mine, theirs, true) ? 'only empties differ' : 'result differs', mine, theirs);
}

function machineConfig(r: Random, document: (r: Random) => GeneratedDocument) {
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'MachineConfig',
    metadata: {
      name: r.pick(NAMES),
      ...(r.chance(0.99) && {
        labels: { 'machineconfiguration.openshift.io/role': r.pick(['worker', 'infra', 'master']) },
      }),
    },
    spec: {
      ...(r.chance(0.9) && { config: document(r) }),
      ...(r.chance(0.2) && { osImageURL: r.pick(['img1', 'img2', '']) }),
      ...(r.chance(0.2) && { baseOSExtensionsContainerImage: r.pick(['e1', '']) }),
      ...(r.chance(0.3) && { kernelArguments: r.pick([null, [], ['a'], ['b', 'a'], ['c="d e"']]) }),
      ...(r.chance(0.2) && {
        extensions: r.some(['usbguard', 'wasm', 'kernel-devel', ...(r.chance(0.05) ? ['nope'] : [])]),
      }),
      ...(r.chance(0.2) && { fips: r.chance(0.5) }),
      ...(r.chance(0.25) && {
        kernelType: r.pick(['', 'default', 'realtime', '64k-pages', ...(r.chance(0.05) ? ['x'] : [])]),
      }),
    },
  };
}

export const MERGE: readonly Judged[] = [
  merging('merge of ignition 3', r => {
    const document = ignition3(r, { bad: 0, rare: 0.2 });
    document.ignition.version = r.pick(['3.3.0', '3.4.0']);
    return document;
  }),
  merging('merge of any ignition', r => ignition(r, { bad: 0.0005, rare: 0.15 })),
];
