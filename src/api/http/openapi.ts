import type { Kind } from '../kinds/kind.ts';
import type { Registry } from '../kinds/registry.ts';
import { type ApiResource, type GroupVersion, groupVersionPath } from '../schema/api-resource.ts';
import { openApiV2 } from '../schema/openapi-v2.ts';
import { encodeOpenApiV2 } from '../schema/openapi-v2-protobuf.ts';
import { openApiV3, openApiV3Index } from '../schema/openapi-v3.ts';
import { type Published, publish } from './discovery.ts';

/** The OpenAPI documents, made when somebody asks and kept until the kinds change. */
export class OpenApi {
  readonly #registry: Registry;
  #version = -1;
  #published = new Map<string, Published>();
  #v3 = new Map<string, object>();

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  /** `/openapi/v2`, `/openapi/v3`, `/openapi/v3/api/v1`, `/openapi/v3/apis/<group>/<version>`. */
  document(path: string): Published | undefined {
    if (this.#version !== this.#registry.version) {
      this.#published.clear();
      this.#v3.clear();
      this.#version = this.#registry.version;
    }
    const known = this.#published.get(path);
    if (known !== undefined) return known;
    const document = this.#make(path);
    if (document === undefined) return undefined;
    const made = publish(document);
    this.#published.set(path, made);
    return made;
  }

  /** `/openapi/v2` in the one form that old clients take. */
  protobufV2(): Published {
    const known = this.#published.get(PROTOBUF_V2);
    const document = this.document('/openapi/v2');
    if (known !== undefined && document !== undefined) return known;
    const body = Buffer.from(encodeOpenApiV2(openApiV2(this.#resources())));
    const made = { body, etag: document?.etag ?? '' };
    this.#published.set(PROTOBUF_V2, made);
    return made;
  }

  #make(path: string): object | undefined {
    if (path === '/openapi/v2') return openApiV2(this.#resources());
    const groupVersions = this.#registry.groupVersions();
    if (path === '/openapi/v3') {
      return openApiV3Index(
        groupVersions.map(groupVersion => ({ groupVersion, document: this.#document(groupVersion) })),
      );
    }
    const wanted = groupVersions.find(groupVersion => `/openapi/v3/${groupVersionPath(groupVersion)}` === path);
    return wanted === undefined ? undefined : this.#document(wanted);
  }

  #document(groupVersion: GroupVersion): object {
    const key = groupVersionPath(groupVersion);
    const known = this.#v3.get(key) ?? openApiV3(groupVersion, this.#resources());
    this.#v3.set(key, known);
    return known;
  }

  #resources(): ApiResource[] {
    return this.#registry.all().map(apiResource);
  }
}

const PROTOBUF_V2 = '/openapi/v2 protobuf';

function apiResource({ group, version, kind, plural, namespaced, verbs, schema, subresources }: Kind): ApiResource {
  return {
    group,
    version,
    kind,
    plural,
    namespaced,
    verbs,
    schema,
    subresources: subresources.map(({ name, verbs: allowed, kind: other, schema: otherSchema }) => ({
      name,
      verbs: allowed,
      group: other?.group,
      version: other?.version,
      kind: other?.kind,
      schema: otherSchema,
    })),
  };
}
