import { isAlreadyExists, isConflict, isNotFound } from '../../kube/error.ts';
import type { KubeObject } from '../../kube/resource.ts';
import { type Kind, pathOf } from '../kinds/kind.ts';
import { amend } from '../rest/amend.ts';
import type { Core } from '../rest/core.ts';
import { create } from '../rest/create.ts';
import { sameJson } from '../schema/json.ts';
import { EVERYTHING } from '../store/store.ts';
import type { RootCa } from './control.ts';
import { type Controller, internalCall } from './controller.ts';
import { Worker } from './worker.ts';

export const ROOT_CA_CONFIG_MAP = 'kube-root-ca.crt';

/** Gives every namespace its service account `default` and the certificates to verify this server with. */
export function furnishNamespaces(
  core: Core,
  rootCa: RootCa,
  onError: (key: string, error: unknown) => void,
): Controller {
  const worker = new Worker(core.clock, name => furnish(name), onError);
  const stop = core.store.watch(EVERYTHING, core.store.revision, ({ entry, type }) => {
    if (entry.bucket === '/namespaces' && type === 'created') worker.add(entry.path);
    else if (isFurniture(entry.bucket, entry.path) && type !== 'created')
      worker.add(entry.path.split('/')[0] as string);
  });
  for (const { path } of core.store.list('/namespaces')) worker.add(path);
  return {
    idle: () => worker.idle(),
    close: () => {
      stop();
      return worker.close();
    },
  };

  async function furnish(namespace: string): Promise<undefined> {
    const found = core.store.newest('/namespaces', namespace);
    if (found === undefined || found.object.metadata?.deletionTimestamp !== undefined) return;
    await ensure('/serviceaccounts', namespace, 'default', {});
    if (rootCa !== 'of others')
      await ensure('/configmaps', namespace, ROOT_CA_CONFIG_MAP, { data: { 'ca.crt': rootCa() } });
  }

  async function ensure(bucket: string, namespace: string, name: string, content: { data?: object }): Promise<void> {
    const kind = core.registry.ofBucket(bucket) as Kind;
    const call = internalCall(kind, namespace, name, 'root-ca-cert-publisher');
    const parameters = { dryRun: false, fieldManager: 'rotunda', fieldValidation: 'Ignore' as const };
    if (core.store.newest(bucket, pathOf(namespace, name)) === undefined) {
      const value: KubeObject = { metadata: { name, namespace }, ...content };
      await create(core, { ...call, name: '' }, { value }, parameters).catch(ignoreRace);
    } else if (content.data !== undefined) {
      await amend(core, kind, pathOf(namespace, name), object =>
        sameJson(object['data'], content.data) ? object : { ...object, data: content.data },
      );
    }
  }
}

function isFurniture(bucket: string, path: string): boolean {
  const name = path.slice(path.indexOf('/') + 1);
  return (
    (bucket === '/serviceaccounts' && name === 'default') || (bucket === '/configmaps' && name === ROOT_CA_CONFIG_MAP)
  );
}

/** Somebody else was quicker, or the namespace is on its way out. */
function ignoreRace(error: unknown): void {
  const forbidden = (error as { code?: number }).code === 403;
  if (!isAlreadyExists(error) && !isNotFound(error) && !isConflict(error) && !forbidden) throw error;
}
