/** A class of differences that is known, and why it is there. */
export interface Accepted {
  /** Name of the function. */
  readonly of: string | RegExp;
  readonly class: RegExp;
  /** What docs/compatibility.md says about it. */
  readonly documented: string;
}

/** Different on purpose. Each is in docs/compatibility.md, with what we do instead. */
const ON_PURPOSE: readonly Accepted[] = [
  purpose(/^ignition|^merge/, /units\[\]\.name: must not contain slashes/, 'the name of a unit may lead elsewhere'),
  purpose(/^ignition|^merge/, /is not clean: it has/, 'a path may lead elsewhere'),
  purpose(/^merge/, /^compression or verification of an older source/, 'a file takes the compression of the source'),
  purpose(
    'ignition bytes',
    /Supported spec versions|could not peek: unexpected EOF/,
    'a document `{}` or `null` in a whole file',
  ),
  purpose(
    'ignition bytes',
    /(?:merge\[\]\.source|links\[\]\.target): is required|mode: # cannot exceed/,
    'a stored document may have links without a target, configs to merge without a source, special mode bits',
  ),
  purpose('ContainerRuntimeConfig', /^\/etc\/containers\/storage\.conf/, '`overlaySize: 8Gi` is written as `8Gi`'),
  purpose('ContainerRuntimeConfig', /is more than fits # bits/, 'quantities beyond 2^63-1 wrap around'),
  purpose(
    'registries, odd scopes',
    /containerRuntimeSearchRegistries: "…" is no registry/,
    '`containerRuntimeSearchRegistries` takes anything',
  ),
  purpose(
    'registries, odd scopes',
    /^policy\.json at \.transports\.atomic/,
    '`a.io/x:tag` is also a scope of `atomic`',
  ),
  purpose(
    'ignition downgrade',
    /(?:HTTPHeaders|HTTP proxies) in .* are not supported/,
    'for 2.2, an empty list of HTTP headers',
  ),
  purpose(
    'ignition downgrade',
    /storage\.disks: cannot be said/,
    'for 2.2, partitions that should not exist or are to be wiped',
  ),
  purpose('ignition downgrade', /^upstream: panic: reflect/, 'for 2.2, some configs end the process'),
  purpose('update', /storage\.links\[\]\.target: is required/, 'a stored document may have links without a target'),
  purpose(
    'registries, odd scopes',
    /are the same place with different settings/,
    '`a.io` and `a.io/` with different settings',
  ),
  purpose('file contents', /missing data prefix/, 'a file without a source'),
  purpose('pools of a node', /theirs error invalid label selector/, 'one bad source stops everything'),
  purpose('drain', /^a critical pod|^the daemon itself/, 'a drain evicts pods that are marked critical'),
  purpose('update', /^actions by policy, kubelet-ca\.crt changed/, 'a new `kubelet-ca.crt` in a config reboots'),
  purpose(
    'update',
    /^(?:built-in drain|drain by policy): registries\.conf: [\w-]+ was changed/,
    'other settings of `registries.conf`',
  ),
  purpose(
    'update',
    /^(?:built-in drain|drain by policy): .*(?:listed twice|insecure|digest-only)/,
    'a registry that is listed twice',
  ),
  purpose('drain for registries.conf', /registries\.conf: [\w-]+ was changed/, 'other settings of `registries.conf`'),
  purpose(
    'drain for registries.conf',
    /listed twice|insecure was changed|digest-only/,
    'a registry that is listed twice',
  ),
  purpose(
    'update',
    /^cannot decide: .*is not valid gzip|^cannot decide by policies/,
    'a `registries.conf` that is called gzip and is none',
  ),
  purpose('kernel arguments', /^an open quotation mark/, 'a kernel argument with an open quotation mark'),
  purpose('kernel arguments', /^a blank argument/, 'a blank kernel argument'),
  purpose('kernel arguments', /^white space beyond ASCII/, 'white space beyond ASCII'),
  purpose('disk validation', /^"invalid unit masked setting/, 'a masked unit that is missing'),
  purpose(/^managed names/, /^a config is not marked/, 'a KubeletConfig without its suffix'),
  purpose(
    'installer choice',
    /^reason "node n# with revision # is the oldest not matching/,
    'the reason for the choice of a node',
  ),
  purpose('installer revision', /^published below current/, 'a published revision below the current one'),
  purpose('installer back-off', /^after many failures/, 'the pause after many fallbacks'),
  purpose('installer min ready', /^a pod is ready and does not run/, 'a pod that has ended counts as ready'),
  purpose('pruner', /^without nodes|makeslice/, 'without nodes every revision is pruned'),
  purpose('pruner', /^kept/, 'revisions between the first and the latest'),
  purpose('cert sync', /, a key is gone$/, 'a key that is gone from a Secret'),
  purpose('cert sync', /, an empty value$|, no data$/, 'an empty value is not written'),
  purpose('cert sync', /, the cache is behind$/, 'a cache that is behind'),
  purpose(
    'server config',
    /^refused: .*servicesSubnet/,
    'a number where the configuration of kube-apiserver has a text',
  ),
  purpose('server pod', /^refused: .*negative number/, 'a negative `gracefulTerminationDuration`'),
  purpose('combined bundles', /^an empty bundle/, 'a combined bundle can become empty'),
  purpose('etcd leaves', /^D-3/, 'a leaf without `certificate-not-before`'),
  purpose('etcd leaves', /^X-3/, 'a leaf whose key is missing'),
];

export const ACCEPTED: readonly Accepted[] = ON_PURPOSE;

export function acceptedAs(of: string, differenceClass: string): Accepted | undefined {
  return ACCEPTED.find(
    accepted =>
      (typeof accepted.of === 'string' ? accepted.of === of : accepted.of.test(of)) &&
      accepted.class.test(differenceClass),
  );
}

function purpose(of: string | RegExp, differences: RegExp, documented: string): Accepted {
  return { of, class: differences, documented };
}
