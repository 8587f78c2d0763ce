import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { fixedAccess } from '../../src/kube/access.ts';
import { HttpKube } from '../../src/kube/client.ts';
import { Informer } from '../../src/kube/informer.ts';
import type { ListOptions, ObjectList } from '../../src/kube/port.ts';
import { CONFIG_MAPS, type KubeObject, type Resource } from '../../src/kube/resource.ts';
import { type Heard, versionOf } from './chronicle.ts';
import type { Random } from './seeded.ts';

const PAGE_SIZE = 60;
/** So short that a stall costs little, and much longer than what a good answer takes. */
const SILENCE_MS = 100;
const REQUEST_TIMEOUT_MS = 400;

export interface FollowerOptions {
  readonly labelSelector?: string | undefined;
  readonly requestTimeoutMs?: number | undefined;
}

/** An informer of ConfigMaps at the end of a bad connection, and everything it told. */
export class Follower {
  readonly heard: Heard[] = [];
  readonly informer: Informer<ConfigMap>;
  readonly kube: HttpKube;
  /** How often the informer was told of a failure. */
  failures = 0;
  /** How far it has got: a list tells of deletions with versions from before. */
  version = 0;

  constructor(
    url: string,
    random: Random,
    { labelSelector, requestTimeoutMs = REQUEST_TIMEOUT_MS }: FollowerOptions = {},
  ) {
    this.kube = new ListHearingKube(url, requestTimeoutMs, version => this.#hear({ type: 'LISTED', version }));
    this.informer = new Informer(this.kube, CONFIG_MAPS, {
      selection: { labelSelector },
      backoff: { firstMs: 1, longestMs: 10, random },
      silenceMs: SILENCE_MS,
      pageSize: PAGE_SIZE,
      onError: () => this.failures++,
    });
    this.informer.subscribe({
      add: object => this.#hear({ type: 'ADDED', object }),
      update: (before, object) => this.#hear({ type: 'MODIFIED', before, object }),
      delete: object => this.#hear({ type: 'DELETED', object }),
    });
  }

  get lists(): number {
    return this.heard.filter(({ type }) => type === 'LISTED').length;
  }

  #hear(heard: Heard): void {
    this.heard.push(heard);
    this.version = Math.max(this.version, heard.type === 'LISTED' ? heard.version : versionOf(heard.object));
  }
}

/** Tells of the version of every list that was read to its last page. */
class ListHearingKube extends HttpKube {
  readonly #onListed: (version: number) => void;

  constructor(url: string, requestTimeoutMs: number, onListed: (version: number) => void) {
    super(fixedAccess(url), { requestTimeoutMs });
    this.#onListed = onListed;
  }

  override async list<T extends KubeObject>(resource: Resource<T>, options: ListOptions = {}): Promise<ObjectList<T>> {
    const list = await super.list(resource, options);
    // A list of one is no list: the informer only looks how far the API is.
    if (options.limit !== 1 && !list.metadata.continue) this.#onListed(Number(list.metadata.resourceVersion));
    return list;
  }
}
