import { bool, int32, int64, list, oneOf, ref, str, vocabulary } from '../dsl.ts';
import { type FieldError, forbidden } from '../field-error.ts';
import { withField } from '../json.ts';
import { dnsLabelErrors } from '../name.ts';
import type { JsonObject, Schema } from '../schema.ts';
import { PersistentVolumeClaimTemplate } from './claim.ts';
import { PULL_POLICIES } from './container.ts';
import { LabelSelector, Quantity } from './meta.ts';
import { KeyToPath, ObjectFieldSelector, ResourceFieldSelector } from './reference.ts';
import { DRIVER_SOURCES } from './volume-driver.ts';

/** The volumes of a pod. */

const { object } = vocabulary('io.k8s.api.core.v1', '', 'v1');

const mode = (description: string): Schema => int32(description, { minimum: 0, maximum: 511 });
const defaultMode: Schema = { ...mode('Permission bits of files that have none of their own.'), default: 420 };
const name = (of: string): Schema => str(`Name of the ${of}.`, { default: '' });
const optional = bool('The object or its keys may be missing.');
const items = list(KeyToPath, 'Keys to take and where to put them; default is all, each in a file of its name.');

const ConfigMapVolumeSource = object('ConfigMapVolumeSource', 'Files from the keys of a ConfigMap.', {
  defaultMode,
  items,
  name: name('ConfigMap'),
  optional,
});

const SecretVolumeSource = object('SecretVolumeSource', 'Files from the keys of a Secret.', {
  defaultMode,
  items,
  optional,
  secretName: str('Name of the Secret.'),
});

const DownwardAPIVolumeFile = object(
  'DownwardAPIVolumeFile',
  'A file with something about the pod.',
  {
    fieldRef: ref(ObjectFieldSelector, 'A field of the pod.'),
    mode: mode('Permission bits of the file.'),
    path: str('Relative path of the file; no `..`.'),
    resourceFieldRef: ref(ResourceFieldSelector, 'A resource of a container.'),
  },
  { required: ['path'] },
);

const downwardItems = list(DownwardAPIVolumeFile, 'The files.');
const DownwardAPIVolumeSource = object('DownwardAPIVolumeSource', 'Files that tell about the pod.', {
  defaultMode,
  items: downwardItems,
});

const EmptyDirVolumeSource = object('EmptyDirVolumeSource', 'A directory that lives as long as the pod.', {
  medium: str('`Memory` for a tmpfs; default is the disk of the node.'),
  sizeLimit: ref(Quantity, 'Most it may hold.'),
});

const HOST_PATH_TYPES = [
  '',
  'BlockDevice',
  'CharDevice',
  'Directory',
  'DirectoryOrCreate',
  'File',
  'FileOrCreate',
  'Socket',
];

const HostPathVolumeSource = object(
  'HostPathVolumeSource',
  'A file or directory of the node.',
  {
    path: str('Path on the node.'),
    type: oneOf(HOST_PATH_TYPES, 'What must be there; empty for no check.', { default: '' }),
  },
  { required: ['path'] },
);

const PersistentVolumeClaimVolumeSource = object(
  'PersistentVolumeClaimVolumeSource',
  'The volume bound to a claim.',
  { claimName: str('Name of the claim.'), readOnly: bool('Mounts read-only.') },
  { required: ['claimName'] },
);

const EphemeralVolumeSource = object('EphemeralVolumeSource', 'A claim that is made for and goes with the pod.', {
  volumeClaimTemplate: ref(PersistentVolumeClaimTemplate, 'The claim.'),
});

const ImageVolumeSource = object('ImageVolumeSource', 'The content of an image or artefact.', {
  pullPolicy: oneOf(PULL_POLICIES, 'When to pull.'),
  reference: str('The image.'),
});

const NFSVolumeSource = object(
  'NFSVolumeSource',
  'A directory of an NFS server.',
  {
    path: str('Exported path.'),
    readOnly: bool('Mounts read-only.'),
    server: str('Host name or address of the server.'),
  },
  { required: ['path', 'server'] },
);

