import { bool, int32, ref, str, stringMap, strings, vocabulary } from '../dsl.ts';
import { LocalObjectReference } from './reference.ts';

/** Volume sources that are served by a driver: CSI, and the older ones that were built into Kubernetes. */

const { object } = vocabulary('io.k8s.api.core.v1', '', 'v1');

const fsType = str('File system to mount; default `ext4`.');
const readOnly = bool('Mounts read-only.');
const secretRef = ref(LocalObjectReference, 'Secret with the credentials of the driver.');
const partition = int32('Partition to mount; 0 or absent for the whole disk.');

const AWSElasticBlockStoreVolumeSource = object(
  'AWSElasticBlockStoreVolumeSource',
  'An AWS EBS disk.',
  { fsType, partition, readOnly, volumeID: str('ID of the disk.') },
  { required: ['volumeID'] },
);

const AzureDiskVolumeSource = object(
  'AzureDiskVolumeSource',
  'An Azure data disk.',
  {
    cachingMode: str('Caching of the host: `None`, `ReadOnly` or `ReadWrite`.', { default: 'ReadWrite' }),
    diskName: str('Name of the disk.'),
    diskURI: str('URI of the disk.'),
    fsType: str('File system to mount.', { default: 'ext4' }),
    kind: str('`Shared`, `Dedicated` or `Managed`.', { default: 'Shared' }),
    readOnly: bool('Mounts read-only.', { default: false }),
  },
  { required: ['diskName', 'diskURI'] },
);

const AzureFileVolumeSource = object(
  'AzureFileVolumeSource',
  'An Azure file share.',
  { readOnly, secretName: str('Secret with account name and key.'), shareName: str('Name of the share.') },
  { required: ['secretName', 'shareName'] },
);

const CSIVolumeSource = object(
  'CSIVolumeSource',
  'A volume of a CSI driver that lives as long as the pod.',
  {
    driver: str('Name of the driver.'),
    fsType: str('File system to mount; default is up to the driver.'),
    nodePublishSecretRef: ref(LocalObjectReference, 'Secret that is handed to the driver.'),
    readOnly,
    volumeAttributes: stringMap('Settings of the driver.'),
  },
  { required: ['driver'] },
);

const CephFSVolumeSource = object(
  'CephFSVolumeSource',
  'A Ceph file system.',
  {
    monitors: strings('Addresses of the monitors.'),
    path: str('Path in the file system; default `/`.'),
    readOnly,
    secretFile: str('Key ring on the node; default `/etc/ceph/user.secret`.'),
    secretRef,
    user: str('User; default `admin`.'),
  },
  { required: ['monitors'] },
);

const CinderVolumeSource = object(
  'CinderVolumeSource',
  'An OpenStack Cinder volume.',
  { fsType, readOnly, secretRef, volumeID: str('ID of the volume.') },
  { required: ['volumeID'] },
);

const FCVolumeSource = object('FCVolumeSource', 'A Fibre Channel disk.', {
  fsType,
  lun: int32('LUN of the target.'),
  readOnly,
  targetWWNs: strings('World wide names of the target.'),
  wwids: strings('World wide identifiers of the volume.'),
});

const FlexVolumeSource = object(
  'FlexVolumeSource',
  'A volume of an exec-based driver.',
  { driver: str('Name of the driver.'), fsType, options: stringMap('Settings of the driver.'), readOnly, secretRef },
  { required: ['driver'] },
);

const FlockerVolumeSource = object('FlockerVolumeSource', 'A Flocker volume.', {
  datasetName: str('Name of the dataset; deprecated.'),
  datasetUUID: str('UUID of the dataset.'),
});

const GCEPersistentDiskVolumeSource = object(
  'GCEPersistentDiskVolumeSource',
  'A Google Compute Engine disk.',
  { fsType, partition, pdName: str('Name of the disk.'), readOnly },
  { required: ['pdName'] },
);

const GitRepoVolumeSource = object(
  'GitRepoVolumeSource',
  'A checkout of a git repository. Deprecated.',
  {
    directory: str('Directory to check out into; no `..`.'),
    repository: str('URL of the repository.'),
    revision: str('Commit to check out.'),
  },
  { required: ['repository'] },
);

const GlusterfsVolumeSource = object(
  'GlusterfsVolumeSource',
  'A Glusterfs volume.',
  { endpoints: str('Endpoints of the cluster.'), path: str('Path of the volume.'), readOnly },
  { required: ['endpoints', 'path'] },
);

const ISCSIVolumeSource = object(
  'ISCSIVolumeSource',
  'An iSCSI disk.',
  {
    chapAuthDiscovery: bool('CHAP authentication at discovery.'),
    chapAuthSession: bool('CHAP authentication of the session.'),
    fsType,
    initiatorName: str('Name of the initiator.'),
    iqn: str('Qualified name of the target.'),
    iscsiInterface: str('Interface name.', { default: 'default' }),
    lun: int32('LUN of the target.'),
    portals: strings('Further portals of the target.'),
    readOnly,
    secretRef,
    targetPortal: str('Portal of the target, `ip:port`.'),
  },
  { required: ['iqn', 'targetPortal'], zero: ['lun'] },
);

