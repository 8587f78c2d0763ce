import { at, OBSERVED_COPIES } from '../copies.ts';
import { CONFIG_NAMESPACE, MANAGED_NAMESPACE } from '../namespaces.ts';
import { mountedFile } from '../operand-objects.ts';
import { mergeConfigs, nested } from '../target-config/merge.ts';
import type { Observer } from './observation.ts';

const PROVIDER = ['apiServerArguments', 'cloud-provider'];
const CONFIG = ['apiServerArguments', 'cloud-config'];

/** Platforms with a provider that was once built into kube-apiserver. */
const IN_TREE: Readonly<Record<string, string>> = { AWS: 'aws', Azure: 'azure', GCP: 'gce', VSphere: 'vsphere' };
const MANAGED_NAME = 'kube-cloud-config';
const MANAGED_KEY = 'cloud.conf';

/** The configuration of a built-in cloud provider: the one an operator prepared, else the user's (spec 20, 2.4). */
export const cloudProvider: Observer = {
  paths: [PROVIDER, CONFIG],
  observe({ infrastructure, cloudConfig, hasInTreeCloudProviders = false }) {
    const { spec, status } = infrastructure ?? {};
    const platform = status?.platformStatus?.type ?? spec?.platformSpec?.type ?? '';
    const provider = hasInTreeCloudProviders ? IN_TREE[platform] : undefined;
    const rule = OBSERVED_COPIES.cloudConfig;
    if (provider === undefined) return { config: {}, copies: [{ ...rule, source: undefined }] };
    const { name = '', key = '' } = spec?.cloudConfig ?? {};
    const isManaged = cloudConfig !== undefined;
    const source = isManaged
      ? at(MANAGED_NAMESPACE, MANAGED_NAME)
      : name === ''
        ? undefined
        : at(CONFIG_NAMESPACE, name);
    const file = isManaged || key === '' ? MANAGED_KEY : key;
    return {
      config: mergeConfigs(
        nested(PROVIDER, [provider]),
        source === undefined ? {} : nested(CONFIG, [mountedFile('ConfigMap', 'cloud-config', file)]),
      ),
      copies: [{ ...rule, source }],
    };
  },
};
