import { loadObjects } from '../../inventory/files.ts';
import type { ObjectSource } from '../../inventory/source.ts';
import { CONFIG_MAPS, type KubeObject, NODES } from '../../kube/resource.ts';
import {
  type NodePreview,
  type PreviewInput,
  previewRollout,
  type RolloutPreview,
} from '../../machine-config/preview.ts';
import { configsOfPool } from '../../machine-config/render/select.ts';
import { CONTROLLER_CONFIGS } from '../../machine-config-api/controller-config.ts';
import { policiesInForce } from '../../machine-config-api/disruption-policy.ts';
import {
  MACHINE_CONFIG_POOLS,
  MACHINE_CONFIGS,
  type MachineConfig,
  type MachineConfigPool,
} from '../../machine-config-api/machine-config.ts';
import { MACHINE_CONFIGURATIONS } from '../../machine-config-api/machine-configuration.ts';
import { CLUSTER, CONTROLLER_CONFIG_NAME, DRAIN_OVERRIDE, MCO_NAMESPACE } from '../../machine-config-api/names.ts';
import type { SourceFlags } from '../cluster-flags.ts';
import { withSource } from '../open-source.ts';
import { outputFormatFrom } from '../output/format.ts';
import { printDocument } from '../output/print.ts';
import { printTable, visible } from '../table.ts';
import { UsageError } from '../usage-error.ts';

export interface ExplainMachineConfigFlags extends SourceFlags {
  readonly pool?: string | undefined;
  readonly filename?: readonly string[] | undefined;
  readonly output: string;
}

/** What a MachineConfig does to the nodes of one pool. */
export interface PoolExplanation {
  readonly machineConfig: string;
  readonly pool: string;
  /** Where it could not be rolled out: why. */
  readonly refused?: string;
  readonly from?: string;
  readonly to?: string;
  /** Whether the pool would head for another config than it does now. */
  readonly changes?: boolean;
  readonly paused?: boolean;
  /** How many nodes go at the same time. */
  readonly atOnce?: number;
  readonly nodes?: readonly NodeExplanation[];
}

export interface NodeExplanation {
  readonly node: string;
  /** `unknown` where it cannot be told what the node runs. */
  readonly action: string;
  readonly drained: boolean;
  readonly files: readonly string[];
  readonly reasons: readonly string[];
}

/**
 * `rotunda explain machineconfig/NAME --pool worker`: which nodes would be drained, rebooted, reloaded or only written, by the
 * functions that render and roll out. With `-f` as if that file had been applied. Exit code 1 when a pool would refuse it.
 */
export async function explainMachineConfig(name: string, flags: ExplainMachineConfigFlags): Promise<void> {
  const format = outputFormatFrom(flags.output);
  const candidate = flags.filename === undefined ? undefined : candidateFrom(name, flags.filename);
  const explanations = await withSource(flags, source => explanationsOf(source, name, flags.pool, candidate));
  const isForPeople = format.kind === 'table' || format.kind === 'wide';
  if (format.kind === 'name') throw new UsageError('--output name has no meaning here: there are no objects to name');
  const document = { apiVersion: 'rotunda.dev/v1', kind: 'RolloutPreview', pools: explanations };
  process.stdout.write(isForPeople ? explanations.map(inWords).join('\n') : printDocument(document, format));
  if (explanations.some(({ refused }) => refused !== undefined)) process.exitCode = 1;
}

function candidateFrom(name: string, files: readonly string[]): MachineConfig {
  const found = loadObjects(files).objects.filter(object => object.kind === 'MachineConfig');
  const candidate = found.find(object => object.metadata.name === name);
  if (candidate !== undefined) return candidate;
  const names = found.map(object => object.metadata.name).join(', ') || 'none';
  throw new UsageError(`expected MachineConfig ${name} in ${files.join(', ')}, found ${names}`);
}

async function explanationsOf(
  source: ObjectSource,
  name: string,
  poolName: string | undefined,
  candidate: MachineConfig | undefined,
): Promise<PoolExplanation[]> {
  const [configs, pools, nodes, controllerConfigs, disruption] = await Promise.all([
    source.list(MACHINE_CONFIGS),
    source.list(MACHINE_CONFIG_POOLS),
    source.list(NODES),
    source.list(CONTROLLER_CONFIGS),
    disruptionOf(source),
  ]);
  const controllerConfig = controllerConfigs.find(isNamed(CONTROLLER_CONFIG_NAME));
  const config = candidate ?? configs.find(isNamed(name));
  if (config === undefined) {
    throw new UsageError(`machineconfig ${name} not found; give -f to preview one that is not there yet`);
  }
  if (controllerConfig === undefined) {
    throw new Error(
      `controllerconfig ${CONTROLLER_CONFIG_NAME} not found: the machine-config operator has not run here`,
    );
  }
  const input = { configs, pools, nodes, controllerConfig, candidate, disruption };
  return poolsFor(config, pools, poolName).map(pool => explanationOf(name, { ...input, pool }));
}

