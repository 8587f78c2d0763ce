import { knownWord } from '../run-case.ts';
import assert from 'node:assert/strict';
import { updatePasswords } from '../../../src/daemon/apply/password.ts';
import { mustMoveKeys, sshKeyFile, updateSshKeys } from '../../../src/daemon/apply/ssh-keys.ts';
import { memoryHost, observed } from '../../../src/host/memory.ts';
import { type OperatingSystem, operatingSystemOf } from '../../../src/host/os-release.ts';
import { type Adapter, type Json, onlyMembers } from './case.ts';

const SYSTEMS: Record<string, string> = {
  rhcos8: 'ID=rhcos\nRHEL_VERSION=8.6\n',
  rhcos9: 'ID=rhcos\nRHEL_VERSION=9.2\n',
  scos9: 'ID=scos\nPLATFORM_ID=platform:el9\n',
  scos: 'ID=scos\nPLATFORM_ID=platform:el9\n',
  fcos: 'ID=fedora\nVARIANT_ID=coreos\nVERSION_ID=39\n',
  rhcos: 'ID=rhcos\nRHEL_VERSION=9.2\n',
};

/** A system by the name the vectors give it. */
export function systemOf(name: string): OperatingSystem {
  const release = SYSTEMS[name];
  assert.ok(release, `no os-release for ${name}`);
  return operatingSystemOf(release);
}

const SSH = '/home/core/.ssh';
const octal = (mode: number | undefined) => `0${mode?.toString(8)}`;

export const userAdapters: Record<string, Adapter> = {
  async 'ssh-keys'(given, expected) {
    onlyMembers(given, ['os', 'oldUsers', 'newUsers', 'legacyFileExists', 'fragments', 'sshDirOwner', 'authorizedKeysDirMissing', 'coreUserExists']);
    onlyMembers(expected, ['file', 'content', 'mode', 'owner', 'dirMode', 'removed', 'recreatedAs', 'commands', 'perms', 'reboot', 'state']);
    const base = memoryHost();
    if (given.coreUserExists !== false) await base.accounts.addUser('core', []);
    const core = (await base.accounts.uid('core')) ?? 1000;
    const owner = given.sshDirOwner === 'root' ? { uid: 0, gid: 0 } : { uid: core, gid: core };
    if (given.legacyFileExists || given.sshDirOwner || given.fragments) await base.files.makeDirectory(SSH, 0o700, owner);
    if (given.legacyFileExists) await base.files.write(`${SSH}/authorized_keys`, Buffer.from('x'));
    for (const name of given.fragments ?? []) {
      await base.files.makeDirectory(`${SSH}/authorized_keys.d`, 0o700, owner);
      await base.files.write(`${SSH}/authorized_keys.d/${name}`, Buffer.from('x'));
    }
    if (given.authorizedKeysDirMissing !== undefined)
      assert.equal((await base.files.stat(`${SSH}/authorized_keys.d`)) === undefined, given.authorizedKeysDirMissing);
    const [removed, commands]: [string[], string[]] = [[], []];
    const host = observed(base, ({ name, args }) => {
      if (name === 'files.removeTree' || name === 'files.remove') removed.push(String(args[0]));
      if (name === 'accounts.setPasswordHash') commands.push(`usermod -p "${String(args[1])}" ${String(args[0])}`);
    });
    await updateSshKeys(host, systemOf(given.os), given.oldUsers ?? [], given.newUsers);
    const stat = (path: string) => base.files.stat(path);
    if (expected.file === null) assert.equal(await stat(sshKeyFile(systemOf(given.os))), undefined);
    else if (expected.file !== undefined) assert.equal((await stat(expected.file))?.kind, 'file');
    if (expected.content !== undefined) assert.equal((await base.files.read(expected.file))?.toString(), expected.content);
    if (expected.mode !== undefined) assert.equal(octal((await stat(expected.file))?.mode), expected.mode);
    if (expected.owner !== undefined) assert.equal((await stat(expected.file))?.uid, core);
    if (expected.dirMode !== undefined) assert.equal(octal((await stat(`${SSH}/authorized_keys.d`))?.mode), expected.dirMode);
    if (expected.removed !== undefined) assert.deepEqual(removed, expected.removed);
    if (expected.recreatedAs !== undefined) assert.deepEqual([(await stat(SSH))?.uid, (await stat(SSH))?.mode], [core, 0o700]);
    if (expected.commands !== undefined) assert.deepEqual(commands, expected.commands);
    for (const [path, perms] of Object.entries<string>(expected.perms ?? {})) {
      const found = await stat(path);
      assert.deepEqual([found?.uid, found?.gid], [core, core]);
      assert.equal(`core core ${found?.mode.toString(8)}`, perms);
    }
    if (expected.reboot === false) assert.deepEqual(base.asked, []);
    // Keys are no reason for a reboot: the update they came with ends here.
    knownWord(expected.state, undefined, 'Done');
  },

  'ssh-key-migration'(given, expected) {
    onlyMembers(given, ['newPathOS', 'legacyFileExists', 'fragmentExists']);
    onlyMembers(expected, ['migrate']);
    assert.equal(mustMoveKeys(given.newPathOS, given.legacyFileExists, given.fragmentExists), expected.migrate);
  },

  async 'password-hash'(given, expected) {
    onlyMembers(given, ['oldUsers', 'newUsers']);
    onlyMembers(expected, ['commands']);
    const base = memoryHost();
    for (const { name } of [...(given.oldUsers ?? []), ...(given.newUsers ?? [])] as Json[]) await base.accounts.addUser(name, []);
    const commands: string[] = [];
    const host = observed(base, ({ name, args }) => {
      if (name === 'accounts.setPasswordHash') commands.push(`usermod -p ${String(args[1])} ${String(args[0])}`);
    });
    await updatePasswords(host, given.oldUsers ?? [], given.newUsers ?? []);
    assert.deepEqual(commands, expected.commands.map((command: string) => command.replaceAll('"', '')));
  },
};