const PhotonPersistentDiskVolumeSource = object(
  'PhotonPersistentDiskVolumeSource',
  'A Photon Controller disk.',
  { fsType, pdID: str('ID of the disk.') },
  { required: ['pdID'] },
);

const PortworxVolumeSource = object(
  'PortworxVolumeSource',
  'A Portworx volume.',
  { fsType, readOnly, volumeID: str('ID of the volume.') },
  { required: ['volumeID'] },
);

const QuobyteVolumeSource = object(
  'QuobyteVolumeSource',
  'A Quobyte volume.',
  {
    group: str('Group to mount as.'),
    readOnly,
    registry: str('Registry services, `host:port` with commas between.'),
    tenant: str('Tenant that owns the volume.'),
    user: str('User to mount as.'),
    volume: str('Name of the volume.'),
  },
  { required: ['registry', 'volume'] },
);

const RBDVolumeSource = object(
  'RBDVolumeSource',
  'A Ceph block device.',
  {
    fsType,
    image: str('Name of the image.'),
    keyring: str('Key ring on the node.', { default: '/etc/ceph/keyring' }),
    monitors: strings('Addresses of the monitors.'),
    pool: str('Pool of the image.', { default: 'rbd' }),
    readOnly,
    secretRef,
    user: str('User.', { default: 'admin' }),
  },
  { required: ['image', 'monitors'] },
);

const ScaleIOVolumeSource = object(
  'ScaleIOVolumeSource',
  'A ScaleIO volume.',
  {
    fsType: str('File system to mount.', { default: 'xfs' }),
    gateway: str('Address of the API gateway.'),
    protectionDomain: str('Protection domain of the storage.'),
    readOnly,
    secretRef,
    sslEnabled: bool('Whether to use TLS.'),
    storageMode: str('`ThickProvisioned` or `ThinProvisioned`.', { default: 'ThinProvisioned' }),
    storagePool: str('Pool of the storage.'),
    system: str('Name of the storage system.'),
    volumeName: str('Name of the volume.'),
  },
  { required: ['gateway', 'secretRef', 'system'] },
);

const StorageOSVolumeSource = object('StorageOSVolumeSource', 'A StorageOS volume.', {
  fsType,
  readOnly,
  secretRef,
  volumeName: str('Name of the volume.'),
  volumeNamespace: str('StorageOS namespace of the volume.'),
});

const VsphereVirtualDiskVolumeSource = object(
  'VsphereVirtualDiskVolumeSource',
  'A vSphere disk.',
  {
    fsType,
    storagePolicyID: str('ID of the storage policy.'),
    storagePolicyName: str('Name of the storage policy.'),
    volumePath: str('Path of the disk.'),
  },
  { required: ['volumePath'] },
);

export const DRIVER_SOURCES = {
  awsElasticBlockStore: ref(AWSElasticBlockStoreVolumeSource, 'An AWS EBS disk. Deprecated.'),
  azureDisk: ref(AzureDiskVolumeSource, 'An Azure disk. Deprecated.'),
  azureFile: ref(AzureFileVolumeSource, 'An Azure file share. Deprecated.'),
  cephfs: ref(CephFSVolumeSource, 'A Ceph file system. No longer supported.'),
  cinder: ref(CinderVolumeSource, 'An OpenStack Cinder volume. Deprecated.'),
  csi: ref(CSIVolumeSource, 'A volume of a CSI driver.'),
  fc: ref(FCVolumeSource, 'A Fibre Channel disk.'),
  flexVolume: ref(FlexVolumeSource, 'A volume of an exec-based driver. Deprecated.'),
  flocker: ref(FlockerVolumeSource, 'A Flocker volume. No longer supported.'),
  gcePersistentDisk: ref(GCEPersistentDiskVolumeSource, 'A GCE disk. Deprecated.'),
  gitRepo: ref(GitRepoVolumeSource, 'A git checkout. Deprecated.'),
  glusterfs: ref(GlusterfsVolumeSource, 'A Glusterfs volume. No longer supported.'),
  iscsi: ref(ISCSIVolumeSource, 'An iSCSI disk.'),
  photonPersistentDisk: ref(PhotonPersistentDiskVolumeSource, 'A Photon disk. No longer supported.'),
  portworxVolume: ref(PortworxVolumeSource, 'A Portworx volume. Deprecated.'),
  quobyte: ref(QuobyteVolumeSource, 'A Quobyte volume. No longer supported.'),
  rbd: ref(RBDVolumeSource, 'A Ceph block device. No longer supported.'),
  scaleIO: ref(ScaleIOVolumeSource, 'A ScaleIO volume. No longer supported.'),
  storageos: ref(StorageOSVolumeSource, 'A StorageOS volume. No longer supported.'),
  vsphereVolume: ref(VsphereVirtualDiskVolumeSource, 'A vSphere disk. Deprecated.'),
};
