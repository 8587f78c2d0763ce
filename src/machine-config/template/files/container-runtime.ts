import type { FileEntry, Template } from '../entry.ts';

export const PULL_SECRET_PATH = '/var/lib/kubelet/config.json';

export const pullSecret: Template<FileEntry> = ({ pullSecret }) =>
  pullSecret === '' ? undefined : { path: PULL_SECRET_PATH, mode: 0o600, contents: `${pullSecret}\n` };

export const REGISTRIES_PATH = '/etc/containers/registries.conf';
/** Where an image is looked for that does not say where it is. */
export const SEARCH_REGISTRIES = ['registry.access.redhat.com', 'docker.io'];

export const registries: Template<FileEntry> = () => ({
  path: REGISTRIES_PATH,
  mode: 0o644,
  contents: `unqualified-search-registries = [${SEARCH_REGISTRIES.map(host => `'${host}'`).join(', ')}]\n`,
});

export const STORAGE_PATH = '/etc/containers/storage.conf';

/** The storage of container images; `size` limits what a container may write, nothing means no limit. */
export function storageConf(size: string): string {
  return [
    '[storage]',
    'driver = "overlay"',
    'runroot = "/run/containers/storage"',
    'graphroot = "/var/lib/containers/storage"',
    '',
    '[storage.options]',
    'additionalimagestores = []',
    `size = ${JSON.stringify(size)}`,
    '',
    '[storage.options.overlay]',
    'skip_mount_home = "true"',
    '',
  ].join('\n');
}

export const storage: Template<FileEntry> = () => ({ path: STORAGE_PATH, mode: 0o644, contents: storageConf('') });

export const POLICY_PATH = '/etc/containers/policy.json';

/** From where images may come: from everywhere, from everywhere but for some, or from some only. */
export function policyConf({ blocked = [], allowed = [] }: PolicyScopes = {}): string {
  const accept = [{ type: 'insecureAcceptAnything' }];
  const reject = [{ type: 'reject' }];
  const scopes = Object.fromEntries([
    ...allowed.map(scope => [scope, accept] as const),
    ...blocked.map(scope => [scope, reject] as const),
  ]);
  const atomicScopes = Object.fromEntries(Object.entries(scopes).filter(([scope]) => ATOMIC_SCOPE.test(scope)));
  const isAnySaid = blocked.length + allowed.length > 0;
  const policy = {
    default: allowed.length > 0 && blocked.length === 0 ? reject : accept,
    transports: {
      ...(isAnySaid && { atomic: atomicScopes, docker: scopes }),
      'docker-daemon': { '': accept },
    },
  };
  return `${JSON.stringify(policy, null, 2)}\n`;
}

/** What the transport "atomic" reads: one more segment, or a tag of a host's own, and no image could be pulled. */
const ATOMIC_SCOPE = /^[^/]*(?:\/[^:/]*(?:\/[^:/]*(?::[^:/]*)?)?)?$/;

export interface PolicyScopes {
  readonly blocked?: readonly string[];
  readonly allowed?: readonly string[];
}

export const signaturePolicy: Template<FileEntry> = () => ({
  path: POLICY_PATH,
  mode: 0o644,
  contents: policyConf(),
});

export const crioDefaults: Template<FileEntry> = ({ images }) => ({
  path: '/etc/crio/crio.conf.d/00-default',
  mode: 0o644,
  contents: [
    '[crio]',
    'internal_wipe = true',
    '',
    '[crio.api]',
    'stream_address = "127.0.0.1"',
    'stream_port = "0"',
    '',
    '[crio.runtime]',
    'selinux = true',
    'conmon_cgroup = "pod"',
    'cgroup_manager = "systemd"',
    'log_level = "info"',
    'drop_infra_ctr = true',
    'default_sysctls = ["net.ipv4.ping_group_range=0 2147483647"]',
    '',
    '[crio.image]',
    'global_auth_file = "/var/lib/kubelet/config.json"',
    ...(images['infraImageKey']
      ? [
          `pause_image = ${JSON.stringify(images['infraImageKey'])}`,
          'pause_image_auth_file = "/var/lib/kubelet/config.json"',
          'pause_command = "/usr/bin/pod"',
        ]
      : []),
    '',
    '[crio.network]',
    'network_dir = "/etc/kubernetes/cni/net.d/"',
    'plugin_dirs = ["/var/lib/cni/bin", "/usr/libexec/cni"]',
    '',
    '[crio.metrics]',
    'enable_metrics = true',
    'metrics_port = 9537',
    '',
  ].join('\n'),
});
