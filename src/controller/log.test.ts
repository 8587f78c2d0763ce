import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { describe, it } from 'node:test';
import { VirtualClock } from '../kube/clock.ts';
import { KubeError } from '../kube/error.ts';
import { createLog, silentLog } from './log.ts';
import { redacted, redactedText } from './redact.ts';

const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const PEM = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const BODY = PEM.split('\n')[1] ?? '';
const TOKEN = `${Buffer.from('{"alg":"RS256"}').toString('base64url')}.${Buffer.from('{"sub":"x"}').toString('base64url')}.c2lnbmF0dXJl`;

function capture(level?: 'debug' | 'info') {
  const lines: string[] = [];
  const log = createLog({
    name: 'rotunda',
    level,
    destination: { write: line => void lines.push(line) },
    clock: new VirtualClock('2026-01-01T00:00:00Z'),
  });
  return { log, lines, last: () => JSON.parse(lines.at(-1) ?? '{}') as Record<string, unknown> };
}

describe('log', () => {
  it('one JSON object a line, with level, time, name and fields', () => {
    const { log, lines, last } = capture();
    log.child({ controller: 'c' }).info({ key: 'a', at: new Date(0), n: 1n }, 'pass done');
    assert.deepEqual(last(), {
      level: 'info',
      time: '2026-01-01T00:00:00.000Z',
      name: 'rotunda',
      controller: 'c',
      key: 'a',
      at: '1970-01-01T00:00:00.000Z',
      n: '1',
      msg: 'pass done',
    });
    assert.equal(lines[0]?.endsWith('\n'), true);
  });

  it('levels', () => {
    const { log, lines } = capture();
    log.debug({}, 'no');
    log.warn({}, 'yes');
    log.error({}, 'yes');
    assert.equal(lines.length, 2);
    const child = log.child({ controller: 'c' });
    log.level = 'debug';
    child.debug({}, 'children follow');
    log.level = 'error';
    child.warn({}, 'no');
    assert.equal(lines.length, 3);
    silentLog.child({}).error({}, 'nobody hears');
  });

  it('errors keep code and cause', () => {
    const { log, last } = capture();
    log.error({ err: new KubeError(404, 'NotFound', 'gone') }, 'failed');
    const err = last().err as Record<string, unknown>;
    assert.deepEqual([err.type, err.message, err.code, err.reason], ['KubeError', 'gone', 404, 'NotFound']);
    log.error({ err: new Error('outer', { cause: new Error('inner') }) }, 'failed');
    assert.equal(((last().err as Record<string, unknown>).cause as Record<string, unknown>).message, 'inner');
  });

  const secrets: [rule: string, fields: object, message?: string][] = [
    ['private key in a field', { pem: PEM }],
    ['private key in the message', {}, `key is ${PEM}`],
    ['private key in an error', { err: new Error(`bad key ${PEM}`) }],
    ['private key that is cut off', { pem: PEM.slice(0, 100) }],
    ['private key in base64', { value: Buffer.from(PEM).toString('base64') }],
    ['private key in base64 at another alignment', { value: Buffer.from(`x${PEM}`).toString('base64') }],
    [
      'a Secret',
      { object: { kind: 'Secret', metadata: { name: 's' }, data: { 'tls.key': Buffer.from(PEM).toString('base64') } } },
    ],
    ['a Secret with text', { object: { kind: 'Secret', stringData: { password: BODY } } }],
    ['a field called token', { token: BODY }],
    ['a field called like a password', { dbPassword: BODY }],
    ['a header', { headers: { Authorization: `Bearer ${BODY}` } }],
    ['a header in words', {}, `sent Authorization: Bearer ${BODY}`],
    ['a web token', { url: `https://x/?t=${TOKEN}` }],
    ['a key object', { key: privateKey }],
    ['bytes', { bytes: Buffer.from(PEM) }],
    ['deep inside', { a: { b: [{ c: PEM }] } }],
    ['in a child', { child: true, pem: PEM }],
  ];
  for (const [rule, fields, message = 'x'] of secrets) {
    it(`never shows: ${rule}`, () => {
      const { log, lines } = capture();
      log.info(fields, message);
      log.child(fields).info({}, 'x');
      const text = lines.join('');
      for (const secret of [
        BODY,
        BODY.slice(0, 20),
        Buffer.from(BODY).toString('base64').slice(4, 24),
        TOKEN.split('.')[2] as string,
      ]) {
        assert.equal(text.includes(secret), false, text);
      }
    });
  }

  it('what is no secret stays', () => {
    const certificate = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----';
    assert.equal(redactedText(certificate), certificate);
    assert.deepEqual(redacted({ key: 'openshift-etcd/etcd-signer', tokens: 3, kind: 'ConfigMap', data: { a: 'b' } }), {
      key: 'openshift-etcd/etcd-signer',
      tokens: 3,
      kind: 'ConfigMap',
      data: { a: 'b' },
    });
  });

  it('is of bounded size', () => {
    const circle: Record<string, unknown> = {};
    circle.again = circle;
    assert.ok(
      JSON.stringify(redacted({ text: 'x'.repeat(1e6), list: Array.from({ length: 1e4 }, () => 1), circle })).length <
        20_000,
    );
  });
});
