import type { HostFiles } from '../../host/port.ts';
import type { MachineConfig } from '../../machine-config-api/machine-config.ts';

/** The config this node is in, or is about to be in (spec 60, section 2). Storing it is the commit of an update. */
export const CURRENT_CONFIG_FILE = '/etc/machine-config-daemon/currentconfig';
/** The layered image, an empty text where there is none. */
export const CURRENT_IMAGE_FILE = '/etc/machine-config-daemon/currentimage';
const LARGEST_CONFIG_BYTES = 16 * 1024 * 1024;
const LARGEST_IMAGE_BYTES = 64 * 1024;

export interface StoredState {
  readonly config: MachineConfig;
  readonly image: string;
}

/** What is stored on the node; undefined where nothing has been. Throws when it cannot be read. */
export async function readStored(host: { readonly files: HostFiles }): Promise<StoredState | undefined> {
  const text = await host.files.read(CURRENT_CONFIG_FILE, LARGEST_CONFIG_BYTES);
  if (text === undefined) return undefined;
  const image = await host.files.read(CURRENT_IMAGE_FILE, LARGEST_IMAGE_BYTES);
  return { config: parsed(text), image: image?.toString('utf8').trim() ?? '' };
}

/** Stores what the node is in from now on; the config last, for it is what counts. */
export async function store(host: { readonly files: HostFiles }, config: MachineConfig, image: string): Promise<void> {
  await host.files.write(CURRENT_IMAGE_FILE, Buffer.from(image), { mode: 0o644 });
  await host.files.write(CURRENT_CONFIG_FILE, Buffer.from(JSON.stringify(config)), { mode: 0o644 });
}

function parsed(text: Buffer): MachineConfig {
  try {
    return JSON.parse(text.toString('utf8')) as MachineConfig;
  } catch (error) {
    throw new Error(`${CURRENT_CONFIG_FILE}: expected the JSON of a MachineConfig`, { cause: error });
  }
}
