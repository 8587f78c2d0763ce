import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createCertificateRequest, encodeCertificateRequest, readCertificateRequest } from '../../src/pki/csr.ts';
import { systemKeys } from '../../src/pki/keys.ts';
import { readPrivateKey } from '../../src/pki/pem.ts';
import { ALGORITHMS, type Issued, issueAll, KINDS, type Kind, pemOf } from './issued.ts';
import { find, run } from './program.ts';

const openssl = find('openssl');
const skip = openssl ? false : 'openssl is not installed';

describe('openssl accepts what we issue', { skip }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'rotunda-openssl-'));
  after(() => rmSync(folder, { recursive: true }));

  const command = (...args: string[]) => run(openssl!, args, { cwd: folder });
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text, { mode: 0o600 });
    return name;
  };

  for (const algorithm of ALGORITHMS) {
    describe(algorithm, () => {
      let issued: Issued;
      const path = (kind: Kind, part: 'cert' | 'chain' | 'key') => `${algorithm}-${kind}.${part}`;
      before(async () => {
        issued = await issueAll(algorithm, new Date());
        for (const kind of KINDS) {
          const pem = pemOf(issued[kind]);
          for (const part of ['cert', 'chain', 'key'] as const) file(path(kind, part), pem[part]);
        }
      });

      const verify = (kind: Kind, ...options: string[]) =>
        command(
          'verify',
          '-x509_strict',
          '-CAfile',
          path('signer', 'cert'),
          '-untrusted',
          path('intermediate', 'cert'),
          ...options,
          path(kind, 'cert'),
        );

      const purposes: [Kind, ...string[]][] = [
        ['signer'],
        ['intermediate'],
        ['serving', '-purpose', 'sslserver', '-verify_hostname', 'localhost'],
        ['serving', '-purpose', 'sslserver', '-verify_hostname', 'x.apps.example.com'],
        ['serving', '-purpose', 'sslserver', '-verify_ip', '2001:db8::a'],
        ['client', '-purpose', 'sslclient'],
        ['peer', '-purpose', 'sslserver', '-verify_ip', '192.0.2.1'],
        ['peer', '-purpose', 'sslclient'],
      ];
      for (const [kind, ...options] of purposes) {
        it(`verify ${kind} ${options.join(' ')}`, async () => {
          assert.match(await verify(kind, ...options), /: OK$/m);
        });
      }
      it('verify refuses the wrong purpose and the wrong host', async () => {
        await assert.rejects(verify('client', '-purpose', 'sslserver'), /unsuitable certificate purpose/);
        await assert.rejects(verify('serving', '-purpose', 'sslclient'), /unsuitable certificate purpose/);
        await assert.rejects(verify('serving', '-verify_hostname', 'example.com'), /hostname mismatch/i);
      });

      it('x509 reads the same fields', async () => {
        for (const kind of KINDS) {
          const certificate = issued[kind].chain[0]!;
          const text = await command(
            'x509',
            '-in',
            path(kind, 'cert'),
            '-noout',
            '-serial',
            '-enddate',
            '-ext',
            'keyUsage,basicConstraints',
          );
          assert.match(text, new RegExp(`serial=0*${certificate.serial.toString(16)}$`, 'im'));
          const end = /notAfter=(.*)$/m.exec(text)?.[1] ?? '';
          assert.equal(Date.parse(end), certificate.notAfter.getTime());
          assert.match(text, certificate.isCA ? /CA:TRUE/ : /CA:FALSE/);
          assert.equal(text.includes('Certificate Sign'), certificate.isCA);
          assert.equal(text.includes('Key Encipherment'), algorithm.startsWith('RSA'));
          assert.ok(!text.includes('CRL Sign'));
        }
      });
      it('key files are sound and belong to their certificates', async () => {
        for (const kind of KINDS) {
          const [ofKey, ofCertificate] = await Promise.all([
            command('pkey', '-in', path(kind, 'key'), '-check', '-pubout'),
            command('x509', '-in', path(kind, 'cert'), '-noout', '-pubkey'),
          ]);
          assert.ok(ofKey.includes(ofCertificate));
        }
      });
      it('a whole chain file verifies itself', async () => {
        const answer = await command(
          'verify',
          '-CAfile',
          path('signer', 'cert'),
          '-untrusted',
          path('serving', 'chain'),
          path('serving', 'chain'),
        );
        assert.match(answer, /: OK$/m);
      });
      it('requests are read both ways', async () => {
        const subject = { commonName: 'system:node:n', organizations: ['system:nodes'] };
        const { key } = issued.client;
        const ours = await createCertificateRequest({
          keys: systemKeys,
          key,
          subject,
          dnsNames: ['n'],
          ipAddresses: ['10.0.0.1'],
        });
        const name = file(`${algorithm}.csr`, encodeCertificateRequest(ours));
        const text = await command('req', '-in', name, '-verify', '-noout', '-text');
        assert.match(text, /DNS:n, IP Address:10\.0\.0\.1/);
        const theirs = await command(
          'req',
          '-new',
          '-key',
          path('client', 'key'),
          '-subj',
          '/O=system:nodes/CN=system:node:n',
          '-addext',
          'subjectAltName=DNS:n,IP:10.0.0.1',
        );
        const request = readCertificateRequest(theirs);
        assert.deepEqual(request.subject.organizations, ['system:nodes']);
        assert.deepEqual([request.dnsNames, request.ipAddresses], [['n'], ['10.0.0.1']]);
        assert.ok(request.publicKey.equals(ours.publicKey));
      });
    });
  }

  it('keys that openssl makes are read', async () => {
    for (const args of [
      ['genrsa', '-traditional', '1024'],
      ['genpkey', '-algorithm', 'ED25519'],
      ['ecparam', '-genkey', '-name', 'prime256v1'],
    ]) {
      assert.equal(readPrivateKey(await command(...args)).type, 'private');
    }
  });
});
