import type { HostFiles } from '../../host/port.ts';
import {
  DockerConfigError,
  encodeDockerConfigJson,
  parseDockerConfig,
  type RegistryAuth,
  type RegistryAuths,
} from '../../machine-config-api/docker-config.ts';
import { DOCKER_CFG_KEY, DOCKER_CONFIG_JSON_KEY } from '../../machine-config-api/names.ts';
import { endingInLineFeed, isBlank } from './bundle.ts';
import {
  CLUSTER_PULL_SECRET,
  LARGEST_FILE_BYTES,
  MOUNTED_PULL_SECRETS,
  OS_PULL_SECRET,
  OSTREE_AUTH,
  SECRET_MODE,
} from './paths.ts';
import { InputError } from './problem.ts';

const ROLE_PREFIX = 'node-role.kubernetes.io/';

/** The roles of a node by its labels, ascending (D-34). */
export function rolesOf(labels: Readonly<Record<string, string>>): string[] {
  const names = Object.keys(labels).filter(name => name.startsWith(ROLE_PREFIX));
  return names.map(name => name.slice(ROLE_PREFIX.length)).sort();
}

/**
 * The credentials for pulling OS images: those of ControllerConfig byte for byte, or overlaid by the mounted ones, registry by
 * registry (spec 60, 4.9). Nothing in ControllerConfig means no entries (D-12). Throws `InputError`, which quotes nothing.
 */
export function mergePullSecret(internal: Uint8Array, mounted: Uint8Array | undefined): Buffer {
  if (mounted === undefined) return Buffer.from(internal);
  const none = Object.create(null) as Record<string, RegistryAuth>;
  const base = isBlank(internal) ? {} : entriesOf('ControllerConfig', internal);
  const auths = Object.assign(none, base, entriesOf('the mounted Secret', mounted));
  return Buffer.from(encodeDockerConfigJson(auths));
}

/** The mounted Secret of the first role that has one; the modern form goes first (spec 60, 4.9.3). */
export async function mountedPullSecret(files: HostFiles, roles: readonly string[]): Promise<Buffer | undefined> {
  if ((await files.list(MOUNTED_PULL_SECRETS)) === undefined) return undefined;
  for (const key of [DOCKER_CONFIG_JSON_KEY, DOCKER_CFG_KEY]) {
    for (const role of roles.filter(isPoolName)) {
      const secret = await files.read(`${MOUNTED_PULL_SECRETS}/${role}/${key}`, LARGEST_FILE_BYTES);
      if (secret !== undefined) return secret;
    }
  }
  return undefined;
}

export interface PullSecretInputs {
  readonly labels: Readonly<Record<string, string>>;
  /** `internalRegistryPullSecret`, decoded. */
  readonly internal: Uint8Array;
}

/** What should be in the file. Throws `InputError` where the node has no role, or a secret cannot be read. */
export async function osPullSecret(files: HostFiles, { labels, internal }: PullSecretInputs): Promise<Buffer> {
  const roles = rolesOf(labels);
  if (roles.length === 0) {
    throw new InputError('InvalidPullSecret', `expected a label ${ROLE_PREFIX}<role> on the node, found none`);
  }
  return mergePullSecret(internal, await mountedPullSecret(files, roles));
}

/** Keeps the file with credentials for OS images, for its owner's eyes only (D-7), and the link to it. One caller at a time. */
export class OsPullSecret {
  readonly #files: HostFiles;
  #last: Promise<unknown> = Promise.resolve();

  constructor(files: HostFiles) {
    this.#files = files;
  }

  /** Says whether the file was written. Throws `InputError` or `HostError`; the file that is there stays then. */
  sync(inputs: PullSecretInputs): Promise<boolean> {
    const turn = this.#last.then(() => this.#sync(inputs));
    this.#last = turn.catch(() => {});
    return turn;
  }

  async #sync(inputs: PullSecretInputs): Promise<boolean> {
    const files = this.#files;
    const isNothing = isBlank(inputs.internal) && (await files.list(MOUNTED_PULL_SECRETS)) === undefined;
    const secret = isNothing ? inputs.internal : await osPullSecret(files, inputs);
    return isBlank(secret) ? this.#forget() : ensureSecret(files, OS_PULL_SECRET, endingInLineFeed(secret));
  }

  /** The last credential was revoked. ControllerConfig keeps one whose source cannot be read, so nothing there means nothing. */
  async #forget(): Promise<boolean> {
    const current = await this.#files.read(OS_PULL_SECRET, LARGEST_FILE_BYTES);
    if (current === undefined || isBlank(current)) return false;
    return ensureSecret(this.#files, OS_PULL_SECRET, Buffer.from('\n'));
  }
}

/**
 * Points rpm-ostree to the merged credentials where they are usable, else to those of the cluster (spec 60, 4.9.7): at the
 * start and before each rebase. Says whether the link was changed.
 */
export async function linkOsTreeAuth(files: HostFiles): Promise<boolean> {
  const merged = await files.read(OS_PULL_SECRET, LARGEST_FILE_BYTES).catch(() => undefined);
  const target = merged !== undefined && isJson(merged) ? OS_PULL_SECRET : CLUSTER_PULL_SECRET;
  if ((await files.readLink(OSTREE_AUTH)) === target) return false;
  await files.symlink(target, OSTREE_AUTH);
  return true;
}

/** Writes a file that only its owner may read, unless it is there like that. */
export async function ensureSecret(files: HostFiles, path: string, content: Buffer): Promise<boolean> {
  const current = await files.read(path, LARGEST_FILE_BYTES);
  const isSame = current !== undefined && content.equals(current) && (await files.stat(path))?.mode === SECRET_MODE;
  if (!isSame) await files.write(path, content, { mode: SECRET_MODE, takesOver: true });
  return !isSame;
}

/** A label's name may hold anything; what is no name of a pool is no directory of ours either. */
function isPoolName(role: string): boolean {
  return /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/i.test(role);
}

function entriesOf(where: string, bytes: Uint8Array): RegistryAuths {
  try {
    return parseDockerConfig(Buffer.from(bytes).toString('utf8'));
  } catch (error) {
    if (!(error instanceof DockerConfigError)) throw error;
    throw new InputError('InvalidPullSecret', `pull secret of ${where}: ${error.message}`);
  }
}

function isJson(bytes: Buffer): boolean {
  try {
    JSON.parse(bytes.toString('utf8'));
    return true;
  } catch {
    return false;
  }
}
