import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import * as fc from 'fast-check';
import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { decodeStrictBase64 } from '../../machine-config-api/base64.ts';
import {
  DockerConfigError,
  encodeDockerConfigJson,
  parseDockerConfig,
  parseDockercfg,
  toDockerConfigJson,
} from '../../machine-config-api/docker-config.ts';
import { encodePem } from '../../pki/pem-block.ts';
import { ignitionHost } from '../operator/pointer.ts';
import { certificate } from '../testing.ts';
import { bytesOfText, readBytes } from './config-map.ts';
import { clusterDnsIp, discoveredSpec, platformType } from './discovered.ts';
import { SourceError } from './error.ts';
import { osImages, payloadImages } from './images.ts';
import { replaceCertificate } from './kubelet-ca.ts';
import { internalPullSecret } from './pull-secret.ts';
import { mergedRegistryCa, registryBundles, registryCaPath } from './registry-ca.ts';
import { holdsCertificate, trustBundle } from './trust-bundle.ts';

const base64 = (text: string) => Buffer.from(text).toString('base64');

describe('strict base64 (RD-4)', () => {
  test('gives back what was encoded, with line ends anywhere', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), fc.array(fc.nat(80), { maxLength: 4 }), (bytes, places) => {
        let text = Buffer.from(bytes).toString('base64');
        for (const place of places) text = `${text.slice(0, place)}\r\n${text.slice(place)}`;
        assert.deepEqual(decodeStrictBase64(text), Buffer.from(bytes));
      }),
    );
  });

  for (const text of ['QUJDRA', 'QUJD RA==', 'QUJDRA=', '-_-_', 'QUJD====', '=', 'QUJD\tRA==', 'ä'.repeat(4)]) {
    test(`refuses ${JSON.stringify(text)}`, () => assert.equal(decodeStrictBase64(text), undefined));
  }

  test('the empty text is zero bytes', () => assert.deepEqual(decodeStrictBase64(''), Buffer.alloc(0)));

  test('text that is not base64 is itself', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary' }),
        text => decodeStrictBase64(text) !== undefined || bytesOfText(text).equals(Buffer.from(text)),
      ),
    );
  });
});

test('a key named like a method of objects is not found in a ConfigMap without it', () => {
  assert.throws(() => readBytes({ metadata: { namespace: 'n', name: 'm' }, data: {} }, 'constructor'), SourceError);
});

describe('pull secrets', () => {
  const global = (text: string, type = 'kubernetes.io/dockerconfigjson') => ({
    type,
    data: { '.dockerconfigjson': base64(text) },
  });
  const registry = 'image-registry.openshift-image-registry.svc:5000';
  const build = (puller: Record<string, string>, text: string) =>
    internalPullSecret({
      hasImageRegistry: true,
      puller: { imagePullSecrets: Object.keys(puller).map(name => ({ name })) },
      pullerSecret: name => (puller[name] === undefined ? undefined : { data: { '.dockercfg': base64(puller[name]) } }),
      global: global(text),
      dns: { spec: { baseDomain: 'd' } },
    });

  test('the global secret wins, and the default route is made after that (PS-3, PS-4)', () => {
    const text = build({ a: `{"${registry}":{"auth":"puller"}}` }, `{"auths":{"${registry}":{"auth":"global"}}}`);
    const { auths } = JSON.parse(text ?? '') as { auths: Record<string, { auth: string }> };
    assert.equal(auths[registry]?.auth, 'global');
    assert.equal(auths['default-route-openshift-image-registry.apps.d']?.auth, 'global');
  });

  test('later secrets of the puller win over earlier ones (PS-2)', () => {
    const text = build({ a: '{"h":{"auth":"1"}}', b: '{"h":{"auth":"2"}}' }, '{"auths":{}}');
    assert.equal(JSON.parse(text ?? '').auths.h.auth, '2');
  });

  test('nothing at all is nothing (PS-5)', () => assert.equal(build({}, '{"auths":{}}'), undefined));

  test('a host called __proto__ is a host', () => {
    const text = build({}, '{"auths":{"__proto__":{"auth":"x"}}}');
    assert.equal(text, '{"auths":{"__proto__":{"username":"","password":"","email":"","auth":"x"}}}');
  });

  test('errors name the object and the field and never the content (PS-6)', () => {
    for (const [puller, text, object] of [
      [{ a: 'geheim' }, '{"auths":{}}', 'secret openshift-machine-config-operator/a'],
      [{}, '{"auths":"geheim"}', 'secret openshift-config/pull-secret'],
      [{}, '{"auths":{"h":{"auth":{"geheim":1}}}}', 'secret openshift-config/pull-secret'],
      [{}, 'geheim', 'secret openshift-config/pull-secret'],
    ] as const) {
      assert.throws(
        () => build(puller, text),
        (error: Error) =>
          error instanceof SourceError &&
          error.object === object &&
          !error.message.includes('geheim') &&
          error.message.includes(object),
      );
    }
  });

  test('auths that are no mapping are refused in both forms, and null is no entries (PS-6, PS-7)', () => {
    for (const text of ['{"auths":"x"}', '{"auths":[]}', '[]', '"x"']) {
      assert.throws(() => toDockerConfigJson(text), DockerConfigError);
      assert.throws(() => parseDockerConfig(text), DockerConfigError);
    }
    assert.deepEqual(toDockerConfigJson('{}'), { text: '{"auths":{}}', converted: true });
    assert.equal(build({ a: 'null' }, 'null'), undefined);
    assert.equal(build({ a: '{"h":null}' }, '{"auths":null}')?.includes('"h":{"username":""'), true);
  });

  test('the modern form is written with hosts in the order of their bytes', () => {
    const entry = { username: '', password: '', email: '', auth: '' };
    assert.deepEqual(Object.keys(JSON.parse(encodeDockerConfigJson({ b: entry, 'a:1': entry, B: entry })).auths), [
      'B',
      'a:1',
      'b',
    ]);
  });

  test('both forms are read to the same, whatever the entries', () => {
    const entry = fc.record({ username: fc.string(), password: fc.string(), email: fc.string(), auth: fc.string() });
    fc.assert(
      fc.property(fc.dictionary(fc.domain(), entry, { minKeys: 1 }), auths => {
        const plain = (value: object) => JSON.parse(JSON.stringify(value)) as object;
        assert.deepEqual(plain(parseDockerConfig(JSON.stringify({ auths }))), plain(auths));
        assert.deepEqual(plain(parseDockercfg(JSON.stringify(auths))), plain(auths));
        assert.deepEqual(plain(parseDockerConfig(encodeDockerConfigJson(auths))), plain(auths));
      }),
    );
  });

  test('any text is read or refused, and nothing else happens', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), text => {
        try {
          parseDockerConfig(text);
        } catch (error) {
          assert.ok(error instanceof DockerConfigError);
        }
      }),
    );
  });
});

