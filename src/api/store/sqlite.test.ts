import assert from 'node:assert/strict';
import {
  appendFileSync,
  copyFileSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { VirtualClock } from '../../kube/clock.ts';
import { minutes } from '../../kube/duration.ts';
import { openSqliteJournal, StoreLockedError } from './sqlite.ts';
import { Store } from './store.ts';

describe('the store on disk', () => {
  let dir: string;
  let file: string;
  const open: Store[] = [];

  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'rotunda-store-'));
    file = join(dir, 'store.sqlite');
  });
  afterEach(() => {
    for (const store of open.splice(0)) store.close();
    rmSync(dir, { recursive: true, force: true });
  });

  function openStore(maxChanges = 1000, path = file): Store {
    const history = { maxChanges, maxBytes: 2 ** 30, maxAgeMs: minutes(10) };
    const store = new Store({
      clock: new VirtualClock('2026-01-01T00:00:00Z'),
      journal: openSqliteJournal(path),
      history,
    });
    open.push(store);
    return store;
  }

  const put = (store: Store, path: string, value: string) =>
    store.write('b', path, () => ({ put: { metadata: { name: value } } }));
  const names = (store: Store, at?: number) =>
    [...store.list('b', { at })].map(({ path, object }) => `${path}=${object.metadata?.name}`);

  it('comes back with its objects, its history and its counter', async () => {
    const store = openStore();
    await put(store, 'a', '1');
    await put(store, 'b', '1');
    await put(store, 'a', '2');
    await store.write('b', 'b', newest => ({ remove: newest?.object ?? {} }));
    store.close();
    const again = openStore();
    assert.equal(again.revision, 4);
    assert.deepEqual(names(again), ['a=2']);
    assert.deepEqual(names(again, 2), ['a=1', 'b=1']);
    const seen: string[] = [];
    again.watch('b', 2, ({ type, entry, previous }) => seen.push(`${type} ${entry.path} ${previous?.revision}`));
    assert.deepEqual(seen, ['updated a 1', 'deleted b 2']);
    assert.equal((await put(again, 'c', '1')).revision, 5);
  });

  it('counts on after a compaction that removed the newest revisions', async () => {
    const store = openStore();
    await put(store, 'a', '1');
    await store.write('b', 'a', newest => ({ remove: newest?.object ?? {} }));
    store.compact(2);
    store.close();
    const again = openStore();
    assert.deepEqual([again.revision, again.compacted], [2, 2]);
    assert.equal((await put(again, 'a', '1')).revision, 3);
  });

  it('keeps no more on disk than it can be asked for', async () => {
    const store = openStore(16);
    for (let index = 0; index < 200; index++) await put(store, 'a', String(index));
    store.close();
    const database = new DatabaseSync(file);
    const { rows } = database.prepare('SELECT count(*) AS rows FROM version').get() as { rows: number };
    database.close();
    assert.ok(rows <= 20, `${rows} rows`);
    assert.deepEqual(names(openStore()), ['a=199']);
  });

  it('is open only once', () => {
    openStore();
    assert.throws(() => openSqliteJournal(file), StoreLockedError);
  });

  it('lets go of the file also when the log cannot be folded into it', async () => {
    const store = openStore();
    for (const path of ['a', 'b', 'c']) await put(store, path, '1');
    store.close();
    const journal = openSqliteJournal(file);
    // A read that is not finished keeps the log from being folded, as a full disk does.
    const versions = journal.load().versions[Symbol.iterator]();
    versions.next();
    journal.close();
    assert.deepEqual(names(openStore()), ['a=1', 'b=1', 'c=1']);
  });

  it('is readable for its owner only, log included', async () => {
    const store = openStore();
    await put(store, 'a', '1');
    for (const name of [file, `${file}-wal`]) assert.equal(statSync(name).mode & 0o777, 0o600, name);
  });

  it('cuts a torn log back to its last whole transaction', async () => {
    const store = openStore();
    for (let index = 0; index < 20; index++) await put(store, `p${index}`, 'x');
    // What a crash leaves: the file as it was, and the log with half a transaction at its end.
    const torn = join(dir, 'torn.sqlite');
    copyFileSync(file, torn);
    copyFileSync(`${file}-wal`, `${torn}-wal`);
    const { size } = statSync(`${torn}-wal`);
    truncateSync(`${torn}-wal`, size - 1000);
    appendFileSync(`${torn}-wal`, Buffer.alloc(500, 0xa5));
    const repaired = openStore(1000, torn);
    const found = [...repaired.list('b')].length;
    assert.ok(found >= 18 && found < 20, `${found} of 20 objects`);
    assert.equal(repaired.revision, found);
    assert.equal((await put(repaired, 'new', 'x')).revision, found + 1);
  });

  it('gives checksums to what was written without them', async () => {
    const store = openStore();
    await put(store, 'a', '1');
    await put(store, 'b', '1');
    await put(store, 'a', '2');
    store.close();
    const older = new DatabaseSync(file);
    older.exec('ALTER TABLE version DROP COLUMN head; ALTER TABLE version DROP COLUMN body; PRAGMA user_version = 1;');
    older.close();
    const upgraded = openStore();
    assert.deepEqual(names(upgraded), ['a=2', 'b=1']);
    assert.deepEqual(names(upgraded, 2), ['a=1', 'b=1']);
    await put(upgraded, 'c', '1');
    upgraded.close();
    const damaging = new DatabaseSync(file);
    damaging.exec(
      `UPDATE version SET json = CAST(replace(CAST(json AS TEXT), '"2"', '"6"') AS BLOB) WHERE revision = 3`,
    );
    damaging.close();
    const flipped = openStore();
    assert.deepEqual(
      flipped.damage.map(({ reason, details }) => [reason, details?.name]),
      [['StorageReadError', 'a']],
    );
    assert.throws(() => names(flipped), flipped.damage[0]);
  });

  it('refuses files that are not its own', () => {
    writeFileSync(file, 'this is not a database, and long enough to be looked at as one. '.repeat(20));
    assert.throws(() => openSqliteJournal(file), /not a database/);
    rmSync(file);
    const other = new DatabaseSync(file);
    other.exec('CREATE TABLE something (a)');
    other.close();
    assert.throws(() => openSqliteJournal(file), /not one of ours/);
    assert.ok(readFileSync(file).length > 0);
  });
});
