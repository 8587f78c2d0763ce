import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { memoryHost } from '../../host/memory.ts';
import { readBundle, without } from './bundle.ts';
import { decideCaFile, ensureCaFile } from './ca-file.ts';
import { KUBELET_CA } from './paths.ts';
import type { CertificateProblem } from './problem.ts';
import { ca } from './testing.ts';

const [A, B] = [await ca('a'), await ca('b')];
const BROKEN = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';

describe('what a CA file should hold', () => {
  const table: {
    what: string;
    wanted: string;
    current?: string;
    optional?: boolean;
    write: string | undefined;
    code?: string;
  }[] = [
    { what: 'a new file', wanted: A, write: A },
    { what: 'a line feed is added where there is none', wanted: A.trimEnd(), write: A },
    { what: 'further line feeds are kept', wanted: `${A}\n\n`, write: `${A}\n\n` },
    { what: 'the same content is not written', wanted: A.trimEnd(), current: A, write: undefined },
    { what: 'both generations', wanted: A + B, current: A, write: A + B },
    { what: 'a removal', wanted: B, current: A + B, write: B },
    { what: 'a tampered file', wanted: A, current: `${A}# hello\n`, write: A },
    { what: 'no input keeps what is there', wanted: '', current: A, write: undefined, code: 'EmptyTrustBundle' },
    { what: 'blank input does too', wanted: ' \n', current: A, write: undefined, code: 'EmptyTrustBundle' },
    { what: 'no input makes no file', wanted: '', write: undefined, code: 'EmptyTrustBundle' },
    { what: 'no cloud CA is no problem', wanted: '', current: A, optional: true, write: undefined },
    { what: 'text without a certificate', wanted: 'hello', current: A, write: undefined, code: 'EmptyTrustBundle' },
    { what: 'text where nothing can be lost', wanted: 'hello', write: 'hello\n' },
    { what: 'text over text', wanted: 'hello', current: 'bye\n', write: 'hello\n' },
    { what: 'one broken certificate', wanted: A + BROKEN + B, write: A + B, code: 'MalformedCertificate' },
    {
      what: 'the same once more',
      wanted: A + BROKEN + B,
      current: A + B,
      write: undefined,
      code: 'MalformedCertificate',
    },
  ];
  for (const { what, wanted, current, optional, write, code } of table) {
    test(what, () => {
      const decision = decideCaFile(
        Buffer.from(wanted),
        current === undefined ? undefined : Buffer.from(current),
        optional,
      );
      assert.equal(decision.write?.toString(), write);
      assert.equal(decision.problem?.code, code);
    });
  }
});

test('the mode of the file that is there is kept, what is written is ours (spec 60, 4.5.5); an equal file is not touched', async () => {
  const { files } = memoryHost();
  await files.write(KUBELET_CA, Buffer.from(A), { mode: 0o640, owner: { uid: 7, gid: 8 } });
  const problems: CertificateProblem[] = [];
  const ensure = (text: string) =>
    ensureCaFile(files, { path: KUBELET_CA, part: 'kubelet-ca' }, Buffer.from(text), problems);
  assert.equal(await ensure(A), false);
  assert.equal(await ensure(A + B), true);
  const stat = await files.stat(KUBELET_CA);
  assert.deepEqual([stat?.mode, stat?.uid, stat?.gid], [0o640, 0, 0]);
  assert.deepEqual(problems, []);
});

test('bundles are compared by certificate: order, spacing, comments and repetition do not count', () => {
  const one = readBundle(Buffer.from(A + B));
  const other = readBundle(Buffer.from(`# first\r\n${B.replaceAll('\n', '\r\n')}\n\n${A}${B}`));
  assert.deepEqual([without(one, other).length, without(other, one).length], [0, 0]);
  assert.deepEqual(
    without(one, readBundle(Buffer.from(A))).map(({ subject }) => subject.commonName),
    ['b'],
  );
});
