import type { Host } from '../host/port.ts';

/** Services that come with the image of an operating system, and that agents reload and restart. */
const SERVICES = [
  'NetworkManager',
  'auditd',
  'chronyd',
  'crio',
  'irqbalance',
  'kubelet',
  'rpc-statd',
  'sshd',
  'systemd-journald',
  'systemd-sysctl',
] as const;
const UNIT_DIRECTORY = '/usr/lib/systemd/system';
/** The free one of the systems that 4.16 knows, so that keys of administrators and units are where its tools look for them. */
const OS_RELEASE = [
  'NAME="CentOS Stream CoreOS"',
  'ID="scos"',
  'ID_LIKE="rhel fedora"',
  // 4.16 takes the version of the distribution from behind its own: 9.
  'VERSION="416.9"',
  'VERSION_ID="4.16"',
  'OPENSHIFT_VERSION="4.16"',
  'PLATFORM_ID="platform:el9"',
  'PRETTY_NAME="CentOS Stream CoreOS, played by a local node of Rotunda"',
  'VARIANT_ID="coreos"',
  '',
].join('\n');

/**
 * What an image of an operating system brings to a local node before anybody configures it: its name, the account that the keys
 * of administrators belong to, and the services. Nothing of them runs; what is asked of them is written down and goes well.
 */
export async function provideOperatingSystem(host: Host): Promise<void> {
  const { accounts, files } = host;
  for (const place of ['/usr/lib/os-release', '/etc/os-release']) {
    if ((await files.stat(place)) === undefined) await files.write(place, Buffer.from(OS_RELEASE));
  }
  if ((await accounts.uid('core')) === undefined) await accounts.addUser('core', []);
  await provideServices(host, SERVICES);
}

/** Units of these names, enabled; nothing of them runs. */
export async function provideServices(
  { files, services }: Pick<Host, 'files' | 'services'>,
  names: readonly string[],
): Promise<void> {
  for (const service of names) {
    const unit = `${service}.service`;
    // Once: what was disabled since stays so.
    if ((await files.stat(`${UNIT_DIRECTORY}/${unit}`)) !== undefined) continue;
    await files.write(`${UNIT_DIRECTORY}/${unit}`, Buffer.from(unitText(service)));
    if ((await services.isEnabled(unit)) === 'disabled') await services.enable([unit]);
  }
}

function unitText(service: string): string {
  return [
    '[Unit]',
    `Description=${service} of a local node, of which nothing runs`,
    '[Service]',
    'ExecStart=/usr/bin/true',
    'ExecReload=/usr/bin/true',
    '[Install]',
    'WantedBy=multi-user.target',
    '',
  ].join('\n');
}
