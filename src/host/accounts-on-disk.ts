import { type HostAccounts, HostError, type HostFiles } from './port.ts';

const PASSWD = ['/etc/passwd', '/usr/lib/passwd'];
const GROUP = ['/etc/group', '/usr/lib/group'];
const SHADOW = '/etc/shadow';
const FIRST_USER_ID = 1000;
const NAME = /^[a-z_][a-z0-9_-]{0,31}$/;
const LARGEST_BYTES = 4 * 1024 * 1024;

/** The accounts of a host that is only a root directory, in its files. */
export function accountsOnDisk(files: HostFiles): HostAccounts {
  async function lines(path: string): Promise<string[]> {
    const text = (await files.read(path, LARGEST_BYTES))?.toString('utf8') ?? '';
    return text.split('\n').filter(line => line !== '');
  }

  async function idIn(paths: readonly string[], name: string): Promise<number | undefined> {
    for (const path of paths) {
      const fields = (await lines(path)).map(line => line.split(':')).find(([first]) => first === name);
      const id = Number(fields?.[2] || Number.NaN);
      if (Number.isInteger(id)) return id;
    }
    return name === 'root' ? 0 : undefined;
  }

  async function append(path: string, line: string, mode: number): Promise<void> {
    await files.write(path, Buffer.from(`${[...(await lines(path)), line].join('\n')}\n`), { mode });
  }

  return {
    uid: user => idIn(PASSWD, user),
    gid: group => idIn(GROUP, group),
    async addUser(user, groups) {
      requireName(user);
      if ((await idIn(PASSWD, user)) !== undefined) return;
      const taken = [...(await lines('/etc/passwd')), ...(await lines('/etc/group'))].map(line =>
        Number(line.split(':')[2]),
      );
      const id = Math.max(FIRST_USER_ID - 1, ...taken.filter(other => other >= FIRST_USER_ID && other < 60_000)) + 1;
      await append('/etc/group', `${user}:x:${id}:`, 0o644);
      await append(SHADOW, `${user}:*:19000:0:99999:7:::`, 0o600);
      await append('/etc/passwd', `${user}:x:${id}:${id}::/home/${user}:/bin/bash`, 0o644);
      await joinGroups(user, groups);
      await files.makeDirectory(`/home/${user}`, 0o700, { uid: id, gid: id });
    },
    async passwordHash(user) {
      return (await lines(SHADOW)).find(line => line.startsWith(`${user}:`))?.split(':')[1];
    },
    async setPasswordHash(user, hash) {
      requireName(user);
      if (/[:\n]/.test(hash)) throw new HostError('command', `the password hash of ${user} is not well-formed`);
      if ((await idIn(PASSWD, user)) === undefined) throw new HostError('command', `user ${user} does not exist`);
      const before = await lines(SHADOW);
      const fields = before.find(line => line.startsWith(`${user}:`))?.split(':') ?? [
        user,
        '',
        '',
        '',
        '',
        '',
        '',
        '',
        '',
      ];
      const line = [user, hash, ...fields.slice(2)].join(':');
      const after = [...before.filter(other => !other.startsWith(`${user}:`)), line];
      if (before.includes(line)) return;
      await files.write(SHADOW, Buffer.from(`${after.join('\n')}\n`), { mode: 0o600 });
    },
  };

  async function joinGroups(user: string, groups: readonly string[]): Promise<void> {
    if (groups.length === 0) return;
    const after = (await lines('/etc/group')).map(line => {
      const [name = '', password = '', id = '', members = ''] = line.split(':');
      const joined = groups.includes(name)
        ? [...members.split(',').filter(member => member !== ''), user].join(',')
        : members;
      return [name, password, id, joined].join(':');
    });
    await files.write('/etc/group', Buffer.from(`${after.join('\n')}\n`));
  }
}

function requireName(user: string): void {
  if (!NAME.test(user)) throw new HostError('command', `${JSON.stringify(user)} is no name of a user`);
}
