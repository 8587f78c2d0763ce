import type { HostFiles } from '../../host/port.ts';
import type { ImageRegistryBundle } from '../../machine-config-api/controller-config.ts';
import { isBlank } from './bundle.ts';
import { CA_MODE, LARGEST_FILE_BYTES, REGISTRY_CAS } from './paths.ts';
import { attempt, type CertificateProblem, InputError } from './problem.ts';

/** The CAs of registries by the directory each belongs in. */
export interface RegistryCas {
  readonly wanted: ReadonlyMap<string, Buffer>;
  /** Entries that cannot be carried out, said in words. */
  readonly invalid: readonly InputError[];
}

/** The CAs of both lists; those of the user win (spec 60, 4.6.4). */
export function decideRegistryCas(
  platform: readonly ImageRegistryBundle[],
  user: readonly ImageRegistryBundle[],
): RegistryCas {
  const wanted = new Map<string, Buffer>();
  const invalid: InputError[] = [];
  for (const { file, data } of [...platform, ...user]) {
    const name = directoryOf(file);
    if (isDirectoryName(name)) wanted.set(name, Buffer.from(data ?? '', 'base64'));
    else {
      const text = JSON.stringify(file.slice(0, LONGEST_NAME));
      invalid.push(new InputError('InvalidRegistryName', `expected the name of a registry, found ${text}`));
    }
  }
  return { wanted, invalid };
}

/** The directory of a registry: two dots stand for the colon before its port. */
export function directoryOf(file: string): string {
  return file.replaceAll('..', ':');
}

/** The paths of the CAs, ascending. */
export function registryCaPaths({ wanted }: RegistryCas): string[] {
  return [...wanted.keys()].sort().map(pathOf);
}

/**
 * Brings `certs.d` into the wanted state: first everything that belongs there, then away with the directories of registries
 * that are no longer listed, by the name they have on disk (D-3, D-4). Files beside them are left alone. One registry that
 * fails does not hold back the others. Gives the paths written and the directories removed.
 */
export async function ensureRegistryCas(
  files: HostFiles,
  { wanted, invalid }: RegistryCas,
  problems: CertificateProblem[],
): Promise<{ written: string[]; removed: string[] }> {
  const [written, removed]: [string[], string[]] = [[], []];
  const one = (work: () => Promise<void>) => attempt('registry-ca', problems, work);
  for (const error of invalid) await one(() => Promise.reject(error));
  for (const [name, data] of wanted) {
    await one(async () => {
      if (isBlank(data))
        throw new InputError('EmptyTrustBundle', `the CA of registry ${name} is empty; nothing was written`);
      if (await ensureCa(files, pathOf(name), data)) written.push(pathOf(name));
    });
  }
  for (const name of await present(files, problems)) {
    if (wanted.has(name)) continue;
    await one(async () => {
      const path = `${REGISTRY_CAS}/${name}`;
      if ((await files.stat(path))?.kind !== 'directory') return;
      await files.removeTree(path);
      removed.push(name);
    });
  }
  return { written, removed };
}

/** Most file systems take no longer name. */
const LONGEST_NAME = 255;

/** `..` has been replaced before, so that only `.` is special. */
function isDirectoryName(name: string): boolean {
  // oxlint-disable-next-line no-control-regex -- names with line feeds and the like are refused
  return name !== '' && name !== '.' && Buffer.byteLength(name) <= LONGEST_NAME && !/[/\u0000-\u001f\u007f]/.test(name);
}

function pathOf(name: string): string {
  return `${REGISTRY_CAS}/${name}/ca.crt`;
}

async function ensureCa(files: HostFiles, path: string, data: Buffer): Promise<boolean> {
  const current = await files.read(path, LARGEST_FILE_BYTES);
  const isSame = current !== undefined && data.equals(current) && (await files.stat(path))?.mode === CA_MODE;
  if (!isSame) await files.write(path, data, { mode: CA_MODE, takesOver: true });
  return !isSame;
}

async function present(files: HostFiles, problems: CertificateProblem[]): Promise<string[]> {
  return (await attempt('registry-ca', problems, () => files.list(REGISTRY_CAS))) ?? [];
}
