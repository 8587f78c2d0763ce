import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';

export interface ImageContent {
  /** Programs of this machine; they come into `/bin`, with the libraries that they need. */
  readonly programs: readonly string[];
  /** Folders of this machine: path there, path here. */
  readonly folders?: Readonly<Record<string, string>>;
  /** What it always begins with; else that is the first program. */
  readonly entrypoint?: readonly string[];
  /** What follows, or what the first program is given. */
  readonly args?: readonly string[];
}

/** Writes a container image with a root file system of our own, as `ctr images import` takes it. */
export function writeImage(path: string, name: string, content: ImageContent): void {
  const { programs, folders = {}, entrypoint, args = [] } = content;
  const work = mkdtempSync(join(tmpdir(), 'rotunda-image-'));
  try {
    const root = join(work, 'root');
    for (const program of programs) {
      copyInto(root, program, join('/bin', basename(program)));
      for (const library of librariesOf(program)) copyInto(root, library, library);
    }
    for (const [there, here] of Object.entries(folders)) cpSync(here, join(root, there), { recursive: true });
    execFileSync('tar', ['-C', root, '-cf', join(work, 'layer.tar'), '.']);
    const layout = join(work, 'layout');
    mkdirSync(join(layout, 'blobs/sha256'), { recursive: true });
    const add = (content: Buffer) => {
      const hash = createHash('sha256').update(content).digest('hex');
      writeFileSync(join(layout, 'blobs/sha256', hash), content);
      return { digest: `sha256:${hash}`, size: content.length };
    };
    const addJson = (value: object) => add(Buffer.from(JSON.stringify(value)));
    const oci = 'application/vnd.oci.image';
    const layer = { mediaType: `${oci}.layer.v1.tar`, ...add(readFileSync(join(work, 'layer.tar'))) };
    const begin =
      entrypoint === undefined
        ? { Cmd: [`/bin/${basename(programs[0] as string)}`, ...args] }
        : { Entrypoint: entrypoint, Cmd: args };
    const config = {
      architecture: process.arch === 'x64' ? 'amd64' : process.arch,
      os: 'linux',
      config: { ...begin, Env: ['PATH=/bin'] },
      rootfs: { type: 'layers', diff_ids: [layer.digest] },
    };
    const manifest = addJson({
      schemaVersion: 2,
      mediaType: `${oci}.manifest.v1+json`,
      config: { mediaType: `${oci}.config.v1+json`, ...addJson(config) },
      layers: [layer],
    });
    const annotations = { 'io.containerd.image.name': name, 'org.opencontainers.image.ref.name': name };
    const manifests = [{ mediaType: `${oci}.manifest.v1+json`, ...manifest, annotations }];
    writeFileSync(join(layout, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests }));
    writeFileSync(join(layout, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}');
    execFileSync('tar', ['-C', layout, '-cf', path, '.']);
  } finally {
    rmSync(work, { recursive: true });
  }
}

function copyInto(root: string, from: string, to: string): void {
  mkdirSync(join(root, dirname(to)), { recursive: true });
  copyFileSync(realpathSync(from), join(root, to));
}

/** The loader and the libraries a program asks for; none where it needs none. */
function librariesOf(program: string): string[] {
  let text: string;
  try {
    text = execFileSync('ldd', [program], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  } catch {
    return [];
  }
  return [...text.matchAll(/(\/\S+) \(0x/g)].map(([, path]) => path as string);
}
