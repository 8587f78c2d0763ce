/** The images of a control plane, as containerd keeps them: made and taken in once, then linked into every machine. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { findExecutable, searchPath } from '../../../src/local/programs.ts';
import { builtProgramsDirectory } from '../../../src/local/real/built-programs.ts';
import type { Binaries } from '../../cluster/binaries.ts';
import { type ImageContent, writeImage } from '../../tools/container-image.ts';
import { PATIENCE_MS } from '../../tools/eventually.ts';

export interface RigImages {
  /** Name of the image that holds a pod together. */
  readonly pause: string;
  /** A directory of containerd; `linkImages` makes more of them. */
  readonly store: string;
}

const run = promisify(execFile);

/** Bump it when the way they are made changes. */
const RECIPE = 1;
/** Arguments: root directory of a machine, directory of containerd, directory of image files. */
const TAKE_IN = `
  mount --bind "$2" "$1/mnt"
  mount --bind "$3" "$1/media"
  mount -t tmpfs tmpfs "$1/run"
  mount -t tmpfs tmpfs "$1/tmp"
  mount --rbind /dev "$1/dev"
  mount -t proc proc "$1/proc"
  exec chroot "$1" sh -euc '
    containerd --root /mnt >/tmp/log 2>&1 &
    containerd=$!
    tries=0
    until ctr version >/dev/null 2>&1; do
      tries=$((tries + 1))
      if [ $tries -gt 600 ]; then cat /tmp/log >&2; exit 1; fi
      sleep 0.1
    done
    for file in /media/*; do ctr -n k8s.io images import "$file" >/dev/null; done
    kill $containerd
    wait $containerd || :
  '
`;
/** What containerd writes to must not be shared. */
const LINK = `
  cp -al "$1/." "$2" 2>/dev/null || { rm -rf "$2"; cp -a "$1/." "$2"; }
  cd "$1"
  find . -name '*.db' -exec cp --remove-destination {} "$2/{}" ';'
`;

/** Those that kubeadm wants (`kubeadm config images list`), made of our own programs; `root` has a containerd that takes them in. */
export async function rigImages(root: string, wanted: readonly string[], binaries: Binaries): Promise<RigImages> {
  const contents: Readonly<Record<string, ImageContent>> = {
    'kube-apiserver': { programs: [binaries['kube-apiserver']] },
    'kube-controller-manager': { programs: [binaries['kube-controller-manager']] },
    'kube-scheduler': { programs: [binaries['kube-scheduler']] },
    etcd: { programs: [binaries.etcd] },
    pause: { programs: [findExecutable('sleep', searchPath()) ?? '/bin/sleep'], args: ['infinity'] },
  };
  const images = Object.entries(contents).map(([program, content]) => {
    const name = wanted.find(image => basename(image).startsWith(`${program}:`));
    if (name === undefined) throw new Error(`expected an image for ${program}, found ${wanted.join(', ')}`);
    return { program, name, content };
  });
  const made = images.map(({ name, content }) => [name, content, content.programs.map(path => statSync(path).mtimeMs)]);
  const recipe = createHash('sha256')
    .update(JSON.stringify([RECIPE, root, made]))
    .digest('hex');
  const store = join(dirname(builtProgramsDirectory()), `images-${recipe.slice(0, 12)}`);
  const pause = images.find(({ program }) => program === 'pause')?.name ?? '';
  if (existsSync(store)) return { pause, store };

  mkdirSync(dirname(store), { recursive: true });
  const half = mkdtempSync(`${store}.half-`);
  try {
    const [kept, files] = ['kept', 'files'].map(name => join(half, name)) as [string, string];
    for (const dir of [kept, files]) mkdirSync(dir);
    for (const { program, name, content } of images) writeImage(join(files, program), name, content);
    const apart = ['--mount', '--propagation', 'private', '--pid', '--fork', '--kill-child', '--mount-proc'];
    const shell = ['unshare', ...apart, 'sh', '-euc', TAKE_IN, 'sh', root, kept, files];
    await run('setpriv', ['--pdeathsig', 'SIGKILL', ...shell], { timeout: PATIENCE_MS });
    // Somebody else may have been faster.
    if (!existsSync(store)) renameSync(kept, store);
  } finally {
    rmSync(half, { recursive: true, force: true });
  }
  return { pause, store };
}

/** Gives a machine a directory of containerd with the images in it. */
export async function linkImages({ store }: RigImages, dir: string): Promise<void> {
  await run('sh', ['-euc', LINK, 'sh', store, dir], { timeout: PATIENCE_MS });
}
