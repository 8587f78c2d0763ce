import { gzipSync } from 'node:zlib';
import type { Host } from '../../../src/host/port.ts';
import type { IgnitionFile, IgnitionUnit } from '../../../src/machine-config-api/ignition/types.ts';
import type { MachineConfig } from '../../../src/machine-config-api/machine-config.ts';

/** Files that the operating system of the test nodes ships. */
export const SHIPPED = ['/etc/shipped-0.conf', '/etc/shipped-1.conf', '/etc/shipped-2.conf', '/etc/shipped-3.conf'];

const FILES = 40;
const UNITS = 6;

/** One of two configs of some 50 files, units, drop-ins, keys and a password, which differ in nearly everything. */
export function config(name: 'a' | 'b'): MachineConfig {
  const isA = name === 'a';
  const own = Array.from({ length: 6 }, (_, index) => file(`/etc/only-${name}/${index}`, name));
  const both = Array.from({ length: FILES }, (_, index) =>
    file(
      `/etc/dir-${index % 5}/file-${index}`,
      index % 8 === 0 ? 'same in both' : name,
      index % 3 === 0 ? 0o600 : 0o644,
    ),
  );
  const shipped = SHIPPED.filter((_, index) => (isA ? index < 3 : index > 0)).map(path => file(path, name));
  const units: IgnitionUnit[] = Array.from({ length: UNITS }, (_, index) => ({
    name: `unit-${index}.service`,
    enabled: (index % 2 === 0) === isA,
    contents: `[Unit]\nDescription=${name}\n[Install]\nWantedBy=${isA ? 'multi-user' : 'other'}.target\n`,
    dropins: [
      { name: '10-both.conf', contents: `[Service]\n# ${name}\n` },
      { name: `20-${name}.conf`, contents: '[Service]\n' },
    ],
  }));
  return {
    metadata: { name: `rendered-${name}` },
    spec: {
      config: {
        ignition: { version: '3.4.0' },
        passwd: { users: [{ name: 'core', passwordHash: `$6$${name}`, sshAuthorizedKeys: [`ssh-ed25519 ${name}`] }] },
        storage: { files: [...own, ...both, ...shipped] },
        systemd: {
          units: [
            ...units,
            { name: `only-${name}.service`, enabled: true, contents: units[0]?.contents ?? '' },
            isA ? { name: 'vendor.service', mask: true } : { name: 'vendor.service', enabled: true },
          ],
        },
      },
    },
  };
}

function file(path: string, text: string, mode = 0o644): IgnitionFile {
  const content = `${text} ${path}\n`.repeat(20);
  const source = `data:;base64,${gzipSync(content).toString('base64')}`;
  return { path, mode, contents: { source, compression: 'gzip' } };
}

/** A node as it is delivered: a user, shipped files, a unit of the operating system. */
export async function furnish(host: Host): Promise<void> {
  await host.accounts.addUser('core', []);
  for (const path of SHIPPED) {
    await host.files.write(`/usr${path}`, Buffer.from('shipped'));
    await host.files.write(path, Buffer.from('shipped'), { mode: 0o640 });
  }
  await host.files.write(
    '/usr/lib/systemd/system/vendor.service',
    Buffer.from('[Install]\nWantedBy=multi-user.target\n'),
  );
  await host.files.write('/etc/kubernetes/kubeconfig', Buffer.from('token'), { mode: 0o600 });
  await host.bootId();
}
