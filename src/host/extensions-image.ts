import { randomBytes } from 'node:crypto';
import { commandOutput, type RunCommand } from './command.ts';
import type { HostFiles } from './port.ts';

const PULL_SECRET = '/var/lib/kubelet/config.json';
const REPOSITORY_FILE = '/etc/yum.repos.d/coreos-extensions.repo';
const CONTENT_DIRECTORY = '/run/mco-extensions';
const PACKAGES_IN_IMAGE = 'usr/share/rpm-ostree/extensions';
const PULL_TIMEOUT_MS = 30 * 60_000;

/** The command that lists a local image (spec 60, 8.8.3). */
export function imageLookup(image: string): string[] {
  return ['podman', 'images', '-q', '--filter', `reference=${image}`];
}

/** Whether the lookup found the image. */
export function isImagePresent(lookupOutput: string): boolean {
  return lookupOutput.trim() !== '';
}

/** Unpacks the packages of an extensions image and offers them as a yum repository, until the returned function is called. */
export async function offerExtensions(run: RunCommand, files: HostFiles, image: string): Promise<() => Promise<void>> {
  const output = (...argv: string[]) => commandOutput(run, argv, { timeoutMs: PULL_TIMEOUT_MS });
  const directory = `${CONTENT_DIRECTORY}/os-extensions-content-${randomBytes(6).toString('hex')}`;
  const container = `rotunda-extensions-${randomBytes(6).toString('hex')}`;
  const withdraw = async () => {
    await files.remove(REPOSITORY_FILE);
    await files.removeTree(CONTENT_DIRECTORY);
  };
  await withdraw();
  if (!isImagePresent(await output(...imageLookup(image))))
    await output('nice', '-n', '19', 'podman', 'pull', '-q', '--authfile', PULL_SECRET, '--', image);
  try {
    await files.makeDirectory(`${directory}/${PACKAGES_IN_IMAGE}`);
    await output('podman', 'create', '--net=none', '--name', container, image, '/bin/true');
    await output('podman', 'cp', `${container}:/${PACKAGES_IN_IMAGE}/.`, `${directory}/${PACKAGES_IN_IMAGE}`);
    await output('chcon', '-R', '-t', 'var_run_t', directory);
    await files.write(REPOSITORY_FILE, Buffer.from(repository(`${directory}/${PACKAGES_IN_IMAGE}/`)), { mode: 0o644 });
  } catch (error) {
    await withdraw();
    throw error;
  } finally {
    await run(['podman', 'rm', '-f', container]).catch(() => {});
  }
  return withdraw;
}

function repository(path: string): string {
  return `[coreos-extensions]\nenabled=1\nmetadata_expire=1m\nbaseurl=${path}\ngpgcheck=0\nskip_if_unavailable=False\n`;
}