/** What agents would find about disruption if they looked now (spec 60, 9.2 and 9.4). */
async function disruptionOf(source: ObjectSource): Promise<PreviewInput['disruption']> {
  const published = (await source.list(MACHINE_CONFIGURATIONS)).find(isNamed(CLUSTER));
  const policies = policiesInForce(published);
  if (policies !== undefined) return { policies };
  const configMaps = await source.list(CONFIG_MAPS, { namespace: MCO_NAMESPACE });
  return { hasDrainOverride: configMaps.some(isNamed(DRAIN_OVERRIDE)) };
}

function isNamed(name: string): (object: KubeObject) => boolean {
  return ({ metadata }) => metadata?.name === name;
}

/** The pool asked for, or all that the config is for. */
function poolsFor(
  config: MachineConfig,
  pools: readonly MachineConfigPool[],
  poolName: string | undefined,
): MachineConfigPool[] {
  const takes = (pool: MachineConfigPool) => configsOfPool(pool, [config]).length > 0;
  if (poolName === undefined) {
    const found = pools.filter(takes);
    if (found.length > 0) return found;
    throw new UsageError(`no pool selects machineconfig ${config.metadata?.name ?? ''}: look at its labels`);
  }
  const pool = pools.find(({ metadata }) => metadata?.name === poolName);
  if (pool === undefined) {
    const known = pools.map(({ metadata }) => metadata?.name).join(', ') || 'none';
    throw new UsageError(`--pool: there is no machineconfigpool ${poolName}; there are: ${known}`);
  }
  if (takes(pool)) return [pool];
  throw new UsageError(
    `pool ${poolName} does not select machineconfig ${config.metadata?.name ?? ''}: look at its labels`,
  );
}

function explanationOf(machineConfig: string, input: PreviewInput): PoolExplanation {
  const about = { machineConfig, pool: input.pool.metadata?.name ?? '' };
  try {
    const { rendered, isNew, isPaused, atOnce, nodes }: RolloutPreview = previewRollout(input);
    return {
      ...about,
      from: input.pool.spec?.configuration?.name ?? '',
      to: rendered.metadata.name,
      changes: isNew,
      paused: isPaused,
      atOnce,
      nodes: nodes.map(nodeExplanation),
    };
  } catch (error) {
    return { ...about, refused: (error as Error).message };
  }
}

function nodeExplanation({ node, effect }: NodePreview): NodeExplanation {
  const { action = 'unknown', drain = false, paths = [], reasons = [] } = effect ?? {};
  return { node, action, drained: drain, files: paths, reasons };
}

function inWords(explanation: PoolExplanation): string {
  const { machineConfig, pool, refused, from, to, changes, paused, atOnce, nodes = [] } = explanation;
  const line = (text: string) => `${visible(text)}\n`;
  if (refused !== undefined) return line(`pool ${pool} would refuse ${machineConfig}: ${refused}`);
  const affected = nodes.filter(({ action }) => action !== 'nothing').length;
  const head = [
    line(
      changes
        ? `pool ${pool} would go from ${from || 'nothing'} to ${to}`
        : `pool ${pool} is heading for ${to}, which has ${machineConfig} in it`,
    ),
    line(`${affected} of ${nodes.length} nodes would change, at most ${atOnce} at once`),
    ...(paused ? [line('the pool is paused: nothing happens until it is unpaused')] : []),
  ];
  if (nodes.length === 0) return head.join('');
  const rows = nodes.map(({ node, action, drained, files, reasons }) => [
    node,
    ACTIONS[action] ?? action,
    drained ? 'yes' : 'no',
    shortened([...files, ...reasons]),
  ]);
  return head.join('') + printTable(['NODE', 'ACTION', 'DRAINED', 'BECAUSE OF'], rows);
}

/** In the words of a person who waits for a node. */
const ACTIONS: Readonly<Record<string, string>> = {
  nothing: 'nothing',
  write: 'files written',
  reboot: 'rebooted',
  unknown: 'unknown: the config it runs is gone',
  refused: 'refused by its agent',
};

const MOST_REASONS = 3;

function shortened(reasons: readonly string[]): string {
  const shown = reasons.slice(0, MOST_REASONS).join(', ');
  return reasons.length > MOST_REASONS ? `${shown} and ${reasons.length - MOST_REASONS} more` : shown;
}
