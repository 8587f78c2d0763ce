import type { IgnitionUnit } from '../../machine-config-api/ignition/types.ts';
import { MASTER_POOL, WORKER_POOL } from '../../machine-config-api/names.ts';
import type { FileEntry, Template, TemplateDirectory } from './entry.ts';
import { crioDefaults, pullSecret, registries, signaturePolicy, storage } from './files/container-runtime.ts';
import { additionalTrustBundle, apiServerUrl, proxyEnvironment, rootCa } from './files/host.ts';
import { cloudConf, kubeletConf, kubeletLogLevel, kubeletService, nodeSizing } from './files/kubelet.ts';

export interface TemplateSet {
  readonly files?: TemplateDirectory<FileEntry>;
  readonly units?: TemplateDirectory<IgnitionUnit>;
}

/** Templates of one config, or of all, by platform directory (spec 50, TM-1). */
export type Platforms = Readonly<Record<string, TemplateSet>>;

export interface TemplateTree {
  /** For every role; part of the first config of each. */
  readonly common: Platforms;
  /** Configs by role and name. */
  readonly roles: Readonly<Record<string, Readonly<Record<string, Platforms>>>>;
}

const proxyDropin =
  (service: string): Template<IgnitionUnit> =>
  values =>
    values.proxy === undefined
      ? undefined
      : {
          name: service,
          dropins: [{ name: '10-mco-default-env.conf', contents: '[Service]\nEnvironmentFile=/etc/mco/proxy.env\n' }],
        };

/** The templates of this project: what a machine needs to be a node, and nothing that a distribution brings itself. */
export const TEMPLATES: TemplateTree = {
  common: {
    _base: {
      files: {
        'additional-trust-bundle.yaml': additionalTrustBundle,
        'apiserver-url-env.yaml': apiServerUrl,
        'container-storage.yaml': storage,
        'etc-mco-proxy.yaml': proxyEnvironment,
        'kubelet-auto-node-sizing-enabled.yaml': nodeSizing,
        'kubelet-log-level.yaml': kubeletLogLevel,
        'pull-secret.yaml': pullSecret,
        'root-ca.yaml': rootCa,
      },
      units: {
        'crio.service-proxy.yaml': proxyDropin('crio.service'),
        'kubelet.service-proxy.yaml': proxyDropin('kubelet.service'),
      },
    },
  },
  roles: { [MASTER_POOL]: configsOf(MASTER_POOL), [WORKER_POOL]: configsOf(WORKER_POOL) },
};

/** The configs of a role, whose names say in which order they are merged. */
function configsOf(role: string): Readonly<Record<string, Platforms>> {
  return {
    [`00-${role}`]: {},
    [`01-${role}-container-runtime`]: {
      _base: {
        files: { 'container-registries.yaml': registries, 'crio.yaml': crioDefaults, 'policy.yaml': signaturePolicy },
      },
    },
    [`01-${role}-kubelet`]: {
      _base: {
        files: { 'cloudconfig.yaml': cloudConf, 'kubelet.yaml': kubeletConf },
        units: { 'kubelet.service.yaml': kubeletService(role) },
      },
    },
  };
}
