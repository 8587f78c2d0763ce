import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { memoryHost, observed } from '../../host/memory.ts';
import { HostError } from '../../host/port.ts';
import { REGISTRY_CAS } from './paths.ts';
import type { CertificateProblem } from './problem.ts';
import { decideRegistryCas, ensureRegistryCas } from './registry-ca.ts';
import { base64 } from './testing.ts';

const entry = (file: string, text: string) => ({ file, data: base64(text) });

describe('which CAs belong where', () => {
  test('two dots stand for the colon before a port, and the user wins', () => {
    const { wanted, invalid } = decideRegistryCas([entry('r.svc..5000', 'a'), entry('x', 'a')], [entry('x', 'b')]);
    assert.deepEqual(
      [...wanted].map(([name, data]) => [name, data.toString()]),
      [
        ['r.svc:5000', 'a'],
        ['x', 'b'],
      ],
    );
    assert.deepEqual(invalid, []);
  });
  for (const file of ['', '.', '../../etc', 'a/b', 'a\nb', 'a\u0000b', '/', 'x'.repeat(256)]) {
    test(`refused: ${JSON.stringify(file.slice(0, 20))}`, () => {
      const { wanted, invalid } = decideRegistryCas([entry(file, 'a'), entry('good', 'a')], []);
      assert.deepEqual([...wanted.keys()], ['good']);
      assert.equal(invalid[0]?.code, 'InvalidRegistryName');
    });
  }
});

test('the directory is made, and a second time nothing is touched', async () => {
  const host = memoryHost();
  const cas = decideRegistryCas([entry('r..5000', 'CA')], []);
  const problems: CertificateProblem[] = [];
  const first = await ensureRegistryCas(host.files, cas, problems);
  assert.deepEqual(first.written, [`${REGISTRY_CAS}/r:5000/ca.crt`]);
  assert.equal((await host.files.stat(`${REGISTRY_CAS}/r:5000`))?.mode, 0o755);
  assert.equal((await host.files.stat(`${REGISTRY_CAS}/r:5000/ca.crt`))?.mode, 0o644);
  const again = await ensureRegistryCas(host.files, cas, problems);
  assert.deepEqual(again, { written: [], removed: [] });
  assert.deepEqual(problems, []);
});

test('directories that are no longer listed go, after the others are there; files and links beside them stay', async () => {
  const host = memoryHost();
  const { files } = host;
  await files.write(`${REGISTRY_CAS}/old:1/ca.crt`, Buffer.from('old'));
  await files.write(`${REGISTRY_CAS}/README`, Buffer.from('note'));
  await files.symlink('/etc/pki', `${REGISTRY_CAS}/link`);
  await files.write(`${REGISTRY_CAS}/kept/ca.crt`, Buffer.from('kept'), { mode: 0o600 });
  const order: string[] = [];
  const watched = observed(host, ({ name, args }) => {
    if (/write|removeTree/.test(name)) order.push(`${name} ${String(args[0])}`);
  });
  const problems: CertificateProblem[] = [];
  await ensureRegistryCas(watched.files, decideRegistryCas([entry('new', 'CA')], [entry('kept', 'kept')]), problems);
  assert.deepEqual(order, [
    `files.write ${REGISTRY_CAS}/new/ca.crt`,
    `files.write ${REGISTRY_CAS}/kept/ca.crt`,
    `files.removeTree ${REGISTRY_CAS}/old:1`,
  ]);
  assert.deepEqual(await files.list(REGISTRY_CAS), ['README', 'kept', 'link', 'new']);
  assert.deepEqual(problems, []);
});

test('an empty CA keeps what is there, and one registry that fails does not hold back the others', async () => {
  const host = memoryHost();
  await host.files.write(`${REGISTRY_CAS}/empty/ca.crt`, Buffer.from('good'));
  const failing = observed(host, ({ name, args }) => {
    if (name === 'files.write' && String(args[0]).includes('/bad/')) throw new HostError('no-space', 'no space');
  });
  const problems: CertificateProblem[] = [];
  const cas = decideRegistryCas([entry('bad', 'x'), entry('empty', ''), entry('good', 'x')], []);
  const { written } = await ensureRegistryCas(failing.files, cas, problems);
  assert.deepEqual(written, [`${REGISTRY_CAS}/good/ca.crt`]);
  assert.equal((await host.files.read(`${REGISTRY_CAS}/empty/ca.crt`))?.toString(), 'good');
  assert.deepEqual(
    problems.map(({ code, isPassing }) => [code, isPassing]),
    [
      ['CertificateSyncFailed', true],
      ['EmptyTrustBundle', false],
    ],
  );
});