describe('registry CAs', () => {
  test('values are decoded by their own rule and kept apart (IR-1)', () => {
    const list = registryBundles({
      data: { b: 'text!', a: base64('A') },
      binaryData: { c: base64('C'), 'b..1': base64('B') },
    });
    assert.deepEqual(
      list.map(({ file, data }) => [file, Buffer.from(data, 'base64').toString()]),
      [
        ['a', 'A'],
        ['b', 'text!'],
        ['b..1', 'B'],
        ['c', 'C'],
      ],
    );
    const accident = registryBundles({ data: { h: 'user' } });
    assert.equal(Buffer.from(accident[0]?.data ?? '', 'base64').toString(), 'user', 'base64 of no text is no base64');
    assert.equal(registryCaPath('h..1..2'), '/etc/docker/certs.d/h:1:2/ca.crt');
    assert.deepEqual(mergedRegistryCa([], []).data, {});
  });
});

describe('CA bundles', () => {
  test('a block that is no certificate is passed over, where the original never returns (KA-3)', async () => {
    const [first, second] = [await certificate('first'), await certificate('second')];
    const broken = encodePem('CERTIFICATE', Buffer.from('no certificate'));
    const merged = replaceCertificate(Buffer.from(`${first}${broken}${second}`), Buffer.from('NEW\n'), 'second');
    assert.equal(merged.toString(), `${first}NEW\n`);
    assert.equal(holdsCertificate(Buffer.from(broken)), false);
    assert.equal(holdsCertificate(Buffer.from(`text\n${first}`)), true);
  });

  test('the trust bundle is put together without a separator (TB-1)', async () => {
    const [user, proxy] = [(await certificate('user')).trimEnd(), await certificate('proxy')];
    const find = (name: string) => ({ data: { 'ca-bundle.crt': name === 'user-ca-bundle' ? user : proxy } });
    assert.equal(trustBundle({ spec: { trustedCA: { name: 'p' } } }, find).toString(), user + proxy);
    assert.equal(trustBundle({ spec: { trustedCA: { name: 'user-ca-bundle' } } }, find).toString(), user);
  });

  test('a ConfigMap without its key is an error in both (TB-3)', () => {
    assert.throws(
      () => trustBundle(undefined, () => ({ data: {} })),
      /ca-bundle\.crt not found in openshift-config\/user-ca-bundle/,
    );
  });
});

