import { mkdir, rm } from 'node:fs/promises';
import { join, normalize } from 'node:path';
import type {
  ConfigMap,
  Container,
  KeyToPath,
  Pod,
  ProjectedVolumeSource,
  Secret,
  Volume,
  VolumeProjection,
} from 'kubernetes-types/core/v1.d.ts';
import type { Clock } from '../kube/clock.ts';
import { seconds } from '../kube/duration.ts';
import {
  type DirectoryContent,
  type FileContent,
  isUpToDate,
  readDirectory,
  replaceDirectory,
} from '../staticpod/node/directory-swap.ts';
import { systemFiles } from '../staticpod/node/files.ts';
import type { PathMapping } from '../staticpod/node/path-map.ts';
import { type EnvSources, podField } from './container-env.ts';

export interface TokenRequest {
  readonly namespace: string;
  readonly serviceAccount: string;
  readonly audiences: readonly string[];
  readonly expirationSeconds: number;
  readonly pod: { readonly name: string; readonly uid: string };
}

/** Issues tokens of service accounts; on a real node the API does that for the kubelet. */
export type IssueToken = (request: TokenRequest) => Promise<{ token: string; expiresAt: Date }>;

export interface VolumeDeps extends EnvSources {
  /** The root directory of the node: host paths are below it. */
  readonly root: string;
  /** Where volumes that live and die with the pod are. */
  readonly podDir: string;
  readonly clock: Clock;
  readonly issueToken?: IssueToken | undefined;
}

const DEFAULT_MODE = 0o644;
const TOKEN_SECONDS = 3600;
/** A token is replaced when this part of its life is over. */
const TOKEN_REFRESH = 0.8;

/** The volumes of one pod as directories of this machine. */
export class PodVolumes {
  readonly #deps: VolumeDeps;
  readonly #paths = new Map<string, string>();
  readonly #tokens = new Map<string, { token: string; refreshAt: Date }>();

  constructor(deps: VolumeDeps) {
    this.#deps = deps;
  }

