/** What a machine of the rig boots from: Debian with containerd, the units beside this file, the programs of Kubernetes. */
import { cpSync, mkdirSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Binaries } from '../../cluster/binaries.ts';
import { debianRoot } from '../../tools/debian-root.ts';
import { type BootOptions, type Machine, MachineRoom } from '../../tools/nspawn.ts';
import { allowEnoughWatchers } from '../../tools/watchers.ts';
import { linkImages, type RigImages } from './rig-images.ts';
import type { Place } from './rig-network.ts';

const PACKAGES = [
  'systemd',
  'systemd-sysv',
  'dbus',
  'containerd',
  'runc',
  'containernetworking-plugins',
  // What kubeadm and the kubelet call, or miss.
  'conntrack',
  'ethtool',
  'iproute2',
  'iptables',
  'kmod',
  'mount',
  'procps',
  'socat',
  'util-linux',
  // What Node needs, for programs of ours that run on a node.
  'libstdc++6',
];
/** Nothing at boot that no test needs. */
const FINISH = `
  systemctl set-default multi-user.target
  systemctl mask console-getty.service getty@.service apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer \
    e2scrub_all.timer e2scrub_reap.service fstrim.timer systemd-tmpfiles-clean.timer
`;
const FILES = new URL('./os/', import.meta.url).pathname;
const ENABLED = ['rig-node.service', 'kubelet.service'];
/** Containers may do whatever root may; systemd-nspawn would take most of it away. */
const ALMIGHTY = ['--capability=all', '--bind=/dev/kmsg'];
const ENVIRONMENT = { SYSTEMD_SECCOMP: '0', SYSTEMD_NSPAWN_API_VFS_WRITABLE: '1' };

/** The root directory of all machines; fetches and builds it where it is not there yet. */
export function rigRoot(): Promise<string> {
  return debianRoot(PACKAGES, FINISH);
}

/** A machine room whose machines can be nodes. */
export class RigRoom extends MachineRoom {
  readonly #os: string;
  readonly #readOnly: Readonly<Record<string, string>>;

  constructor(root: string, { kubeadm, kubelet }: Binaries, readOnly: Readonly<Record<string, string>>) {
    super(root);
    // A containerd that may not watch says so in its log, and has no answer for the kubelet.
    allowEnoughWatchers();
    this.#os = this.layer('os');
    cpSync(FILES, this.#os, { recursive: true });
    for (const unit of ENABLED) {
      const link = join(this.#os, 'etc/systemd/system/multi-user.target.wants', unit);
      mkdirSync(dirname(link), { recursive: true });
      symlinkSync(`/etc/systemd/system/${unit}`, link);
    }
    this.#readOnly = { '/usr/bin/kubeadm': kubeadm, '/usr/bin/kubelet': kubelet, ...readOnly };
  }

  /** A machine that does not run yet. */
  async node(place: Place, bridge: string, images: RigImages): Promise<Machine> {
    // Containers are layers upon layers, which a disk of layers cannot carry.
    const containers = join(this.dir, 'containers', place.name);
    mkdirSync(dirname(containers), { recursive: true });
    await linkImages(images, containers);
    const options: BootOptions = {
      layers: [this.#os],
      readOnly: this.#readOnly,
      settings: [...ALMIGHTY, `--network-bridge=${bridge}`, `--bind=${containers}:/var/lib/containerd`],
      environment: ENVIRONMENT,
    };
    const machine = this.machine(place.machine, options);
    for (const [path, text] of Object.entries(filesOf(place, images.pause))) machine.put(path, text);
    return machine;
  }
}

function filesOf(place: Place, pause: string): Record<string, string> {
  return {
    '/etc/hostname': `${place.name}\n`,
    '/etc/hosts': `127.0.0.1 localhost\n::1 localhost\n${place.address} ${place.name}\n`,
    '/etc/resolv.conf': '# Nobody to ask.\n',
    '/etc/rig.env': Object.entries(place.environment)
      .map(([name, value]) => `${name}="${value}"\n`)
      .join(''),
    '/etc/default/kubelet': `KUBELET_EXTRA_ARGS=--node-ip=${place.address}\n`,
    '/etc/containerd/config.toml': containerdConfig(pause),
    '/etc/cni/net.d/10-rig.conflist': JSON.stringify(podNetwork(place.pods)),
  };
}

function containerdConfig(pause: string): string {
  const cri = 'plugins."io.containerd.grpc.v1.cri"';
  return [
    'version = 2',
    `[${cri}]`,
    `sandbox_image = "${pause}"`,
    // Machines in machines often may not make a process less likely to be killed than its parent.
    'restrict_oom_score_adj = true',
    `[${cri}.cni]`,
    'bin_dir = "/usr/lib/cni"',
    'conf_dir = "/etc/cni/net.d"',
    '',
  ].join('\n');
}

function podNetwork(subnet: string): object {
  const addresses = { type: 'host-local', ranges: [[{ subnet }]], routes: [{ dst: '0.0.0.0/0' }] };
  return {
    cniVersion: '1.0.0',
    name: 'rig',
    plugins: [{ type: 'bridge', bridge: 'cni0', isGateway: true, ipam: addresses }],
  };
}
