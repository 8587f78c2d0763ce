import { bool, int64, list, oneOf, ref, str, strings, vocabulary } from '../dsl.ts';

/** What containers may do, and as whom they run. */

const { object } = vocabulary('io.k8s.api.core.v1', '', 'v1');

const PROFILE_TYPES = ['Localhost', 'RuntimeDefault', 'Unconfined'];

const AppArmorProfile = object(
  'AppArmorProfile',
  'An AppArmor profile.',
  {
    localhostProfile: str('Profile loaded on the node; only with type `Localhost`.'),
    type: oneOf(PROFILE_TYPES, 'Where the profile comes from.'),
  },
  { required: ['type'] },
);

const SeccompProfile = object(
  'SeccompProfile',
  'A seccomp profile.',
  {
    localhostProfile: str("File on the node, below the kubelet's seccomp directory; only with type `Localhost`."),
    type: oneOf(PROFILE_TYPES, 'Where the profile comes from.'),
  },
  { required: ['type'] },
);

const SELinuxOptions = object('SELinuxOptions', 'An SELinux context.', {
  level: str('Level part of the context.'),
  role: str('Role part of the context.'),
  type: str('Type part of the context.'),
  user: str('User part of the context.'),
});

const WindowsSecurityContextOptions = object('WindowsSecurityContextOptions', 'Settings for Windows containers.', {
  gmsaCredentialSpec: str('Contents of the GMSA credential spec.'),
  gmsaCredentialSpecName: str('Name of the GMSA credential spec.'),
  hostProcess: bool('Runs as a HostProcess container; the same for all containers of a pod.'),
  runAsUserName: str('User that the entry point runs as.'),
});

const Capabilities = object('Capabilities', 'POSIX capabilities to add and to drop.', {
  add: strings('Capabilities added.'),
  drop: strings('Capabilities removed; `ALL` for all.'),
});

const Sysctl = object(
  'Sysctl',
  'A kernel parameter of the pod.',
  { name: str('Name of the parameter.'), value: str('Value of the parameter.') },
  { required: ['name'], zero: ['value'] },
);

const SHARED = {
  appArmorProfile: ref(AppArmorProfile, 'AppArmor profile.'),
  runAsGroup: int64('Group ID of the entry point.', { minimum: 0, maximum: 2147483647 }),
  runAsNonRoot: bool('Refuse to start as user 0.'),
  runAsUser: int64('User ID of the entry point; default is that of the image.', { minimum: 0, maximum: 2147483647 }),
  seLinuxOptions: ref(SELinuxOptions, 'SELinux context.'),
  seccompProfile: ref(SeccompProfile, 'Seccomp profile.'),
  windowsOptions: ref(WindowsSecurityContextOptions, 'Settings for Windows containers.'),
};

export const PodSecurityContext = object('PodSecurityContext', 'Security settings for all containers of a pod.', {
  ...SHARED,
  fsGroup: int64('Group that owns the volumes and is added to every container.', { minimum: 0, maximum: 2147483647 }),
  fsGroupChangePolicy: oneOf(['Always', 'OnRootMismatch'], 'When the ownership of a volume is changed.'),
  seLinuxChangePolicy: oneOf(['MountOption', 'Recursive'], 'How volumes get their SELinux label.'),
  supplementalGroups: list({ type: 'integer', format: 'int64' }, 'Further groups of the first process.'),
  supplementalGroupsPolicy: oneOf(['Merge', 'Strict'], "Whether groups of the image's user are added too."),
  sysctls: list(Sysctl, 'Kernel parameters of the pod.'),
});

export const SecurityContext = object(
  'SecurityContext',
  'Security settings for one container; they win over those of the pod.',
  {
    ...SHARED,
    allowPrivilegeEscalation: bool('Whether a process may gain more privileges than its parent.'),
    capabilities: ref(Capabilities, 'Capabilities to add and to drop.'),
    privileged: bool('Runs like root on the host.'),
    procMount: oneOf(['Default', 'Unmasked'], 'How `/proc` is mounted.'),
    readOnlyRootFilesystem: bool('Mounts the root file system read-only.'),
  },
);
