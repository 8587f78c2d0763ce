import type { Node } from 'kubernetes-types/core/v1.d.ts';
import type { ControllerConfig } from '../machine-config-api/controller-config.ts';
import type { DisruptionOptions } from '../machine-config-api/disruption.ts';
import type { MachineConfig, MachineConfigPool } from '../machine-config-api/machine-config.ts';
import { CURRENT_CONFIG, GENERATED_BY_CONTROLLER_VERSION, GENERATED_BY_VERSION } from '../machine-config-api/names.ts';
import { type RolloutEffect, rolloutEffect } from './effect.ts';
import { maxUnavailable } from './pool/max-unavailable.ts';
import { nodesOfPool } from './pool/membership.ts';
import { type ControllerVersion, type RenderedMachineConfig, renderPool } from './render/decide.ts';
import { configsOfPool } from './render/select.ts';

/** The objects that a preview is made from, as they are on the cluster or in files. */
export interface PreviewInput {
  readonly pool: MachineConfigPool;
  readonly pools: readonly MachineConfigPool[];
  readonly configs: readonly MachineConfig[];
  readonly nodes: readonly Node[];
  readonly controllerConfig: ControllerConfig;
  /** A MachineConfig that is not there yet, or is to replace the one of its name. */
  readonly candidate?: MachineConfig | undefined;
  /** What the cluster says about disruption: policies where they are in force, or that registries.conf never drains. */
  readonly disruption?: Pick<DisruptionOptions, 'policies' | 'hasDrainOverride'> | undefined;
}

export interface NodePreview {
  readonly node: string;
  /** The config it runs now; empty where it has not said so. */
  readonly from: string;
  /** Undefined where its config is unknown, and with it what would change. */
  readonly effect: RolloutEffect | undefined;
}

export interface RolloutPreview {
  readonly rendered: RenderedMachineConfig;
  /** Whether the pool would head for another config than it does now. */
  readonly isNew: boolean;
  readonly isPaused: boolean;
  /** How many nodes go at the same time. */
  readonly atOnce: number;
  readonly nodes: readonly NodePreview[];
}

/**
 * What would happen to the nodes of a pool: with the candidate, or, without one, with what is already there. Made by the functions
 * that render and roll out, so it throws what they throw: `RenderError`, `MaxUnavailableError`, `SelectorError`.
 */
export function previewRollout(input: PreviewInput): RolloutPreview {
  const { pool, pools, controllerConfig, candidate } = input;
  const existing = new Map(input.configs.map(config => [config.metadata?.name ?? '', config]));
  const current = existing.get(pool.spec?.configuration?.name ?? '');
  const planned = new Map(existing);
  if (candidate !== undefined) planned.set(candidate.metadata?.name ?? '', candidate);
  const configs = configsOfPool(pool, [...planned.values()]);
  const version = versionOf(controllerConfig, configs);
  const rendered = renderPool(pool, configs, controllerConfig, version, current, name => existing.has(name));
  const effects = new Map<string, RolloutEffect | undefined>();
  const effectFrom = (name: string) => {
    if (!effects.has(name)) {
      const before = existing.get(name);
      effects.set(name, before && rolloutEffect(before, rendered, input.disruption));
    }
    return effects.get(name);
  };
  const nodes = nodesOfPool(pool.metadata?.name ?? '', input.nodes, pools);
  return {
    rendered,
    isNew: rendered.metadata.name !== pool.spec?.configuration?.name,
    isPaused: pool.spec?.paused === true,
    atOnce: maxUnavailable(pool.spec?.maxUnavailable, nodes.length),
    nodes: nodes.map(({ metadata = {} }) => {
      const from = metadata.annotations?.[CURRENT_CONFIG] ?? '';
      return { node: metadata.name ?? '', from, effect: effectFrom(from) };
    }),
  };
}

/** The build that made what is there: a preview is made by another program than the controllers. */
function versionOf(controllerConfig: ControllerConfig, configs: readonly MachineConfig[]): ControllerVersion {
  const hashes = configs.map(({ metadata }) => metadata?.annotations?.[GENERATED_BY_CONTROLLER_VERSION] ?? '');
  return {
    version: controllerConfig.metadata?.annotations?.[GENERATED_BY_VERSION] ?? '',
    hash: hashes.find(hash => hash !== '') ?? '',
  };
}
