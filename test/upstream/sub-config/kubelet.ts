import { load } from 'js-yaml';
import { nodeConfigParts } from '../../../src/machine-config/kubelet-config/cluster-settings.ts';
import { checkKubeletConfig, kubeletFiles } from '../../../src/machine-config/kubelet-config/render.ts';
import { kubeletConfiguration, kubeletConfText } from '../../../src/machine-config/template/files/kubelet.ts';
import { templateValues } from '../../../src/machine-config/template/values.ts';
import type { ControllerConfigSpec } from '../../../src/machine-config-api/controller-config.ts';
import { attempt, plain, unlike, unlikeAt, verdicts } from '../difference.ts';
import { type Difference, type Judged, judged } from '../judged.ts';
import type { Random } from '../random.ts';
import { textsOf } from './files.ts';
import { chosen, FIELDS, FORBIDDEN, MISTYPED, tlsProfile } from './kubelet-fields.ts';

const CONTROLLER_CONFIG = { clusterDNSIP: '10.0.0.10' } as ControllerConfigSpec;
const CONF = '/etc/kubernetes/kubelet.conf';

interface Input {
  CR: { spec: Record<string, unknown> };
  Role: string;
  Node: { spec: object };
  Profile?: object;
  FeatureGates: Record<string, boolean>;
}

interface Answered {
  invalid: string;
  err: string;
  files: Record<string, string>;
  order: string[] | null;
  conf: unknown;
  /** What the kubelet writes for a configuration in which nothing is set: the zeros that it never leaves out. */
  mine: unknown;
  kargs: string[] | null;
  kargsErr: string;
}

const NOTHING_SET = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';

/** A KubeletConfig becomes the same files for the nodes of a pool, or is refused by both. */
function kubelet(name: string, mistyped: number): Judged {
  return judged<Input>({
    name,
    program: 'mcodiff',
    op: 'kubelet',
    generate: r => ({
      CR: kubeletConfig(r, mistyped),
      Role: r.pick(['worker', 'master']),
      Node: { spec: nodeSpec(r) },
      ...(r.chance(0.4) && { Profile: tlsProfile(r) }),
      FeatureGates: r.chance(0.2) ? { A: true, B: false } : {},
    }),
    question: input => ({
      ...input,
      Base: kubeletConfText(kubeletConfiguration(templateValues(CONTROLLER_CONFIG, ''))),
      Mine: NOTHING_SET,
    }),
    compare: ({ CR, Role, Node, Profile, FeatureGates }, { out, err }) => {
      if (err !== undefined) return [{ class: `upstream: ${plain(err)}`, mine: undefined, theirs: err }];
      const theirs = out as Answered;
      const cluster = {
        pool: Role,
        controllerConfig: CONTROLLER_CONFIG,
        nodeConfig: Node,
        tlsProfile: Profile,
        featureGates: FeatureGates,
      } as unknown as Parameters<typeof kubeletFiles>[1];
      const mine = attempt(() => {
        const config = CR as unknown as Parameters<typeof kubeletFiles>[0];
        checkKubeletConfig(config);
        return textsOf(kubeletFiles(config, cluster));
      });
      const differences = verdicts(mine, theirs.invalid || theirs.err || undefined, theirs.conf);
      const kernel = cgroupArguments(cluster, theirs);
      if (differences.length > 0 || mine.kind !== 'value') return [...kernel, ...differences];
      return [...kernel, ...unlikeFiles(mine.value, theirs)];
    },
  });
}

function cgroupArguments(cluster: Parameters<typeof nodeConfigParts>[0], theirs: Answered): Difference[] {
  const mine = attempt(() => nodeConfigParts(cluster)?.kernelArguments ?? null);
  if (/latency/i.test(mine.error ?? '')) return [];
  return unlike(
    'cgroup kernel arguments',
    mine.kind === 'value' ? mine.value : 'refused',
    theirs.kargsErr === '' ? theirs.kargs : 'refused',
  );
}

