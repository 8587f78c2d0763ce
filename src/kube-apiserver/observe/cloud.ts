import { at, OBSERVED_COPIES } from '../copies.ts';
import { CONFIG_NAMESPACE, MANAGED_NAMESPACE } from '../namespaces.ts';
import { mountedFile } from '../operand-objects.ts';
import { nested } from '../target-config/merge.ts';
import type { Observer } from './observation.ts';

const PROVIDER = ['apiServerArguments', 'cloud-provider'];
const CONFIG = ['apiServerArguments', 'cloud-config'];

/** Platforms whose provider was once built into kube-apiserver; its configuration goes on being delivered. */
const ONCE_BUILT_IN: ReadonlySet<string> = new Set(['AWS', 'Azure', 'GCP', 'VSphere']);
const MANAGED_NAME = 'kube-cloud-config';
const MANAGED_KEY = 'cloud.conf';

/**
 * The configuration of the cloud provider: the one an operator prepared, else the user's (spec 20, 2.4). Which provider it is
 * is said no more: all of them run outside kube-apiserver now.
 */
export const cloudProvider: Observer = {
  paths: [PROVIDER, CONFIG],
  observe({ infrastructure, cloudConfig }) {
    // Not knowing the platform is no reason to take its configuration away.
    if (infrastructure === undefined) return { config: {} };
    const { spec, status } = infrastructure;
    const platform = status?.platformStatus?.type ?? status?.platform ?? spec?.platformSpec?.type ?? '';
    const { name, key } = spec?.cloudConfig ?? {};
    const user = name ? { source: at(CONFIG_NAMESPACE, name), file: key || MANAGED_KEY } : undefined;
    const prepared = cloudConfig && { source: at(MANAGED_NAMESPACE, MANAGED_NAME), file: MANAGED_KEY };
    const chosen = ONCE_BUILT_IN.has(platform) ? (prepared ?? user) : undefined;
    const copies = [{ ...OBSERVED_COPIES.cloudConfig, source: chosen?.source }];
    if (chosen === undefined) return { config: {}, copies };
    return { config: nested(CONFIG, [mountedFile('ConfigMap', 'cloud-config', chosen.file)]), copies };
  },
};
