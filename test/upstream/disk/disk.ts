import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { validateDisk } from '../../../src/daemon/decide/disk-validation.ts';
import { rootedFiles } from '../../../src/host/directory-disk.ts';
import { contentsOf } from '../../../src/machine-config-api/ignition/contents.ts';
import { readIgnition } from '../../../src/machine-config-api/ignition/read.ts';
import { clone, plain, unlike } from '../difference.ts';
import { file, type Part, unit } from '../ignition/documents.ts';
import { type Judged, judged } from '../judged.ts';
import { distinct, type Random } from '../random.ts';

/** What is at a path: bytes in base64, a directory, or a link. */
interface Entry {
  path: string;
  mode?: number;
  bytes?: string;
  /** A target below the root of the node begins with a slash and `etc`. */
  target?: string;
}

interface Input {
  config: Part & { storage: { files: Part[] } };
  entries: Entry[];
}

const UNIT_DIRECTORY = '/etc/systemd/system';

/** Whether a node's disk is as its config says. */
export const DISK: Judged = judged<Input>({
  name: 'disk validation',
  program: 'mcodiff',
  op: 'ondisk',
  generate: r => {
    const files = distinct(
      r.list(3, () => file(r, 0)).map(part => onDiskFile(r, part)),
      ({ path }) => path,
    );
    const units = distinct(
      r.list(3, () => onDiskUnit(unit(r, 0))),
      ({ name }) => name,
    );
    const config = { ignition: { version: r.pick(['3.2.0', '3.4.0']) }, storage: { files }, systemd: { units } };
    return { config, entries: layout(r, files, units) };
  },
  question: ({ config, entries }, folder) => {
    layOut(folder, entries);
    const theirs = clone(config);
    for (const part of theirs.storage.files) part.path = folder + String(part.path);
    return { MC: { metadata: { name: 'x' }, spec: { config: theirs } }, Systemd: folder + UNIT_DIRECTORY };
  },
  compare: async ({ config, entries }, { out, err }, { folder }) => {
    layOut(folder, entries);
    const theirs = err ?? String(out).replace(/^state validation: /, '');
    const mine = await drift(config, folder);
    return unlike(`"${plain(mine)}", theirs "${plain(theirs)}"`, kindOf(mine), kindOf(theirs));
  },
});

/** What is wrong, without where: the beginning of the text, or the word that tells. */
const kindOf = (text: string): string => /Append is not supported/.exec(text)?.[0] ?? plain(text).slice(0, 18);

async function drift(config: Part, folder: string): Promise<string> {
  try {
    const read = readIgnition(config, { isStored: true }) ?? { ignition: { version: '3.4.0' } };
    const services = { isEnabled: async () => 'enabled' };
    const found = await validateDisk(read, { files: rootedFiles(folder), services } as Parameters<
      typeof validateDisk
    >[1]);
    return found?.message ?? '';
  } catch {
    return 'failed to parse Ignition';
  }
}

/** Only what can be on a disk without a network. The certificates of the cluster are written by another part of the agent. */
function onDiskFile(r: Random, part: Part): Part & { contents?: { source?: string; compression?: string } } {
  const { append, contents, path, mode, ...rest } = part as Part & {
    contents?: { source?: string; compression?: string };
  };
  const source = contents?.source?.startsWith('http') ? 'data:,local' : contents?.source;
  const isCompressed = contents?.compression === 'gzip' && source?.includes('H4s');
  return {
    path: path === '/etc/kubernetes/kubelet-ca.crt' ? '/etc/e' : path,
    ...rest,
    // Only root could read a file that nobody may.
    ...(mode !== undefined && { mode: mode === 0 ? 0o640 : mode }),
    ...(contents !== undefined && {
      contents: { ...(source !== undefined && { source }), ...(isCompressed && { compression: 'gzip' }) },
    }),
    ...(append !== undefined && r.chance(0.05) && { append }),
  };
}

function onDiskUnit({ enabled: _enabled, dropins, ...rest }: Part): Part {
  return {
    ...rest,
    ...(dropins !== undefined && { dropins: distinct(dropins as Part[], ({ name }) => name) }),
  };
}

/** What the config asks for; on one node in two with something else here and there. */
function layout(r: Random, files: readonly ReturnType<typeof onDiskFile>[], units: readonly Part[]): Entry[] {
  const odd = r.chance(0.5) ? 0 : 0.2;
  const text = (content: unknown) => Buffer.from(typeof content === 'string' ? content : '');
  const put = (path: string, bytes: Buffer, mode: number): Entry[] =>
    r.chance(odd) ? spoilt(r, path, bytes, mode) : [entry(path, bytes, mode)];
  const ofFiles = files.flatMap(({ path, contents, mode }) =>
    put(String(path), contentsOf(contents), Number(mode ?? 0o644)),
  );
  const ofUnits = units.flatMap(({ name, dropins, mask, contents }) => {
    const path = `${UNIT_DIRECTORY}/${String(name)}`;
    const ofDropins = ((dropins ?? []) as Part[])
      .filter(dropin => Boolean(dropin.contents) || r.chance(0.3))
      .flatMap(dropin => put(`${path}.d/${String(dropin.name)}`, text(dropin.contents), 0o644));
    if (mask && !r.chance(odd)) return [...ofDropins, { path, target: '/dev/null' }];
    return [...ofDropins, ...(contents || r.chance(0.2) ? put(path, text(contents), 0o644) : [])];
  });
  return [entry('/etc/real', text('real'), 0o644), ...ofFiles, ...ofUnits];
}

const entry = (path: string, bytes: Buffer, mode: number): Entry => ({ path, bytes: bytes.toString('base64'), mode });

function spoilt(r: Random, path: string, bytes: Buffer, mode: number): Entry[] {
  return r.pick<() => Entry[]>([
    () => [],
    () => [entry(path, Buffer.concat([bytes, Buffer.from('x')]), mode)],
    () => [entry(path, bytes, r.pick([0o600, 0o755, 0o4755, 0o1644]))],
    () => [{ path }],
    () => [{ path, target: r.pick(['/dev/null', 'nowhere', '/etc/real']) }],
    () => [entry(path, Buffer.alloc(0), mode)],
    () => [entry(path, bytes.subarray(0, -1), mode)],
  ])();
}

function layOut(root: string, entries: readonly Entry[]): void {
  for (const { path, bytes, mode, target } of entries) {
    const full = join(root, path);
    mkdirSync(dirname(full), { recursive: true });
    if (target !== undefined) symlinkSync(target.startsWith('/etc/') ? root + target : target, full);
    else if (bytes === undefined) mkdirSync(full, { recursive: true });
    else {
      writeFileSync(full, Buffer.from(bytes, 'base64'));
      chmodSync(full, mode ?? 0o644);
    }
  }
}