describe('what is discovered', () => {
  for (const [cidr, ip] of [
    ['172.30.0.0/16', '172.30.0.10'],
    ['fd02::/112', 'fd02::a'],
    ['10.0.0.3/28', '10.0.0.10'],
  ] as const) {
    test(`the DNS address of ${cidr} is ${ip}`, () => assert.equal(clusterDnsIp(cidr), ip));
  }
  for (const cidr of ['10.0.0.0/29', '10.0.0.0', '10.0.0.0/33', 'x/8', 'fd02::/125', undefined]) {
    test(`there is none in ${cidr}`, () => assert.throws(() => clusterDnsIp(cidr), SourceError));
  }

  test('the platform (DS-3)', () => {
    assert.equal(platformType({ status: { platformStatus: { type: 'GCP' }, platform: 'AWS' } }), 'GCP');
    assert.equal(platformType({ status: { platform: 'AWS' } }), 'AWS');
    assert.equal(platformType({}), 'None');
  });

  test('the network during a migration (DS-4)', () => {
    const network = {
      spec: { serviceNetwork: ['10.0.0.0/16'] },
      status: { networkType: 'A', migration: { networkType: 'B', mtu: { network: { to: 9000 } } } },
    };
    const spec = discoveredSpec({}, network, undefined, undefined);
    assert.equal(spec.networkType, 'B');
    assert.deepEqual(spec.network, { mtuMigration: { network: { to: 9000 } } });
  });

  test('null is not set', () => {
    const read = (infra: string, network: string, proxy: string) =>
      discoveredSpec(JSON.parse(infra), JSON.parse(network), JSON.parse(proxy), undefined);
    const spec = { serviceNetwork: ['10.0.0.0/16'], networkType: 'S' };
    const network = (status: string) => `{"spec":${JSON.stringify(spec)},"status":${status}}`;
    const platformOf = (status: string) => read(`{"status":${status}}`, network('null'), '{}').platform;
    assert.equal(platformOf('{"platformStatus":null}'), 'none');
    assert.equal(platformOf('{"platformStatus":null,"platform":"AWS"}'), 'aws');
    assert.equal(platformOf('null'), 'none');
    assert.equal(read('{}', network('null'), '{}').networkType, 'S');
    assert.equal(read('{}', network('{"networkType":null}'), '{}').networkType, 'S');
    const migrating = read('{}', network('{"networkType":"A","migration":{"networkType":"B","mtu":null}}'), '{}');
    assert.deepEqual([migrating.networkType, migrating.network], ['B', null]);
    for (const proxy of ['{"status":null}', '{"status":{"httpProxy":null,"noProxy":""}}']) {
      assert.equal(read('{}', network('null'), proxy).proxy, null);
    }
    assert.deepEqual(read('{}', network('null'), '{"status":{"noProxy":"x"}}').proxy, { noProxy: 'x' });
    const empty = JSON.parse('{"data":null,"binaryData":null}') as ConfigMap;
    assert.throws(() => readBytes(empty, 'k'), SourceError);
    assert.deepEqual(registryBundles(empty), []);
    assert.throws(() => osImages(empty, '4.16'), SourceError);
    const status = (platform: string) => JSON.parse(`{"apiServerInternalURI":"https://API-int.x:6443",${platform}}`);
    for (const platform of [
      '"platformStatus":null',
      '"platformStatus":{"type":"VSphere","vsphere":null}',
      '"platformStatus":{"type":"VSphere","vsphere":{"apiServerInternalIPs":null}}',
    ]) {
      assert.equal(ignitionHost(status(platform)), 'API-int.x:22623');
    }
  });

  test('where new machines ask is written as it is in Infrastructure (PC-1)', () => {
    for (const [uri, host] of [
      ['https://api-int.c1:6443', 'api-int.c1'],
      ['https://u:p@Api:6443/x', 'Api'],
      ['https://[fd00::1]:6443', '[fd00::1]'],
      ['https://api', 'api'],
    ] as const) {
      assert.equal(ignitionHost({ apiServerInternalURI: uri }), `${host}:22623`);
    }
    for (const uri of ['', 'api-int', 'mailto:x', 'https://'])
      assert.throws(() => ignitionHost({ apiServerInternalURI: uri }), SourceError);
  });

  test('images of another release are refused', () => {
    const images = { metadata: { name: 'i' }, data: { 'images.json': '{"releaseVersion":"4.15"}' } };
    assert.throws(() => payloadImages(images, '4.16'), /refusing to read version "4\.15", operator version "4\.16"/);
    assert.throws(() => payloadImages({ data: { 'images.json': '{' } }, '4.16'), /is not JSON/);
    assert.throws(() => osImages({ data: {} }, '4.16'), SourceError);
  });
});
