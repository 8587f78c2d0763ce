import type { DisruptionAction, DisruptionPolicies } from '../../machine-config-api/machine-configuration.ts';

const RELOAD_CRIO: DisruptionAction = { type: 'Reload', reload: { serviceName: 'crio.service' } };

/** What happens on a node when these files or keys change and nobody said otherwise (spec 50, MP-2). */
export const DEFAULT_POLICIES: Required<Pick<DisruptionPolicies, 'files' | 'sshkey'>> = {
  files: [
    { path: '/var/lib/kubelet/config.json', actions: [{ type: 'None' }] },
    { path: '/etc/machine-config-daemon/no-reboot/containers-gpg.pub', actions: [RELOAD_CRIO] },
    { path: '/etc/containers/policy.json', actions: [RELOAD_CRIO] },
    { path: '/etc/containers/registries.conf', actions: [{ type: 'Special' }] },
  ],
  sshkey: { actions: [{ type: 'None' }] },
};

/** The defaults with those of an administrator in their place, or after them (spec 50, MP-2, MP-3). */
export function mergePolicies(user: DisruptionPolicies): DisruptionPolicies {
  const userFiles = user.files ?? [];
  const files = [
    ...DEFAULT_POLICIES.files.map(policy => userFiles.find(({ path }) => path === policy.path) ?? policy),
    ...userFiles.filter(({ path }) => !DEFAULT_POLICIES.files.some(policy => policy.path === path)),
  ];
  const isSshSet = (user.sshkey?.actions ?? []).length > 0;
  return {
    files,
    ...(user.units !== undefined && user.units.length > 0 && { units: user.units }),
    sshkey: isSshSet && user.sshkey !== undefined ? user.sshkey : DEFAULT_POLICIES.sshkey,
  };
}
