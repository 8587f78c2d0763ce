import type { Host } from '../../host/port.ts';
import { LARGEST_FILE_BYTES } from './paths.ts';

/** Something about the running kubelet that is kept on disk: a reboot has started another one. */
export interface BootRecord {
  /** Empty where it cannot be read. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly isOfThisBoot: boolean;
}

/** Undefined where there is none. */
export async function readRecord(host: Host, path: string): Promise<BootRecord | undefined> {
  const bytes = await host.files.read(path, LARGEST_FILE_BYTES);
  if (bytes === undefined) return undefined;
  const { bootId, ...fields } = fieldsIn(bytes.toString('utf8'));
  return { fields, isOfThisBoot: bootId === undefined || bootId === (await host.bootId()) };
}

export async function writeRecord(host: Host, path: string, fields: BootRecord['fields']): Promise<void> {
  const content = JSON.stringify({ ...fields, bootId: await host.bootId() });
  await host.files.write(path, Buffer.from(`${content}\n`), { mode: 0o644 });
}

function fieldsIn(text: string): Record<string, unknown> {
  try {
    return (JSON.parse(text) as Record<string, unknown> | null) ?? {};
  } catch {
    return {};
  }
}
