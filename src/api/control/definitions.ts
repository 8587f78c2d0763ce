import type { CustomResourceDefinition, CustomResourceDefinitionStatus } from 'kubernetes-types/apiextensions/v1.d.ts';
import { customKinds } from '../kinds/custom.ts';
import type { Fields, Kind } from '../kinds/kind.ts';
import { DEFINITION_BUCKET as BUCKET, CLEANUP_FINALIZER, withDefinitionCondition } from '../kinds/rules/definition.ts';
import { amend } from '../rest/amend.ts';
import type { Core } from '../rest/core.ts';
import { remove } from '../rest/delete.ts';
import type { Change, Entry } from '../store/entry.ts';
import { EVERYTHING } from '../store/store.ts';
import { type Controller, internalCall, splitPath } from './controller.ts';
import { withoutFinalizer } from './garbage.ts';
import { Worker } from './worker.ts';

/** Puts CustomResourceDefinitions into service and out of it again. */
export function serveDefinitions(core: Core, onError: (key: string, error: unknown) => void): Controller {
  /** The generation of each definition that is being served. */
  const served = new Map<string, number>();
  const worker = new Worker(core.clock, name => look(name), onError);
  for (const entry of core.store.list(BUCKET)) {
    serve(entry);
    worker.add(entry.path);
  }
  const stop = core.store.watch(EVERYTHING, core.store.revision, change => observe(change));
  return {
    idle: () => worker.idle(),
    close: () => {
      stop();
      return worker.close();
    },
  };

  function observe({ type, entry }: Change): void {
    if (entry.bucket === BUCKET) {
      if (type === 'deleted') withdraw(entry.path);
      else serve(entry);
      // The names of one may be free or taken now for all others of its group.
      for (const { path } of core.store.list(BUCKET)) worker.add(path);
    } else if (type === 'deleted') {
      const [group, plural] = entry.bucket.split('/');
      const definition = core.store.newest(BUCKET, `${plural}.${group}`);
      if (definition?.damage === undefined && definition?.object.metadata?.deletionTimestamp !== undefined)
        worker.add(definition.path);
    }
  }

  function serve(entry: Entry): void {
    try {
      const definition = definitionOf(entry);
      const generation = definition.metadata?.generation ?? 0;
      if (!isTrue(definition, 'Established') || served.get(entry.path) === generation) return;
      core.registry.define(entry.path, customKinds(definition, entry.revision));
      served.set(entry.path, generation);
    } catch (error) {
      // It is damaged, or passed all checks and cannot be served all the same: no reason to fall over.
      onError(entry.path, error);
    }
  }

  function withdraw(name: string): void {
    served.delete(name);
    core.registry.undefine(name);
  }

  async function look(name: string): Promise<undefined> {
    const entry = core.store.newest(BUCKET, name);
    if (entry === undefined) return;
    const kind = core.registry.find('apiextensions.k8s.io', 'v1', 'customresourcedefinitions') as Kind;
    if (entry.object.metadata?.deletionTimestamp !== undefined) return cleanUp(kind, name, definitionOf(entry));
    const conflict = nameConflict(core, definitionOf(entry));
    await amend(core, kind, name, object =>
      accepted(object as unknown as CustomResourceDefinition, conflict, core.clock.now()),
    );
  }

  async function cleanUp(kind: Kind, name: string, { spec, metadata }: CustomResourceDefinition): Promise<undefined> {
    if (metadata?.finalizers?.includes(CLEANUP_FINALIZER) !== true) return;
    const bucket = `${spec.group}/${spec.names.plural}`;
    const instances = core.registry.ofBucket(bucket);
    if (instances !== undefined) {
      // A copy: the collection changes while it is cleared.
      const entries = Array.from(core.store.list(bucket));
      for (const entry of entries) {
        if (entry.object.metadata?.deletionTimestamp !== undefined) continue;
        const { namespace, name: instance } = splitPath(instances, entry.path);
        const call = internalCall(instances, namespace, instance, 'customresourcedefinition-controller');
        await remove(core, call, { dryRun: false, uid: entry.object.metadata?.uid, propagation: 'Background' });
      }
    }
    if (core.store.count(bucket) === 0)
      await amend(core, kind, name, object => withoutFinalizer(object, CLEANUP_FINALIZER));
  }
}

/** Which name of a definition is taken already, and by whom. */
function nameConflict(core: Core, { metadata, spec }: CustomResourceDefinition): string | undefined {
  const taken = new Map<string, string>();
  for (const { object } of core.store.list(BUCKET)) {
    const other = object as unknown as CustomResourceDefinition;
    const names = other.status?.acceptedNames;
    if (other.spec.group !== spec.group || other.metadata?.name === metadata?.name || names === undefined) continue;
    for (const name of [names.plural, names.singular, ...(names.shortNames ?? []), names.kind, names.listKind]) {
      if (name) taken.set(name, names.kind);
    }
  }
  for (const kind of core.registry.all()) {
    if (kind.group === spec.group && kind.custom === undefined)
      taken.set(kind.plural, kind.kind).set(kind.kind, kind.kind);
  }
  const { plural, singular, shortNames = [], kind, listKind } = spec.names;
  const wanted = [plural, singular, ...shortNames, kind, listKind];
  const conflict = wanted.find(name => name !== undefined && taken.has(name));
  return conflict === undefined ? undefined : `${JSON.stringify(conflict)} is already in use`;
}

/** The definition with the conditions that say whether it is served. */
function accepted(definition: CustomResourceDefinition, conflict: string | undefined, now: Date): Fields {
  const wasEstablished = isTrue(definition, 'Established');
  const names = withDefinitionCondition(
    definition,
    now,
    conflict === undefined
      ? { type: 'NamesAccepted', status: 'True', reason: 'NoConflicts', message: 'no conflicts found' }
      : { type: 'NamesAccepted', status: 'False', reason: 'NameConflict', message: conflict },
  );
  const established = withDefinitionCondition(
    names,
    now,
    conflict === undefined || wasEstablished
      ? {
          type: 'Established',
          status: 'True',
          reason: 'InitialNamesAccepted',
          message: 'the initial names have been accepted',
        }
      : { type: 'Established', status: 'False', reason: 'NotAccepted', message: 'not all names are accepted' },
  );
  if (conflict !== undefined) return established as unknown as Fields;
  const status = { ...established.status, acceptedNames: definition.spec.names } as CustomResourceDefinitionStatus;
  return { ...established, status };
}

function isTrue({ status }: CustomResourceDefinition, condition: string): boolean {
  return status?.conditions?.some(({ type, status: value }) => type === condition && value === 'True') === true;
}

function definitionOf({ object }: Entry): CustomResourceDefinition {
  return object as unknown as CustomResourceDefinition;
}
