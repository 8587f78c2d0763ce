import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { describe, test } from 'node:test';
import { createServer } from 'node:tls';
import { dump } from 'js-yaml';
import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { daysFromNow, NOW, testClient, testServing, testSigner } from '../../inventory/testing.ts';
import { days } from '../../kube/duration.ts';
import { KubeError } from '../../kube/error.ts';
import { MemoryKube } from '../../kube/memory.ts';
import { CERTIFICATE_SIGNING_REQUESTS, CONFIG_MAPS, type Resource, SECRETS } from '../../kube/resource.ts';
import { type CertificateAndKey, ownCertificate } from '../../pki/authority.ts';
import { issueServing } from '../../pki/issue.ts';
import { systemKeys } from '../../pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../../pki/pem.ts';
import { certificatesInUse } from './in-use.ts';
import { decidePrune } from './remove-old-trust.ts';
import { askAll } from './served.ts';

describe('whose certificates need a CA (spec 70, 9.6)', async () => {
  const [old, current] = [await testSigner('signer', 20), await testSigner('signer', 2)];
  const bundle = encodeCertificates([...old.chain, ...current.chain]);
  const leaf = await testClient(old, 'user', 1);
  const other = await testClient(current, 'other', 1);
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  const user = ({ chain }: CertificateAndKey) => ({ 'client-certificate-data': base64(encodeCertificates(chain)) });
  const kubeconfig = (...pairs: CertificateAndKey[]) => ({
    apiVersion: 'v1',
    kind: 'Config',
    users: pairs.map((pair, index) => ({ name: `u${index}`, user: user(pair) })),
  });
  const secret = (data: Record<string, string>): Secret => ({
    metadata: { namespace: 'ns', name: 's' },
    data: Object.fromEntries(Object.entries(data).map(([key, text]) => [key, base64(text)])),
  });
  const neededBy = async (kube: MemoryKube): Promise<readonly string[]> => {
    const { inUse } = await certificatesInUse(kube);
    const decision = decidePrune(bundle, daysFromNow(-10), inUse, NOW);
    return decision.do === 'refuse' ? decision.needed : [];
  };
  const name = ownCertificate(old).subject.commonName;

  const places: [string, () => Secret | Promise<Secret>, string][] = [
    ['a kubeconfig in JSON', () => secret({ k: JSON.stringify(kubeconfig(leaf)) }), 'secret/s in ns (k), user "u0"'],
    [
      'a kubeconfig with quoted texts',
      () => secret({ k: dump(kubeconfig(leaf)).replace(/(client-certificate-data): (\S+)/, "$1: '$2'") }),
      'secret/s in ns (k), user "u0"',
    ],
    [
      'the second user of a kubeconfig',
      () => secret({ k: dump(kubeconfig(other, leaf)) }),
      'secret/s in ns (k), user "u1"',
    ],
    [
      'a leaf behind an intermediate',
      async () => {
        const intermediate = await intermediateOf(old);
        const below = await testClient(intermediate, 'below', 1);
        return secret({ 'tls.crt': encodeCertificates([ownCertificate(below), ownCertificate(intermediate)]) });
      },
      'secret/s in ns (tls.crt)',
    ],
  ];
  for (const [what, make, where] of places) {
    test(what, async () => {
      const kube = new MemoryKube();
      await kube.create(SECRETS, await make());
      assert.deepEqual(await neededBy(kube), [`${where} still needs "${name}"`]);
    });
  }

  test('a kubeconfig in a ConfigMap', async () => {
    const kube = new MemoryKube();
    const configMap: ConfigMap = { metadata: { namespace: 'ns', name: 'c' }, data: { k: dump(kubeconfig(leaf)) } };
    await kube.create(CONFIG_MAPS, configMap);
    assert.deepEqual(await neededBy(kube), [`configmap/c in ns (k), user "u0" still needs "${name}"`]);
  });

  test('what cannot be read is told, and the others are looked at all the same (9.8)', async () => {
    const kube = new MemoryKube();
    const pem = encodeCertificates(leaf.chain);
    await kube.create(
      SECRETS,
      secret({
        a: pem.replace('MII', 'AAA'),
        b: 'users: [client-certificate-data',
        c: 'users: 5 # client-certificate-data',
        d: pem,
      }),
    );
    const { inUse, unreadable } = await certificatesInUse(kube);
    assert.deepEqual(unreadable, ['secret/s in ns (a)', 'secret/s in ns (b)', 'secret/s in ns (c)']);
    assert.deepEqual(
      inUse.map(({ where }) => where),
      ['secret/s in ns (d)'],
    );
  });

  test('signing requests that cannot be listed are not taken for none; an API without them is', async () => {
    class Refusing extends MemoryKube {
      readonly code: 403 | 404;
      constructor(code: 403 | 404) {
        super();
        this.code = code;
      }
      override list: MemoryKube['list'] = (resource: Resource, options) => {
        if (resource.plural !== CERTIFICATE_SIGNING_REQUESTS.plural) return super.list(resource as never, options);
        throw new KubeError(this.code, this.code === 404 ? 'NotFound' : 'Forbidden', 'no');
      };
    }
    await assert.rejects(certificatesInUse(new Refusing(403)), { code: 403 });
    assert.deepEqual((await certificatesInUse(new Refusing(404))).inUse, []);
  });

  test('what a server shows counts, and one that does not answer is named', async t => {
    const serving = await testServing(old, ['localhost']);
    const server = createServer({ cert: encodeCertificates(serving.chain), key: encodePrivateKey(serving.key) });
    t.after(() => server.close());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const closed = createServer();
    await once(closed.listen(0, '127.0.0.1'), 'listening');
    const { port: nobody } = closed.address() as AddressInfo;
    await once(closed.close(), 'close');
    const { inUse, silent, asked } = await askAll([
      { host: '127.0.0.1', port, serverName: 'localhost' },
      { host: '127.0.0.1', port: nobody },
    ]);
    assert.deepEqual([asked, silent], [2, [`127.0.0.1:${nobody}`]]);
    assert.deepEqual(decidePrune(bundle, daysFromNow(-10), inUse, NOW), {
      do: 'refuse',
      because: 'certificates in use would no longer be accepted',
      needed: [`the server localhost at 127.0.0.1:${port} still needs "${name}"`],
    });
  });
});

async function intermediateOf(signer: CertificateAndKey): Promise<CertificateAndKey> {
  return issueServing({
    signer,
    hostnames: ['intermediate'],
    lifetimeMs: days(35),
    now: daysFromNow(-2),
    keys: systemKeys,
    algorithm: 'P-256',
    hooks: [template => void Object.assign(template, { isCA: true, keyUsages: ['keyCertSign'], extKeyUsages: [] })],
  });
}
