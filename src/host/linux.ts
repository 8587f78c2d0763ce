import { bootc } from './bootc.ts';
import { commandOutput, type RunCommand, runCommand, truncated } from './command.ts';
import { rootedFiles } from './directory-disk.ts';
import { readOperatingSystem } from './os-release.ts';
import {
  type Host,
  type HostAccounts,
  HostError,
  type HostFiles,
  type HostOs,
  type HostPackages,
  type HostServices,
  type HostSessions,
  type LoginSession,
  type UnitEnablement,
} from './port.ts';
import { rpmOstree } from './rpm-ostree.ts';
import { sessionsOnDisk } from './sessions-on-disk.ts';

export interface LinuxHostOptions {
  /** Where the root of the machine is mounted; `/` when we run in it. */
  readonly root?: string;
  /** How programs are run, and the files below the root; given in tests. */
  readonly run?: RunCommand;
  readonly files?: HostFiles;
}

/** Starting and stopping may take as long as a unit's own time limit. */
const SERVICE_TIMEOUT_MS = 10 * 60_000;
/** On Red Hat's systems and on Debian's. */
const CA_TRUST_PROGRAMS = ['/usr/bin/update-ca-trust', '/usr/sbin/update-ca-certificates'];
const REBOOT_UNIT = 'machine-config-daemon-reboot';
/** logind's message for a new session (spec 60, section 15). */
const NEW_SESSION_MESSAGE = '8d45620c1a4348dbb17410da57c60c66';
const MOST_LOGINS = 1000;

/** A real Linux machine with systemd, through its own programs. */
export async function linuxHost({
  root = '/',
  run = runCommand,
  files = rootedFiles(root),
}: LinuxHostOptions = {}): Promise<Host> {
  const inRoot: RunCommand = root === '/' ? run : (argv, options) => run(['chroot', root, ...argv], options);
  const os = await imageOs(files, inRoot);
  return {
    files,
    services: systemctl(inRoot),
    os,
    accounts: accounts(inRoot),
    sessions: sessions(files, inRoot),
    packages: await packages(files, inRoot),
    async updateCaTrust() {
      for (const program of CA_TRUST_PROGRAMS) {
        if ((await files.stat(program)) !== undefined) return void (await commandOutput(inRoot, [program]));
      }
    },
    describe: () => describe(files, inRoot, os),
    async bootId() {
      const id = await files.read('/proc/sys/kernel/random/boot_id');
      if (id === undefined) throw new HostError('io', '/proc/sys/kernel/random/boot_id does not exist');
      return id.toString('utf8').trim();
    },
    async reboot(rationale) {
      const { isCoreOSVariant } = await readOperatingSystem(files);
      // A unit of the same name that failed before would stand in the way (spec 60, D-30).
      await inRoot(['systemctl', 'reset-failed', `${REBOOT_UNIT}.service`]);
      try {
        await commandOutput(inRoot, rebootCommand(rationale, isCoreOSVariant));
      } catch (error) {
        throw new HostError('command', 'reboot command failed, something is seriously wrong', { cause: error });
      }
    },
  };
}

/** How a machine is rebooted, out of reach of our own end (spec 60, 10.3). */
export function rebootCommand(rationale: string, isCoreOSVariant: boolean): string[] {
  const finalize = 'ostree-finalize-staged.service';
  return [
    'systemd-run',
    '--unit',
    REBOOT_UNIT,
    '--description',
    `machine-config-daemon: ${rationale.replaceAll(/\s+/g, ' ')}`,
    ...(isCoreOSVariant ? ['-p', `Requires=${finalize}`, '-p', `After=${finalize}`] : []),
    '/bin/sh',
    '-c',
    'systemctl reboot',
  ];
}

/** Where an installed image says how it came to be. */
const PROVISIONING = ['/sysroot/.coreos-aleph-version.json', '/etc/.ignition-result.json'];
const LARGEST_PROVISIONING_BYTES = 64 * 1024;
/** A machine that was booted often has many lines of it. */
const SHOWN_TEXT = 4096;

