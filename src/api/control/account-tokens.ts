import type { Secret, ServiceAccount } from 'kubernetes-types/core/v1.d.ts';
import { type Kind, pathOf } from '../kinds/kind.ts';
import { amend } from '../rest/amend.ts';
import type { Core } from '../rest/core.ts';
import { remove } from '../rest/delete.ts';
import { whole } from '../store/entry.ts';
import type { RootCa } from './control.ts';
import { type Controller, internalCall } from './controller.ts';
import { Worker } from './worker.ts';

const TYPE = 'kubernetes.io/service-account-token';
const NAME = 'kubernetes.io/service-account.name';
const UID = 'kubernetes.io/service-account.uid';

/** Fills Secrets of type `kubernetes.io/service-account-token`, and removes them with their account. */
export function fillTokenSecrets(
  core: Core,
  rootCa: RootCa,
  onError: (key: string, error: unknown) => void,
): Controller {
  const worker = new Worker(core.clock, path => look(path), onError);
  const stops = [
    core.store.watch('/secrets', core.store.revision, ({ entry, type }) => {
      if (type !== 'deleted' && isTokenSecret(entry.object as Secret)) worker.add(entry.path);
    }),
    core.store.watch('/serviceaccounts', core.store.revision, ({ entry }) => addAllOf(entry.path.split('/')[0] ?? '')),
  ];
  for (const { path, object } of whole(core.store.list('/secrets')))
    if (isTokenSecret(object as Secret)) worker.add(path);
  return {
    idle: () => worker.idle(),
    close: () => {
      for (const stop of stops) stop();
      return worker.close();
    },
  };

  function addAllOf(namespace: string): void {
    for (const { path, object } of whole(core.store.list('/secrets', { prefix: `${namespace}/` }))) {
      if (isTokenSecret(object as Secret)) worker.add(path);
    }
  }

  async function look(path: string): Promise<undefined> {
    const secret = core.store.newest('/secrets', path)?.object as Secret | undefined;
    if (secret === undefined || !isTokenSecret(secret)) return;
    const { name = '', namespace = '', annotations = {}, uid } = secret.metadata ?? {};
    const account = core.store.newest('/serviceaccounts', pathOf(namespace, annotations[NAME] ?? ''))?.object;
    const kind = core.registry.ofBucket('/secrets') as Kind;
    const accountUid = account?.metadata?.uid;
    if (accountUid === undefined || (annotations[UID] !== undefined && annotations[UID] !== accountUid)) {
      await remove(core, internalCall(kind, namespace, name, 'tokens-controller'), { dryRun: false, uid });
      return;
    }
    if (secret.data?.['token'] !== undefined && annotations[UID] === accountUid) return;
    const content = {
      ...(rootCa !== 'of others' && { 'ca.crt': rootCa() }),
      namespace,
      token: core.tokens.issueForSecret(account as ServiceAccount, name),
    };
    const encoded = Object.entries(content).map(([key, text]) => [key, Buffer.from(text).toString('base64')]);
    await amend(core, kind, path, object => ({
      ...object,
      metadata: { ...object.metadata, annotations: { ...object.metadata?.annotations, [UID]: accountUid } },
      data: { ...(object as Secret).data, ...Object.fromEntries(encoded) },
    }));
  }
}

function isTokenSecret({ type }: Secret): boolean {
  return type === TYPE;
}
