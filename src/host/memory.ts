import { memoryFiles } from './memory-disk.ts';
import { type HostHooks, hostOnDisk } from './on-disk.ts';
import type { Host, HostOs, HostPackages } from './port.ts';

export interface MemoryHostOptions extends HostHooks {
  readonly os?: HostOs;
  /** Undefined on purpose: a machine without a package database. */
  readonly packages?: HostPackages | undefined;
  /** What its files go by; the time of this machine when absent. */
  readonly now?: (() => Date) | undefined;
}

/** A host in memory. `asked` lists what was asked of services, in order. */
export function memoryHost(options: MemoryHostOptions = {}): Host & { readonly asked: string[] } {
  const asked: string[] = [];
  const host = hostOnDisk({ ...options, files: memoryFiles(options.now), record: line => void asked.push(line) });
  return { ...host, asked };
}

/** One operation of a host that changes something, or asks something of a service or of the operating system. */
export interface HostOperation {
  /** Such as `files.write`. */
  readonly name: string;
  readonly args: readonly unknown[];
}

const READING = new Set([
  'bootId',
  'describe',
  'files.read',
  'files.stat',
  'files.modifiedAt',
  'files.readLink',
  'files.list',
  'files.watch',
  'accounts.uid',
  'accounts.gid',
  'accounts.passwordHash',
  'sessions.list',
  'sessions.watch',
  'services.isEnabled',
  'services.isActive',
  'os.booted',
  'os.kernelArguments',
  'os.finalizeFailure',
  'packages.owns',
]);

/** Whether an operation only looks. */
export function isReading({ name }: HostOperation): boolean {
  return READING.has(name);
}

/**
 * The same host, with `before` called ahead of every operation, reading ones included. What it throws is how the operation
 * fails: a test records, fails the n-th operation, or, by throwing from then on, lets the process die there.
 */
export function observed<H extends Host>(host: H, before: (operation: HostOperation) => Promise<void> | void): H {
  const observe = <T extends object>(part: T, partName: string): T => {
    const wrapped: Record<string, unknown> = {};
    for (const [name, member] of Object.entries(part)) {
      wrapped[name] =
        typeof member === 'function'
          ? async (...args: unknown[]) => {
              await before({ name: `${partName}${name}`, args });
              return (member as (...args: unknown[]) => unknown)(...args);
            }
          : member;
    }
    return wrapped as T;
  };
  const { files, services, os, accounts, sessions, packages } = host;
  return {
    ...observe(host, ''),
    files: observe(files, 'files.'),
    services: observe(services, 'services.'),
    os: os && observe(os, 'os.'),
    accounts: observe(accounts, 'accounts.'),
    sessions: observe(sessions, 'sessions.'),
    packages: packages && observe(packages, 'packages.'),
  };
}