const ClusterTrustBundleProjection = object(
  'ClusterTrustBundleProjection',
  'A file with the trust anchors of bundles.',
  {
    labelSelector: ref(LabelSelector, 'Which bundles of the signer; only with `signerName`.'),
    name: str('One bundle; not together with `signerName`.'),
    optional: bool('The bundle may be missing.'),
    path: str('Relative path of the file.'),
    signerName: str('All bundles of this signer.'),
  },
  { required: ['path'] },
);

const ServiceAccountTokenProjection = object(
  'ServiceAccountTokenProjection',
  'A file with a token that is renewed in time.',
  {
    audience: str('Whom the token is for; default is the API server.'),
    expirationSeconds: int64('Lifetime of the token.', { default: 3600, minimum: 600 }),
    path: str('Relative path of the file.'),
  },
  { required: ['path'] },
);

const PROJECTED_OBJECT = { items, name: name('object'), optional };

const VolumeProjection = object('VolumeProjection', 'One source of files; exactly one field is set.', {
  clusterTrustBundle: ref(ClusterTrustBundleProjection, 'Trust anchors.'),
  configMap: ref(
    object('ConfigMapProjection', 'Files from the keys of a ConfigMap.', PROJECTED_OBJECT),
    'A ConfigMap.',
  ),
  downwardAPI: ref(
    object('DownwardAPIProjection', 'Files that tell about the pod.', { items: downwardItems }),
    'The pod.',
  ),
  secret: ref(object('SecretProjection', 'Files from the keys of a Secret.', PROJECTED_OBJECT), 'A Secret.'),
  serviceAccountToken: ref(ServiceAccountTokenProjection, 'A service account token.'),
});

const ProjectedVolumeSource = object('ProjectedVolumeSource', 'Files from several sources in one directory.', {
  defaultMode,
  sources: list(VolumeProjection, 'The sources.'),
});

const SOURCES = {
  configMap: ref(ConfigMapVolumeSource, 'Files from a ConfigMap.'),
  downwardAPI: ref(DownwardAPIVolumeSource, 'Files that tell about the pod.'),
  emptyDir: ref(EmptyDirVolumeSource, 'A directory that lives as long as the pod.'),
  ephemeral: ref(EphemeralVolumeSource, 'Storage that is claimed for the pod and goes with it.'),
  hostPath: ref(HostPathVolumeSource, 'A file or directory of the node.'),
  image: ref(ImageVolumeSource, 'The content of an image.'),
  nfs: ref(NFSVolumeSource, 'A directory of an NFS server.'),
  persistentVolumeClaim: ref(PersistentVolumeClaimVolumeSource, 'The volume bound to a claim.'),
  projected: ref(ProjectedVolumeSource, 'Files from several sources.'),
  secret: ref(SecretVolumeSource, 'Files from a Secret.'),
  ...DRIVER_SOURCES,
};

export const Volume = object(
  'Volume',
  'A volume that containers of the pod can mount. Exactly one source is set; none means `emptyDir`.',
  { name: str('Name of the volume, a DNS label unique in the pod.'), ...SOURCES },
  { required: ['name'], complete: completeVolume, check: volumeErrors },
);

const SOURCE_NAMES = Object.keys(SOURCES);

function completeVolume(volume: JsonObject): JsonObject {
  return SOURCE_NAMES.some(source => Object.hasOwn(volume, source)) ? volume : withField(volume, 'emptyDir', {});
}

function volumeErrors(volume: JsonObject, path: string): FieldError[] {
  const given = SOURCE_NAMES.filter(source => Object.hasOwn(volume, source));
  const tooMany = given
    .slice(1)
    .map(source => forbidden(`${path}.${source}`, 'may not specify more than 1 volume type'));
  const { name } = volume;
  return [...(typeof name === 'string' && name !== '' ? dnsLabelErrors(name, `${path}.name`) : []), ...tooMany];
}