async function describe(files: HostFiles, run: RunCommand, os: HostOs | undefined): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  const commands = [
    ...(os === undefined ? [] : [[os.tool, 'status']]),
    ['journalctl', '--list-boots'],
    ['systemctl', 'list-units', '--state=failed', '--no-legend'],
  ];
  for (const command of commands) {
    const { code, stdout } = await run(command);
    if (code === 0) found.set(command.join(' '), truncated(stdout.trim(), SHOWN_TEXT));
  }
  for (const path of os === undefined ? [] : PROVISIONING) {
    const text = await files.read(path, LARGEST_PROVISIONING_BYTES);
    if (text !== undefined) found.set(path, truncated(text.toString('utf8').trim(), SHOWN_TEXT));
  }
  return found;
}

async function imageOs(files: HostFiles, run: RunCommand): Promise<HostOs | undefined> {
  if ((await files.stat('/run/ostree-booted')) === undefined) return undefined;
  if ((await files.stat('/usr/bin/rpm-ostree')) !== undefined) return rpmOstree(run, files);
  return (await files.stat('/usr/bin/bootc')) === undefined ? undefined : bootc(run, files);
}

const ENABLEMENT: Readonly<Record<string, UnitEnablement>> = {
  enabled: 'enabled',
  disabled: 'disabled',
  masked: 'masked',
  'masked-runtime': 'masked',
  static: 'static',
  'not-found': 'not-found',
};

function systemctl(run: RunCommand): HostServices {
  const act = async (...args: string[]) => {
    await commandOutput(run, ['systemctl', ...args], { timeoutMs: SERVICE_TIMEOUT_MS });
  };
  return {
    async isEnabled(unit) {
      const { stdout, stderr } = await run(['systemctl', 'is-enabled', '--', unit]);
      const answer = stdout.trim();
      if (answer === '') return /no such file|not found|does not exist/i.test(stderr) ? 'not-found' : 'other';
      return ENABLEMENT[answer] ?? 'other';
    },
    enable: units => (units.length === 0 ? Promise.resolve() : act('enable', '--', ...units)),
    disable: units => (units.length === 0 ? Promise.resolve() : act('disable', '--', ...units)),
    preset: unit => act('preset', '--', unit),
    daemonReload: () => act('daemon-reload'),
    start: unit => act('start', '--', unit),
    stop: unit => act('stop', '--', unit),
    restart: unit => act('restart', '--', unit),
    reload: unit => act('reload', '--', unit),
    isActive: async unit => (await run(['systemctl', 'is-active', '--', unit])).stdout.trim() === 'active',
  };
}

function accounts(run: RunCommand): HostAccounts {
  const idIn = async (database: string, name: string) => {
    const { code, stdout } = await run(['getent', '--', database, name]);
    const id = Number(stdout.split(':')[2] || Number.NaN);
    return code === 0 && Number.isInteger(id) ? id : undefined;
  };
  return {
    uid: user => idIn('passwd', user),
    gid: group => idIn('group', group),
    async addUser(user, groups) {
      const withGroups = groups.length > 0 ? ['-G', groups.join(',')] : [];
      await commandOutput(run, ['useradd', '-m', ...withGroups, '--', user]);
    },
    async passwordHash(user) {
      const { code, stdout } = await run(['getent', '--', 'shadow', user]);
      return code === 0 ? stdout.split(':')[1] : undefined;
    },
    async setPasswordHash(user, hash) {
      if (/[:\n]/.test(user) || /[:\n]/.test(hash))
        throw new HostError('command', `the password hash of ${JSON.stringify(user)} is not well-formed`);
      // Not usermod -p: everybody may read the arguments of a process.
      await commandOutput(run, ['chpasswd', '-e'], { input: `${user}:${hash}\n` });
    },
  };
}

