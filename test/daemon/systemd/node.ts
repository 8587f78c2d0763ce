import { existsSync, readFileSync } from 'node:fs';
import { validateDisk } from '../../../src/daemon/decide/disk-validation.ts';
import { rootedFiles } from '../../../src/host/directory-disk.ts';
import { linuxHost } from '../../../src/host/linux.ts';
import type { Kube } from '../../../src/kube/port.ts';
import { NODES } from '../../../src/kube/resource.ts';
import type { MachineConfig } from '../../../src/machine-config-api/machine-config.ts';
import { CURRENT_CONFIG, DAEMON_STATE } from '../../../src/machine-config-api/names.ts';
import { readConfig } from '../../../src/machine-config-api/reconciliation.ts';
import { eventually } from '../../tools/eventually.ts';
import type { Machine } from '../../tools/nspawn.ts';

const AGENT = 'machine-config-daemon.service';
const SHOWN_LOG = 4000;

/** A node that is a machine with systemd and the agent on it. */
export class SystemdNode {
  readonly machine: Machine;
  readonly #kube: Kube;

  constructor(machine: Machine, kube: Kube) {
    this.machine = machine;
    this.#kube = kube;
  }

  get name(): string {
    return this.machine.name;
  }

  async annotations(): Promise<Record<string, string>> {
    return (await this.#kube.get(NODES, { name: this.name })).metadata?.annotations ?? {};
  }

  /** Waits until the node says that it is in the config. */
  async isDone({ metadata }: MachineConfig): Promise<void> {
    await this.until(`${this.name} is done with ${metadata?.name}`, async () => {
      const annotations = await this.annotations();
      return annotations[CURRENT_CONFIG] === metadata?.name && annotations[DAEMON_STATE] === 'Done';
    });
  }

  /** Waits for a condition; a machine that is gone, or too slow, is told of with its log. */
  async until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
    const { machine } = this;
    try {
      await eventually(what, () => {
        if (machine.ended !== undefined) throw new Error(machine.ended);
        return isSo();
      });
    } catch (error) {
      const log = await this.log().catch((failure: Error) => failure.message);
      const now = JSON.stringify(await this.annotations(), null, 1);
      throw new Error(`${(error as Error).message}\n${now}\n${log.slice(-SHOWN_LOG)}`, { cause: error });
    }
  }

  /** How the disk is not what a config says; undefined: it is. */
  async drift(config: MachineConfig): Promise<string | undefined> {
    const { machine } = this;
    const host = await linuxHost({ run: argv => machine.run(argv), files: rootedFiles(machine.root) });
    const sshKeysPath = '/home/core/.ssh/authorized_keys';
    const found = await validateDisk(readConfig(config).ignition, host, { sshKeysPath });
    return found?.message;
  }

  /** What the agent has logged since the machine was booted. */
  log(): Promise<string> {
    return this.machine.output('journalctl', '-b', '-o', 'cat', '--no-pager', '-u', AGENT);
  }

  async stopAgent(): Promise<void> {
    await this.machine.output('systemctl', 'stop', AGENT);
  }

  async startAgent(): Promise<void> {
    await this.machine.output('systemctl', 'start', AGENT);
  }

  /** A property of a unit, as systemd has it. */
  property(unit: string, name: string): Promise<string> {
    return this.machine.output('systemctl', 'show', '--value', '-p', name, '--', unit);
  }

  bootId(): Promise<string> {
    return this.machine.output('cat', '/proc/sys/kernel/random/boot_id');
  }

  /** A file of the machine, empty where there is none. */
  read(path: string): string {
    const at = this.machine.root + path;
    return existsSync(at) ? readFileSync(at, 'utf8') : '';
  }
}
