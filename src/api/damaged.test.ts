import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, SECRETS, SERVICE_ACCOUNTS } from '../kube/resource.ts';
import { authenticated } from './auth/user.ts';
import { type Engine, startEngine } from './engine.ts';
import { remove } from './rest/delete.ts';
import { deleteParameters } from './rest/delete-options.ts';
import { openSqliteJournal } from './store/sqlite.ts';

const MARK = 'look-for-this';

describe('an object whose bits have changed on the disk', () => {
  let dir: string;
  let file: string;
  let engine: Engine | undefined;
  let errors: string[];

  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'rotunda-damaged-'));
    file = join(dir, 'store.sqlite');
    errors = [];
  });
  afterEach(async () => {
    await engine?.close();
    rmSync(dir, { recursive: true, force: true });
  });

  async function start(): Promise<Engine> {
    const journal = openSqliteJournal(file);
    engine = await startEngine({ journal, onError: (_, error) => errors.push((error as Error).message) });
    return engine;
  }

  /** Closes the store, changes one bit wherever a text stands in the file (pages that are free have copies), and opens it. */
  async function restartAfterFlip(text: string, bit = 1): Promise<Engine> {
    await engine?.close();
    engine = undefined;
    const bytes = readFileSync(file);
    assert.ok(bytes.includes(text), `${text} is in the file`);
    for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1)) {
      bytes.writeUInt8(bytes.readUInt8(at) ^ bit, at);
    }
    writeFileSync(file, bytes);
    return start();
  }

  const secret = (name: string, value = 'x') => ({
    metadata: { name, namespace: 'default', annotations: { value } },
  });
  const secrets = (name: string) => ({ name, namespace: 'default' });
  const damaged = (resource: string, path: string) => ({
    code: 500,
    reason: 'StorageReadError',
    message: new RegExp(`^${resource} "${path}" is damaged in ${file}: the checksum of revision \\d+ does not match;`),
  });

  it('is named at the start, and neither read, listed, watched nor changed', async () => {
    const { kube } = await start();
    await kube.create(SECRETS, secret('bad', MARK));
    await kube.create(SECRETS, secret('good'));
    const again = await restartAfterFlip(MARK);
    assert.equal(errors.length, 1);
    assert.match(errors[0] ?? '', /^secrets "default\/bad" is damaged/);
    const refused = damaged('secrets', 'default/bad');
    const get = () => again.kube.get(SECRETS, secrets('bad'));
    await assert.rejects(get(), refused);
    await assert.rejects(again.kube.list(SECRETS, { namespace: 'default' }), refused);
    await assert.rejects(again.kube.list(SECRETS, { labelSelector: 'a=b' }), refused);
    await assert.rejects(again.kube.watch(SECRETS, { namespace: 'default' }).next(), refused);
    await assert.rejects(again.kube.update(SECRETS, secret('bad')), refused);
    const patch = { type: 'merge', body: { data: {} } } as const;
    await assert.rejects(again.kube.patch(SECRETS, secrets('bad'), patch), refused);
    await assert.rejects(again.kube.delete(SECRETS, secrets('bad')), refused);
    await assert.rejects(again.kube.create(SECRETS, secret('bad')), { reason: 'AlreadyExists' });
    assert.equal((await again.kube.get(SECRETS, secrets('good'))).metadata?.name, 'good');
    assert.deepEqual((await again.kube.list(SECRETS, { namespace: 'kube-system' })).items, []);
    await again.kube.update(SECRETS, secret('good', 'changed'));
    await restartAfterFlip('kube-public', 0);
    await assert.rejects(get(), refused, 'a start does not drop it');
  });

  it('can be deleted by whoever may do so unread, and made anew', async () => {
    const { kube } = await start();
    await kube.create(SECRETS, secret('bad', MARK));
    const { core, kube: admin } = await restartAfterFlip(MARK);
    const kind = core.registry.find('', 'v1', 'secrets') ?? assert.fail('secrets are served');
    const evenDamaged = deleteParameters({ ignoreStoreReadErrorWithClusterBreakingPotential: true });
    const as = (name: string, groups: string[]) => {
      const user = authenticated({ name, uid: '', groups, extra: {} });
      return { user, kind, namespace: 'default', name: 'bad', subresource: '', warn: () => {} };
    };
    const events = admin.watch(SECRETS, { resourceVersion: String(core.store.revision) });
    const event = events.next();
    await assert.rejects(remove(core, as('eve', []), evenDamaged), { code: 403, message: /unsafe-delete/ });
    await remove(core, as('root', ['system:masters']), evenDamaged);
    const { value } = await event;
    assert.deepEqual([value?.type, value?.object.metadata?.name], ['DELETED', 'bad']);
    await events.return(undefined);
    await admin.create(SECRETS, secret('bad', 'new'));
    assert.equal((await admin.list(SECRETS, { namespace: 'default' })).items.length, 1);
    const last = await restartAfterFlip('kube-public', 0);
    assert.equal((await last.kube.get(SECRETS, secrets('bad'))).metadata?.annotations?.['value'], 'new');
    assert.equal(errors.length, 1, 'nothing is damaged any more');
  });

  it('takes no option beside the one that deletes it unread', () => {
    const options = { ignoreStoreReadErrorWithClusterBreakingPotential: true, gracePeriodSeconds: 0 };
    assert.throws(() => deleteParameters(options), { code: 422, message: /cannot be set together with .gracePeriod/ });
  });

  it('that is an older version only costs watches their past', async () => {
    const { kube, core } = await start();
    await kube.create(SECRETS, secret('a', MARK));
    const { revision } = core.store;
    await kube.update(SECRETS, secret('a', 'newer'));
    const { kube: later } = await restartAfterFlip(MARK);
    assert.equal(errors.length, 1);
    assert.equal((await later.get(SECRETS, secrets('a'))).metadata?.annotations?.['value'], 'newer');
    await assert.rejects(later.watch(SECRETS, { resourceVersion: String(revision - 1) }).next(), { code: 410 });
    await restartAfterFlip('kube-public', 0);
    assert.equal(errors.length, 1, 'it is forgotten on the disk too');
  });

  it('gives no rights and stops nothing else when it is one that the server itself reads', async () => {
    const { kube, idle } = await start();
    const annotated = (name: string) => ({ metadata: { name, annotations: { mark: `${MARK}-${name}` } } });
    await kube.create(NAMESPACES, annotated('closed'));
    await idle();
    await kube.create(CONFIG_MAPS, { metadata: { name: 'inside', namespace: 'closed' } });
    const schema = { openAPIV3Schema: { type: 'object' } };
    const versions = [{ name: 'v1', served: true, storage: true, schema }];
    const spec = { group: 'x.io', scope: 'Namespaced', names: { plural: 'goods', kind: 'Good' }, versions };
    await kube.create(CUSTOM_RESOURCE_DEFINITIONS, { ...annotated('goods.x.io'), spec });
    const token = { type: 'kubernetes.io/service-account-token', ...secret('token', `${MARK}-token`) };
    await kube.create(SECRETS, token).catch(() => {});
    await idle();
    await restartAfterFlip(`${MARK}-closed`);
    await restartAfterFlip(`${MARK}-goods.x.io`);
    const { kube: last, idle: calm } = engine ?? assert.fail('it started');
    await calm();
    await assert.rejects(last.get(NAMESPACES, { name: 'closed' }), damaged('namespaces', 'closed'));
    const inside = { name: 'more', namespace: 'closed' };
    await assert.rejects(last.create(CONFIG_MAPS, { metadata: inside }), damaged('namespaces', 'closed'));
    await last.delete(CONFIG_MAPS, { name: 'inside', namespace: 'closed' });
    await last.create(SERVICE_ACCOUNTS, { metadata: { name: 'works', namespace: 'default' } });
  });

  it('is not opened at all when it cannot be told which object it is', async () => {
    const { kube } = await start();
    await kube.create(SECRETS, secret('a'));
    await kube.create(SECRETS, secret(MARK));
    // The path stands before the content of its row.
    const path = `/secretsdefault/${MARK}`;
    await assert.rejects(
      restartAfterFlip(path, 0x10),
      /store\.sqlite is damaged: the checksum of revision \d+ does not/,
    );
  });
});
