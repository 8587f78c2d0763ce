/** An Ignition document of spec 2, as far as it can become one of spec 3. */
export interface Ignition2Config {
  ignition: {
    version: string;
    config?: { append?: Ignition2Reference[]; replace?: Ignition2Reference };
    security?: { tls?: { certificateAuthorities?: Ignition2Reference[] } };
    timeouts?: { httpResponseHeaders?: number; httpTotal?: number };
  };
  networkd?: { units?: { name?: string }[] };
  passwd?: {
    users?: Ignition2User[];
    groups?: { name: string; gid?: number; passwordHash?: string; system?: boolean }[];
  };
  storage?: {
    files?: Ignition2File[];
    directories?: (Ignition2Node & { mode?: number })[];
    links?: (Ignition2Node & { target?: string; hard?: boolean })[];
    disks?: { device: string; wipeTable?: boolean; partitions?: Ignition2Partition[] }[];
    filesystems?: Ignition2Filesystem[];
    raid?: { name: string; level?: string; devices?: string[]; spares?: number; options?: string[] }[];
  };
  systemd?: { units?: Ignition2Unit[] };
}

export interface Ignition2Reference {
  source?: string;
  verification?: { hash?: string };
}

export interface Ignition2Node {
  filesystem?: string;
  path: string;
  overwrite?: boolean;
  user?: { id?: number; name?: string };
  group?: { id?: number; name?: string };
}

export interface Ignition2File extends Ignition2Node {
  contents?: Ignition2Reference & { compression?: string };
  mode?: number;
  append?: boolean;
}

export interface Ignition2Filesystem {
  name?: string;
  path?: string;
  mount?: {
    device?: string;
    format?: string;
    label?: string;
    uuid?: string;
    options?: string[];
    wipeFilesystem?: boolean;
    create?: { force?: boolean; options?: string[] };
  };
}

export interface Ignition2Partition {
  label?: string;
  number?: number;
  size?: number;
  start?: number;
  guid?: string;
  typeGuid?: string;
}

export interface Ignition2Unit {
  name: string;
  contents?: string;
  enable?: boolean;
  enabled?: boolean;
  mask?: boolean;
  dropins?: { name: string; contents?: string }[];
}

export interface Ignition2User {
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
  system?: boolean;
  create?: object;
}
