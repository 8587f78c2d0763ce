import type { ControllerConfigSpec } from '../../../src/machine-config-api/controller-config.ts';

/** A cluster whose ControllerConfig is complete, for cases that only say what differs. */
export const CONTROLLER_CONFIG_SPEC: ControllerConfigSpec = {
  kubeAPIServerServingCAData: Buffer.from('kubelet CA\n').toString('base64'),
  rootCAData: Buffer.from('root CA\n').toString('base64'),
  cloudProviderCAData: null,
  cloudProviderConfig: '[Global]\n',
  additionalTrustBundle: null,
  imageRegistryBundleData: [],
  imageRegistryBundleUserData: [],
  internalRegistryPullSecret: null,
  baseOSContainerImage: 'os@sha256:1',
  baseOSExtensionsContainerImage: 'extensions@sha256:1',
  images: {},
  infra: { spec: {}, status: { platformStatus: { type: 'None' }, apiServerInternalURI: 'https://api-int.c1.example.com:6443', controlPlaneTopology: 'HighlyAvailable' } },
  dns: { spec: { baseDomain: 'c1.example.com' } },
  proxy: null,
  clusterDNSIP: '172.30.0.10',
  ipFamilies: 'IPv4',
  networkType: 'OVNKubernetes',
};
