import { isGone } from './error.ts';
import type { Kube, ListOptions, ObjectList } from './port.ts';
import type { KubeObject, Resource } from './resource.ts';

/** What a server can give from memory at once without hurting others. */
export const PAGE_SIZE = 500;
/** A list whose pages expire faster than we read them is asked for in one piece after so many starts. */
const PAGED_ATTEMPTS = 3;

/** Everything a selection holds, read in pages of one consistent state. */
export async function listAll<T extends KubeObject>(
  kube: Pick<Kube, 'list'>,
  resource: Resource<T>,
  options: Omit<ListOptions, 'limit' | 'continue'> = {},
  limits: { readonly pageSize?: number; readonly mostObjects?: number } = {},
): Promise<ObjectList<T>> {
  const { pageSize = PAGE_SIZE, mostObjects = Number.POSITIVE_INFINITY } = limits;
  for (let attempt = 1; ; attempt++) {
    try {
      return await readPages(kube, resource, { ...options, limit: pageSize }, mostObjects);
    } catch (error) {
      // 410 after the first page: the state that the pages belong to has been compacted away. Start over.
      if (!isGone(error)) throw error;
      if (attempt >= PAGED_ATTEMPTS) return readPages(kube, resource, options, mostObjects);
    }
  }
}

async function readPages<T extends KubeObject>(
  kube: Pick<Kube, 'list'>,
  resource: Resource<T>,
  options: ListOptions,
  mostObjects: number,
): Promise<ObjectList<T>> {
  const items: T[] = [];
  let next: string | undefined;
  for (;;) {
    const page: ObjectList<T> = await kube.list(resource, next === undefined ? options : continued(options, next));
    for (const item of page.items) items.push(item);
    if (items.length > mostObjects) {
      throw new RangeError(`expected at most ${mostObjects} ${resource.plural}, the API has more`);
    }
    const { continue: following, ...metadata } = page.metadata;
    if (!following) return { items, metadata };
    next = following;
  }
}

/** The API takes the version from the token and refuses to be told it twice. */
function continued(
  { resourceVersion: _version, resourceVersionMatch: _match, ...rest }: ListOptions,
  token: string,
): ListOptions {
  return { ...rest, continue: token };
}
