import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { silentLog } from '../../../src/controller/log.ts';
import { recordingEvents } from '../../../src/kube/events.ts';
import { MemoryKube } from '../../../src/kube/memory.ts';
import { CONFIG_MAPS, SECRETS } from '../../../src/kube/resource.ts';
import { syncCertificates } from '../../../src/staticpod/node/cert-sync.ts';
import { systemFiles } from '../../../src/staticpod/node/files.ts';
import { freeLock } from '../../../src/staticpod/node/testing.ts';
import { same, unlike } from '../difference.ts';
import { judged } from '../judged.ts';
import type { Random } from '../random.ts';

const NAMESPACE = 'openshift-kube-apiserver';
const KINDS = ['ConfigMaps', 'Secrets'] as const;

interface Objects {
  ConfigMaps: ConfigMap[];
  Secrets: Secret[];
}

interface Input {
  Namespace: string;
  ConfigMaps: { Name: string; Optional: boolean }[];
  Secrets: { Name: string; Optional: boolean }[];
  Live: Objects;
  /** What a cache that may be behind says. */
  Cached: Objects;
  Files: Record<string, { Content: string; Mode: number }>;
}

interface Answered {
  err: string;
  events: Said[] | null;
  files: Input['Files'];
  dirs: string[] | null;
}

/** What of the objects gets on a node's disk. */
export const CERT_SYNC = judged<Input>({
  name: 'cert sync',
  program: 'lgdiff',
  op: 'certsync',
  generate: r => {
    const wanted = (prefix: string) => r.times(2, index => ({ Name: `${prefix}${index}`, Optional: r.chance(0.4) }));
    const [ConfigMaps, Secrets] = [wanted('c'), wanted('s')];
    const Live: Objects = {
      ConfigMaps: r
        .some(ConfigMaps, 0.8)
        .map(({ Name }) => ({ metadata: metadata(Name), data: data(r, text => text) })),
      Secrets: r.some(Secrets, 0.8).map(({ Name }) => ({ metadata: metadata(Name), data: data(r, base64) })),
    };
    const Cached: Objects = {
      ConfigMaps: Live.ConfigMaps.flatMap(object => stale(r, object, text => text)),
      Secrets: Live.Secrets.flatMap(object => stale(r, object, base64)),
    };
    return { Namespace: NAMESPACE, ConfigMaps, Secrets, Live, Cached, Files: files(r, Live) };
  },
  compare: async (input, { out }, { folder }) => {
    const theirs = out as Answered;
    for (const [path, { Content, Mode }] of Object.entries(input.Files)) {
      const full = join(folder, path);
      mkdirSync(dirname(full), { recursive: true });
      writeFileSync(full, Buffer.from(Content, 'base64'));
      chmodSync(full, Mode);
    }
    const kube = new MemoryKube();
    for (const object of input.Live.ConfigMaps) await kube.create(CONFIG_MAPS, object);
    for (const object of input.Live.Secrets) await kube.create(SECRETS, object);
    const events = recordingEvents();
    let error: unknown;
    try {
      await syncCertificates(optionsOf(input), {
        kube,
        cached: (kind, name) =>
          input.Cached[kind === 'secrets' ? 'Secrets' : 'ConfigMaps'].find(object => object.metadata?.name === name),
        files: systemFiles(folder),
        lock: freeLock,
        events,
        log: silentLog,
      });
    } catch (thrown) {
      error = thrown;
    }
    const said = events.events.map(({ type, reason, message }): Said => [type, reason, message]);
    const onDisk = found(folder);
    return [
      ...unlike('fails', error !== undefined, theirs.err !== ''),
      ...KINDS.flatMap(kind =>
        input[kind].flatMap(({ Name }) => {
          const directory = `${kind.toLowerCase()}/${Name}/`;
          const filesIn = (files: Input['Files']) =>
            Object.fromEntries(Object.entries(files).filter(([path]) => path.startsWith(directory)));
          const saidOf = (all: readonly Said[]) => all.filter(([, , message]) => message.endsWith(`/${Name}`));
          const oddity = oddityOf(input, kind, Name, directory);
          return [
            ...unlike(`events${oddity}`, saidOf(said), saidOf(theirs.events ?? [])),
            ...unlike(`files${oddity}`, filesIn(onDisk), filesIn(theirs.files)),
          ];
        }),
      ),
    ];
  },
});