  /** Makes them all, or brings them up to date. Throws when something required is missing. */
  async prepare(): Promise<void> {
    for (const volume of this.#deps.pod.spec?.volumes ?? []) this.#paths.set(volume.name, await this.#prepare(volume));
  }

  /** Where the volumes of a container appear inside and outside. */
  mounts(container: Pick<Container, 'volumeMounts' | 'name'>): PathMapping[] {
    return (container.volumeMounts ?? []).map(({ name, mountPath, subPath = '' }) => {
      const path = this.#paths.get(name);
      if (path === undefined)
        throw new Error(`container ${container.name} mounts the volume ${name}, which the pod does not have`);
      if (subPath.split('/').includes('..')) {
        throw new Error(
          `container ${container.name}: expected a sub path inside the volume, found ${JSON.stringify(subPath)}`,
        );
      }
      return { inside: mountPath, outside: join(path, subPath) };
    });
  }

  async remove(): Promise<void> {
    await rm(join(this.#deps.podDir, 'volumes'), { recursive: true, force: true });
  }

  async #prepare(volume: Volume): Promise<string> {
    const { root } = this.#deps;
    if (volume.hostPath !== undefined) {
      const path = join(root, normalize(`/${volume.hostPath.path}`));
      const { type = '' } = volume.hostPath;
      if (type === '' || type === 'Directory' || type === 'DirectoryOrCreate') await mkdir(path, { recursive: true });
      return path;
    }
    if (volume.emptyDir !== undefined) {
      const path = this.#pathOf('empty-dir', volume.name);
      await mkdir(path, { recursive: true });
      return path;
    }
    const projection = await this.#projection(volume);
    if (projection === undefined) throw new Error(`volume ${volume.name} is of a kind that a local node does not have`);
    const path = this.#pathOf(projection.kind, volume.name);
    const files = systemFiles();
    if (!isUpToDate(await readDirectory(files, path), projection.content)) {
      await replaceDirectory(files, path, projection.content, 'volume');
    }
    return path;
  }

  async #projection(volume: Volume): Promise<{ kind: string; content: DirectoryContent } | undefined> {
    const { secret, configMap, projected, downwardAPI } = volume;
    if (secret !== undefined) {
      const { defaultMode, items, secretName: name, optional } = secret;
      const source = {
        secret: { ...(name ? { name } : {}), ...(items ? { items } : {}), optional: optional ?? false },
      };
      return { kind: 'secret', content: await this.#content([source], defaultMode) };
    }
    if (configMap !== undefined) {
      return { kind: 'configmap', content: await this.#content([{ configMap }], configMap.defaultMode) };
    }
    if (downwardAPI !== undefined) {
      return { kind: 'downward-api', content: await this.#content([{ downwardAPI }], downwardAPI.defaultMode) };
    }
    if (projected === undefined) return undefined;
    const { sources = [], defaultMode } = projected as Partial<ProjectedVolumeSource>;
    return { kind: 'projected', content: await this.#content(sources, defaultMode) };
  }

  async #content(sources: readonly VolumeProjection[], mode = DEFAULT_MODE): Promise<DirectoryContent> {
    const content = new Map<string, FileContent>();
    for (const source of sources) {
      for (const [name, bytes] of await this.#sourceFiles(source)) content.set(name, { content: bytes, mode });
    }
    return content;
  }

  async #sourceFiles(source: VolumeProjection): Promise<Map<string, Buffer>> {
    const { secret, configMap, downwardAPI, serviceAccountToken } = source;
    if (secret?.name !== undefined) {
      const object = present(await this.#deps.secret(secret.name), `secret "${secret.name}"`, secret.optional);
      return chosen(secretData(object), secret.items, `secret "${secret.name}"`, secret.optional);
    }
    if (configMap?.name !== undefined) {
      const what = `configmap "${configMap.name}"`;
      const object = present(await this.#deps.configMap(configMap.name), what, configMap.optional);
      return chosen(configMapData(object), configMap.items, what, configMap.optional);
    }
    if (downwardAPI !== undefined) {
      const items = downwardAPI.items ?? [];
      return new Map(
        items.map(item => [item.path, Buffer.from(podField(item.fieldRef?.fieldPath ?? '', this.#deps) ?? '')]),
      );
    }
    if (serviceAccountToken !== undefined) {
      const { path, audience = '', expirationSeconds = TOKEN_SECONDS } = serviceAccountToken;
      return new Map([[path, Buffer.from(await this.#token(audience, expirationSeconds))]]);
    }
    return new Map();
  }

  async #token(audience: string, expirationSeconds: number): Promise<string> {
    const { pod, clock, issueToken } = this.#deps;
    const known = this.#tokens.get(audience);
    const now = clock.now();
    if (known !== undefined && now < known.refreshAt) return known.token;
    if (issueToken === undefined) throw new Error('this node has nobody who issues tokens of service accounts');
    const { name = '', namespace = '', uid = '' } = pod.metadata ?? {};
    const { token } = await issueToken({
      namespace,
      serviceAccount: pod.spec?.serviceAccountName || 'default',
      audiences: audience === '' ? [] : [audience],
      expirationSeconds,
      pod: { name, uid },
    });
    const refreshAt = new Date(now.getTime() + seconds(expirationSeconds) * TOKEN_REFRESH);
    this.#tokens.set(audience, { token, refreshAt });
    return token;
  }

  #pathOf(kind: string, name: string): string {
    return join(this.#deps.podDir, 'volumes', kind, name);
  }
}

function present<T>(object: T | undefined, what: string, optional = false): T | undefined {
  if (object === undefined && !optional) throw new Error(`${what} not found`);
  return object;
}

function secretData(secret: Secret | undefined): Map<string, Buffer> {
  return new Map(Object.entries(secret?.data ?? {}).map(([key, value]) => [key, Buffer.from(value ?? '', 'base64')]));
}

function configMapData(configMap: ConfigMap | undefined): Map<string, Buffer> {
  const text = Object.entries(configMap?.data ?? {}).map(([key, value]) => [key, Buffer.from(value ?? '')] as const);
  const binary = Object.entries(configMap?.binaryData ?? {}).map(
    ([key, value]) => [key, Buffer.from(value ?? '', 'base64')] as const,
  );
  return new Map([...text, ...binary]);
}

function chosen(
  data: Map<string, Buffer>,
  items: readonly KeyToPath[] | undefined,
  what: string,
  optional = false,
): Map<string, Buffer> {
  if (items === undefined || items.length === 0) return data;
  const files = new Map<string, Buffer>();
  for (const { key, path } of items) {
    const value = data.get(key);
    if (value !== undefined) files.set(path, value);
    else if (!optional) throw new Error(`${what} has no key "${key}"`);
  }
  return files;
}

/** Whether a pod has volumes whose content comes from the API and may change. */
export function hasProjectedVolumes(pod: Pod): boolean {
  return (pod.spec?.volumes ?? []).some(
    ({ secret, configMap, projected, downwardAPI }) => secret ?? configMap ?? projected ?? downwardAPI,
  );
}
