import {
  checkContainerRuntimeConfig,
  containerRuntimeFiles,
} from '../../../src/machine-config/container-runtime/render.ts';
import { storageConf } from '../../../src/machine-config/template/files/container-runtime.ts';
import { attempt, unlike, verdicts } from '../difference.ts';
import { judged } from '../judged.ts';
import type { Random } from '../random.ts';
import { readToml, textsOf } from './files.ts';

const QUANTITIES = [
  ...'8192 8193 8k 9k 10Ki 8Ki 0 -1 -5Gi 50m 100G 10Gi 1.5Gi 1e3 1E4 2E 0.5 +5Gi 3Ti 1e20 10GI abc'.split(' '),
  ...'.5Mi 5. 1Ei 12345678901234567890 16Ei 1e-3 100n 1u 7Kib'.split(' '),
  '',
  '5 Gi',
  8192,
  10000,
  0,
  -3,
];
const LOG_LEVELS = ['', 'debug', 'info', 'trace', 'fatal', 'Debug', 'x', 'warn', 'panic', 'error'];

/** A ContainerRuntimeConfig becomes the same files, or is refused by both. */
export const CONTAINER_RUNTIME = judged<{ CR: object }>({
  name: 'ContainerRuntimeConfig',
  program: 'mcodiff',
  op: 'ctr',
  generate: r => ({
    CR: {
      apiVersion: 'machineconfiguration.openshift.io/v1',
      kind: 'ContainerRuntimeConfig',
      metadata: { name: 'c' },
      spec: { ...(r.chance(0.98) && { containerRuntimeConfig: settings(r) }) },
    },
  }),
  question: input => ({ ...input, Storage: storageConf('') }),
  compare: ({ CR }, { out, err }) => {
    const theirs = out as { invalid: string; err: string; files: Record<string, string> } | null;
    const mine = attempt(() => {
      checkContainerRuntimeConfig(CR);
      return textsOf(containerRuntimeFiles(CR));
    });
    const differences = verdicts(mine, err || theirs?.invalid || theirs?.err || undefined, theirs?.files);
    if (differences.length > 0 || mine.kind !== 'value' || theirs === null) return differences;
    const paths = new Set([...Object.keys(mine.value), ...Object.keys(theirs.files)]);
    return [...paths].flatMap(path =>
      unlike(path, contentOf(path, mine.value[path]), contentOf(path, theirs.files[path]), true),
    );
  },
});

/** Of storage.conf only the size that was asked for: the rest is the template's. */
function contentOf(path: string, text: string | undefined): unknown {
  if (text === undefined) return undefined;
  const content = readToml(text);
  if (!path.endsWith('storage.conf')) return content;
  const { options } = content.storage as { options?: { size?: string; overlay?: { size?: string } } };
  return options?.size ?? options?.overlay?.size;
}

function settings(r: Random): object {
  return {
    ...(r.chance(0.5) && { pidsLimit: r.pick([0, 19, 20, 4096, -1, 100000]) }),
    ...(r.chance(0.4) && { logLevel: r.pick(LOG_LEVELS) }),
    ...(r.chance(0.4) && { logSizeMax: r.pick<string | number>(QUANTITIES) }),
    ...(r.chance(0.4) && { overlaySize: r.pick<string | number>(QUANTITIES) }),
    ...(r.chance(0.3) && { defaultRuntime: r.pick(['', 'crun', 'runc', 'kata']) }),
  };
}