type Said = [type: string, reason: string, message: string];

/** What is special about an object and its directory; empty for nothing. */
function oddityOf(input: Input, kind: 'ConfigMaps' | 'Secrets', name: string, directory: string): string {
  const named = (objects: Objects) => (objects[kind] as ConfigMap[]).find(({ metadata }) => metadata?.name === name);
  const [live, cached] = [named(input.Live), named(input.Cached)];
  if (live === undefined) return '';
  const keys = Object.keys(live.data ?? {});
  const isGone = (path: string) => path.startsWith(directory) && !keys.includes(path.slice(directory.length));
  if (Object.keys(input.Files).some(isGone)) return ', a key is gone';
  if (keys.length === 0) return ', no data';
  if (Object.values(live.data ?? {}).includes('')) return ', an empty value';
  return same(Object.keys(cached?.data ?? {}).sort(), keys.sort()) ? '' : ', the cache is behind';
}

const metadata = (name: string) => ({ namespace: NAMESPACE, name });
const base64 = (text: string): string => Buffer.from(text).toString('base64');

function optionsOf(input: Input) {
  const [configMaps, secrets] = KINDS.map(kind =>
    input[kind].map(({ Name, Optional }) => ({ name: Name, optional: Optional })),
  );
  return { namespace: NAMESPACE, destinationDir: '/', configMaps: configMaps!, secrets: secrets! };
}

function data(r: Random, encode: (text: string) => string): Record<string, string> {
  return Object.fromEntries(
    r.some(['tls.crt', 'tls.key', 'ca.crt'], 0.7).map(key => [key, encode(r.pick(['1', '2', '']))]),
  );
}

function stale<T extends ConfigMap | Secret>(r: Random, object: T, encode: (text: string) => string): T[] {
  if (r.chance(0.8)) return [object];
  return r.chance(0.5) ? [] : [{ ...object, data: data(r, encode) }];
}

/** The files of all objects, or most of them; also of objects that are gone. */
function files(r: Random, { ConfigMaps, Secrets }: Objects): Input['Files'] {
  const isNew = r.chance(0.3);
  const all: [string, { Content: string; Mode: number }][] = [];
  const put = (folder: string, object: ConfigMap | Secret, encode: (text: string) => string, mode: number) => {
    for (const [key, value] of Object.entries(object.data ?? {})) {
      const Content = r.chance(0.15) ? base64('older') : encode(value);
      if (!isNew && r.chance(0.9)) all.push([`${folder}/${object.metadata?.name}/${key}`, { Content, Mode: mode }]);
    }
    if (!isNew && r.chance(0.04))
      all.push([`${folder}/${object.metadata?.name}/left-over`, { Content: '', Mode: mode }]);
  };
  for (const object of ConfigMaps) put('configmaps', object, base64, 0o644);
  for (const object of Secrets) put('secrets', object, text => text, 0o600);
  for (const gone of ['configmaps/c0', 'configmaps/c1', 'secrets/s0', 'secrets/s1'])
    if (!isNew && r.chance(0.1)) all.push([`${gone}/tls.crt`, { Content: base64('gone'), Mode: 0o600 }]);
  return Object.fromEntries(all);
}

function found(folder: string): Input['Files'] {
  // Ours keeps the directories that it swaps behind names with a dot.
  const isSeen = (path: string) => !path.split('/').some(name => name.startsWith('.'));
  const paths = ['configmaps', 'secrets'].flatMap(kind => below(folder, kind)).filter(isSeen);
  return Object.fromEntries(
    paths.map(path => [
      path,
      { Content: readFileSync(join(folder, path)).toString('base64'), Mode: statSync(join(folder, path)).mode & 0o777 },
    ]),
  );
}

/** Every file, also behind the links of directories. */
function below(folder: string, path: string): string[] {
  const info = statSync(join(folder, path), { throwIfNoEntry: false });
  if (info === undefined) return [];
  return info.isDirectory()
    ? readdirSync(join(folder, path)).flatMap(name => below(folder, `${path}/${name}`))
    : [path];
}
