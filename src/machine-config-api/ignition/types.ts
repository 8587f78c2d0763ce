/**
 * An Ignition document of spec 3, all of it: what is not understood here is still merged and compared by its place in this
 * tree (spec 50, RN-11). Members that are not set are absent.
 */
export interface IgnitionConfig {
  ignition: {
    version: string;
    config?: { merge?: IgnitionResource[]; replace?: IgnitionResource };
    proxy?: { httpProxy?: string; httpsProxy?: string; noProxy?: string[] };
    security?: { tls?: { certificateAuthorities?: IgnitionResource[] } };
    timeouts?: { httpResponseHeaders?: number; httpTotal?: number };
  };
  kernelArguments?: { shouldExist?: string[]; shouldNotExist?: string[] };
  passwd?: { users?: IgnitionUser[]; groups?: IgnitionGroup[] };
  storage?: {
    files?: IgnitionFile[];
    directories?: IgnitionDirectory[];
    links?: IgnitionLink[];
    disks?: IgnitionDisk[];
    filesystems?: IgnitionFilesystem[];
    raid?: IgnitionRaid[];
    luks?: IgnitionLuks[];
  };
  systemd?: { units?: IgnitionUnit[] };
}

export interface IgnitionResource {
  source?: string;
  compression?: string;
  verification?: { hash?: string };
  httpHeaders?: { name: string; value?: string }[];
}

export interface IgnitionNode {
  path: string;
  overwrite?: boolean;
  user?: { id?: number; name?: string };
  group?: { id?: number; name?: string };
}

export interface IgnitionFile extends IgnitionNode {
  contents?: IgnitionResource;
  append?: IgnitionResource[];
  mode?: number;
}

export interface IgnitionDirectory extends IgnitionNode {
  mode?: number;
}

export interface IgnitionLink extends IgnitionNode {
  target?: string;
  hard?: boolean;
}

export interface IgnitionDropin {
  name: string;
  contents?: string;
}

export interface IgnitionUnit {
  name: string;
  contents?: string;
  enabled?: boolean;
  mask?: boolean;
  dropins?: IgnitionDropin[];
}

export interface IgnitionUser {
  name: string;
  passwordHash?: string;
  sshAuthorizedKeys?: string[];
  uid?: number;
  gecos?: string;
  homeDir?: string;
  noCreateHome?: boolean;
  primaryGroup?: string;
  groups?: string[];
  noUserGroup?: boolean;
  noLogInit?: boolean;
  shell?: string;
  shouldExist?: boolean;
  system?: boolean;
}

export interface IgnitionGroup {
  name: string;
  gid?: number;
  passwordHash?: string;
  shouldExist?: boolean;
  system?: boolean;
}

export interface IgnitionPartition {
  label?: string;
  number?: number;
  sizeMiB?: number;
  startMiB?: number;
  typeGuid?: string;
  guid?: string;
  resize?: boolean;
  shouldExist?: boolean;
  wipePartitionEntry?: boolean;
}

export interface IgnitionDisk {
  device: string;
  wipeTable?: boolean;
  partitions?: IgnitionPartition[];
}

export interface IgnitionFilesystem {
  device: string;
  format?: string;
  path?: string;
  label?: string;
  uuid?: string;
  options?: string[];
  mountOptions?: string[];
  wipeFilesystem?: boolean;
}

export interface IgnitionRaid {
  name: string;
  level?: string;
  devices?: string[];
  spares?: number;
  options?: string[];
}

export interface IgnitionLuks {
  name: string;
  device?: string;
  label?: string;
  uuid?: string;
  options?: string[];
  openOptions?: string[];
  discard?: boolean;
  keyFile?: IgnitionResource;
  wipeVolume?: boolean;
  clevis?: {
    tang?: { url: string; thumbprint?: string; advertisement?: string }[];
    tpm2?: boolean;
    threshold?: number;
    custom?: { pin?: string; config?: string; needsNetwork?: boolean };
  };
}

/** The version everything is converted to (spec 50, section 16). */
export const IGNITION_VERSION = '3.4.0';

/** An Ignition document that says nothing. */
export function emptyIgnition(): IgnitionConfig {
  return { ignition: { version: IGNITION_VERSION } };
}

/** A document that is refused: the place in it and why. */
export class IgnitionError extends Error {
  override readonly name = 'IgnitionError';
  /** Such as `storage.files[3].path`; empty for the document itself. */
  readonly field: string;

  constructor(field: string, message: string) {
    super(field === '' ? message : `${field}: ${message}`);
    this.field = field;
  }
}