function unlikeFiles(mine: Readonly<Record<string, string>>, theirs: Answered): Difference[] {
  const order = unlike('files', Object.keys(mine), theirs.order);
  if (order.length > 0) return order;
  const { [CONF]: conf = '', ...others } = mine;
  return [
    ...Object.entries(others).flatMap(([path, text]) => unlike(`text of ${path}`, text, theirs.files[path])),
    ...unlikeAt('kubelet.conf', asTheKubeletWrites(load(conf), theirs.conf, theirs.mine), normal(theirs.conf)),
  ];
}

/**
 * Our configuration as the kubelet would write it after having read it: with the zeros it always writes, and without those it leaves
 * out where they are not upstream's either.
 */
function asTheKubeletWrites(mine: unknown, theirs: unknown, zeros: unknown): unknown {
  if (!isMapping(mine) && !isMapping(zeros)) return normal(mine);
  const [own, other, zero] = [mine, theirs, zeros].map(value => (isMapping(value) ? value : {})) as [Tree, Tree, Tree];
  const keys = [...new Set([...Object.keys(own), ...Object.keys(zero)])];
  const entries = keys.map(key => [key, asTheKubeletWrites(own[key] ?? zero[key], other[key], zero[key])] as const);
  return Object.fromEntries(entries.filter(([key, value]) => Object.hasOwn(other, key) || !isZero(value)));
}

type Tree = Readonly<Record<string, unknown>>;

const isMapping = (value: unknown): value is Tree =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isZero = (value: unknown): boolean =>
  [null, undefined, 0, '', '0s', false].includes(value as string) ||
  (typeof value === 'object' && Object.keys(value as object).length === 0);

/** Durations as Go writes them. */
function normal(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(normal);
  if (isMapping(value)) return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, normal(part)]));
  return typeof value === 'string' && /^(?:\d+h)?(?:\d+m)?(?:\d+s)?$/.test(value) && value !== ''
    ? goDuration(value)
    : value;
}

function goDuration(text: string): string {
  const count = (unit: string) => Number(new RegExp(`(\\d+)${unit}`).exec(text)?.[1] ?? 0);
  const total = count('h') * 3600 + count('m') * 60 + count('s');
  const [hours, minutes, rest] = [Math.floor(total / 3600), Math.floor(total / 60) % 60, total % 60];
  return hours > 0 ? `${hours}h${minutes}m${rest}s` : minutes > 0 ? `${minutes}m${rest}s` : `${rest}s`;
}

function kubeletConfig(r: Random, mistyped: number) {
  const kubelet = {
    ...chosen(r, FIELDS, r.int(5)),
    ...(r.chance(0.1) && chosen(r, FORBIDDEN, 1)),
    ...(r.chance(mistyped) && chosen(r, MISTYPED, 1)),
  };
  return {
    apiVersion: 'machineconfiguration.openshift.io/v1',
    kind: 'KubeletConfig',
    metadata: { name: 'k' },
    spec: {
      ...(r.chance(0.9) && { kubeletConfig: kubelet }),
      ...(r.chance(0.3) && { logLevel: r.pick([0, 1, 4, 10, 11, -1]) }),
      ...(r.chance(0.3) && { autoSizingReserved: r.chance(0.6) }),
      ...(r.chance(0.3) && { tlsSecurityProfile: tlsProfile(r) }),
    },
  };
}

function nodeSpec(r: Random): object {
  const odd = (word: string) => (r.chance(0.1) ? [word] : []);
  const profiles = ['Default', 'MediumUpdateAverageReaction', 'LowUpdateSlowReaction', ''];
  return {
    ...(r.chance(0.5) && { workerLatencyProfile: r.pick([...profiles, ...odd('Odd')]) }),
    ...(r.chance(0.5) && { cgroupMode: r.pick(['v1', 'v2', '', ...odd('v3')]) }),
  };
}

export const KUBELET: readonly Judged[] = [kubelet('KubeletConfig', 0), kubelet('KubeletConfig, mistyped', 0.5)];