async function packages(files: HostFiles, run: RunCommand): Promise<HostPackages | undefined> {
  if ((await files.stat('/usr/bin/rpm')) !== undefined) return { owns: path => rpmOwns(run, path) };
  if ((await files.stat('/usr/bin/dpkg-query')) !== undefined) return { owns: path => dpkgOwns(run, path) };
  return undefined;
}

async function rpmOwns(run: RunCommand, path: string): Promise<boolean> {
  const { code, stdout, stderr } = await run(['rpm', '-qf', '--', path]);
  if (code === 0) return true;
  if (`${stdout}${stderr}`.includes('is not owned by any package')) return false;
  throw new HostError('command', `rpm could not tell who owns ${JSON.stringify(path)}: ended with ${code}`);
}

async function dpkgOwns(run: RunCommand, path: string): Promise<boolean> {
  // It takes patterns; what could be one is not a file of any package.
  if (/[*?[\]\\]/.test(path)) return false;
  const { code } = await run(['dpkg-query', '-S', '--', path]);
  if (code > 1) throw new HostError('command', `dpkg-query could not tell who owns ${JSON.stringify(path)}`);
  return code === 0;
}

function sessions(files: HostFiles, run: RunCommand): HostSessions {
  return {
    async list() {
      const now = await sessionsNow(run);
      const ids = new Set(now.map(({ session }) => session.id));
      const before = (await sessionsSinceBoot(run)).filter(({ session }) => !ids.has(session.id));
      return [...now, ...before].filter(isLogin).map(({ session }) => session);
    },
    watch: (changed, signal) => sessionsOnDisk(files).watch(changed, signal),
  };
}

interface ClassifiedSession {
  readonly session: LoginSession;
  /** As logind has it: `user`, `background`, `greeter`, `manager` ... */
  readonly class: string;
}

/** Since 256 the manager of a user's services has a session as well; nobody logged in for that, or for a batch job. */
function isLogin(session: ClassifiedSession): boolean {
  return session.class.startsWith('user');
}

async function sessionsNow(run: RunCommand): Promise<ClassifiedSession[]> {
  const table = await commandOutput(run, ['loginctl', 'list-sessions', '--no-legend', '--no-pager']);
  const properties = ['Name', 'Remote', 'Timestamp', 'Class'].flatMap(name => ['-p', name]);
  const found: ClassifiedSession[] = [];
  for (const line of table.split('\n')) {
    const id = line.trim().split(/\s+/)[0] ?? '';
    if (!/^[a-z]?[0-9]+$/.test(id)) continue;
    // It may have ended since.
    const { code, stdout } = await run(['loginctl', 'show-session', id, ...properties]);
    if (code !== 0) continue;
    const fields = new Map(stdout.split('\n').map(field => field.split(/=(.*)/s, 2) as [string, string]));
    const session = {
      id,
      user: fields.get('Name') ?? '',
      isRemote: fields.get('Remote') === 'yes',
      since: fields.get('Timestamp') ?? '',
    };
    found.push({ session, class: fields.get('Class') ?? 'user' });
  }
  return found;
}

/** Sessions of this boot by the journal: one that was short has ended before anybody looked. */
async function sessionsSinceBoot(run: RunCommand): Promise<ClassifiedSession[]> {
  const { code, stdout } = await run([
    'journalctl',
    '-b',
    '-o',
    'json',
    '-n',
    String(MOST_LOGINS),
    '-u',
    'systemd-logind.service',
    `MESSAGE_ID=${NEW_SESSION_MESSAGE}`,
  ]);
  if (code !== 0) return [];
  return stdout
    .split('\n')
    .filter(line => line.startsWith('{'))
    .map(line => JSON.parse(line) as Record<string, string | undefined>)
    .map(entry => ({
      session: {
        id: entry['SESSION_ID'] ?? '',
        user: entry['USER_ID'] ?? '',
        isRemote: true,
        since: new Date(Number(entry['__REALTIME_TIMESTAMP'] ?? 0) / 1000).toISOString(),
      },
      // Older ones do not say; what runs in the background they do not tell of.
      class: entry['CLASS'] ?? 'user',
    }));
}
