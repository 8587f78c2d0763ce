import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { CertificateSigningRequest } from 'kubernetes-types/certificates/v1.d.ts';
import { days, hours, minutes, seconds } from '../../kube/duration.ts';
import type { CertificateAndKey } from '../../pki/authority.ts';
import { verifyChain } from '../../pki/chain.ts';
import { createCertificateRequest, encodeCertificateRequest } from '../../pki/csr.ts';
import { issueSigner } from '../../pki/issue.ts';
import { seededKeys } from '../../pki/keys.ts';
import { encodeCertificates, readCertificates } from '../../pki/pem.ts';
import { formatFieldError } from '../schema/field-error.ts';
import type { Authorizer } from './authorize.ts';
import { signedStatus } from './signer.ts';
import {
  checkApproval,
  checkRequestedSubject,
  checkSigning,
  prepareSigningRequest,
  prepareSigningRequestUpdate,
  signingRequestErrors,
  signingRequestUpdateErrors,
} from './signing-request.ts';

const keys = seededKeys('signing requests');
const now = new Date('2026-06-01T00:00:00Z');
const CLIENT = 'kubernetes.io/kube-apiserver-client';
const KUBELET = 'kubernetes.io/kube-apiserver-client-kubelet';
const SERVING = 'kubernetes.io/kubelet-serving';
const CLIENT_USAGES = ['digital signature', 'client auth'];
const SERVING_USAGES = ['digital signature', 'key encipherment', 'server auth'];

const NODE = { commonName: 'system:node:a', organizations: ['system:nodes'] };
const USER = { commonName: 'u', organizations: ['dev'] };
const requests = new Map<string, string>();
let ca: CertificateAndKey;

async function encoded(
  name: string,
  subject: typeof NODE,
  dnsNames: string[] = [],
  ipAddresses: string[] = [],
): Promise<void> {
  const key = await keys.generate('P-256');
  const request = await createCertificateRequest({ keys, key, subject, dnsNames, ipAddresses });
  requests.set(name, Buffer.from(encodeCertificateRequest(request)).toString('base64'));
}

function requestFor(pem: string, signerName: string, usages: string[], over: object = {}): CertificateSigningRequest {
  const request = requests.get(pem) ?? pem;
  return { metadata: { name: 'r' }, spec: { request, signerName, usages }, ...over };
}

const approved = { type: 'Approved', status: 'True', reason: 'r', message: 'm' };

describe('certificate signing requests', () => {
  before(async () => {
    ca = await issueSigner({ keys, now, algorithm: 'P-256', commonName: 'ca', lifetimeMs: days(10) });
    await encoded('user', USER);
    await encoded('master', { commonName: 'm', organizations: ['system:masters'] });
    await encoded('node', NODE);
    await encoded('node with name', NODE, ['a.example']);
    await encoded('server', NODE, ['a.example']);
    await encoded('node with address', NODE, [], ['10.0.0.1']);
    await encoded('node and master', { ...NODE, organizations: ['system:nodes', 'system:masters'] }, ['a.example']);
    await encoded('odd node', { commonName: 'a', organizations: ['system:nodes'] });
  });

  it('a new request carries who asks, and nothing decided', () => {
    const forged = requestFor('user', CLIENT, CLIENT_USAGES);
    forged.spec.username = 'system:admin';
    forged.status = { conditions: [approved], certificate: 'x' };
    const prepared = prepareSigningRequest(forged, { name: 'u', uid: '7', groups: ['g'], extra: { k: ['v'] } });
    assert.deepEqual(prepared.spec, {
      ...requestFor('user', CLIENT, CLIENT_USAGES).spec,
      username: 'u',
      uid: '7',
      groups: ['g'],
      extra: { k: ['v'] },
    });
    assert.deepEqual(prepared.status, {});
  });

  const cases: [rule: string, pem: string, signer: string, usages: string[], spec: object, errors: RegExp[]][] = [
    ['good', 'user', CLIENT, CLIENT_USAGES, { expirationSeconds: 600 }, []],
    ['not a request', 'eA==', CLIENT, CLIENT_USAGES, {}, [/^spec.request: Invalid value: .*CERTIFICATE REQUEST/]],
    ['no usages', 'user', CLIENT, [], {}, [/^spec.usages: Required value/]],
    [
      'unknown usage',
      'user',
      CLIENT,
      ['flying'],
      {},
      [/^spec.usages\[0\]: Unsupported value: "flying": supported values: "any"/],
    ],
    [
      'usage twice',
      'user',
      CLIENT,
      ['client auth', 'client auth'],
      {},
      [/^spec.usages\[1\]: Duplicate value: "client auth"/],
    ],
    [
      'too short',
      'user',
      CLIENT,
      CLIENT_USAGES,
      { expirationSeconds: 599 },
      [/^spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 600 seconds/],
    ],
    ['no signer', 'user', '', CLIENT_USAGES, {}, [/^spec.signerName: Required value/]],
    [
      'legacy signer',
      'user',
      'kubernetes.io/legacy-unknown',
      CLIENT_USAGES,
      {},
      [/the legacy signerName is not allowed/],
    ],
    ['signer without path', 'user', 'example.com', CLIENT_USAGES, {}, [/must be a fully qualified domain and path/]],
    ['signer without domain', 'user', 'example/x', CLIENT_USAGES, {}, [/at least two segments/]],
    ['signer with a longer path', 'user', 'example.com/x/y', CLIENT_USAGES, {}, [/fully qualified domain and path/]],
    ['signer of a domain in capitals', 'user', 'Example.com/x', CLIENT_USAGES, {}, [/validating label "Example.com"/]],
    ['signer in capitals', 'user', 'example.com/X', CLIENT_USAGES, {}, [/validating label "X"/]],
  ];
  for (const [rule, pem, signer, usages, spec, errors] of cases) {
    it(`validation: ${rule}`, () => {
      const request = requestFor(pem, signer, usages);
      const found = signingRequestErrors({ ...request, spec: { ...request.spec, ...spec } }).map(formatFieldError);
      assert.equal(found.length, errors.length, found.join('\n'));
      errors.forEach((error, index) => assert.match(found[index] ?? '', error));
    });
  }

  it('nobody becomes a master this way', () => {
    assert.throws(() => checkRequestedSubject(requestFor('master', CLIENT, CLIENT_USAGES)), {
      code: 403,
      message:
        'certificatesigningrequests.certificates.k8s.io "r" is forbidden: use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed',
    });
    checkRequestedSubject(requestFor('user', CLIENT, CLIENT_USAGES));
    checkRequestedSubject(requestFor('master', 'example.com/other', CLIENT_USAGES));
  });

  describe('updates', () => {
    const old = () => requestFor('user', CLIENT, CLIENT_USAGES, { status: {} });

    it('approval changes conditions only, and stamps them', () => {
      const wanted = { ...old(), status: { conditions: [approved], certificate: 'x' } };
      const prepared = prepareSigningRequestUpdate(wanted, old(), 'approval', now);
      const time = '2026-06-01T00:00:00Z';
      assert.deepEqual(prepared.status, {
        conditions: [{ ...approved, lastUpdateTime: time, lastTransitionTime: time }],
      });
      assert.deepEqual(signingRequestUpdateErrors(prepared, old(), 'approval'), []);
    });

    it('the signer stores a certificate once, and may fail', () => {
      const certificate = Buffer.from(encodeCertificates(ca.chain)).toString('base64');
      const signed = { ...old(), status: { conditions: [approved], certificate } };
      const waiting = { ...old(), status: { conditions: [approved] } };
      assert.deepEqual(signingRequestUpdateErrors(signed, waiting, 'status'), []);
      assert.deepEqual(signingRequestUpdateErrors(signed, signed, 'status'), []);
      const failed = { ...old(), status: { conditions: [approved, { type: 'Failed', status: 'True' }] } };
      assert.deepEqual(signingRequestUpdateErrors(failed, waiting, 'status'), []);
    });

    it('a condition that stays keeps the time since which it holds', () => {
      const time = '2026-05-01T00:00:00Z';
      const other = { type: 'Other', status: 'True', lastTransitionTime: '2026-05-02T00:00:00Z' };
      const before = { ...old(), status: { conditions: [other, { ...approved, lastTransitionTime: time }] } };
      const since = (condition: object) => {
        const wanted = { ...old(), status: { conditions: [condition as typeof approved] } };
        const { status } = prepareSigningRequestUpdate(wanted, before, 'approval', now);
        return status?.conditions?.[0]?.lastTransitionTime;
      };
      assert.equal(since(approved), time);
      assert.equal(since({ ...approved, status: 'Unknown' }), '2026-06-01T00:00:00Z');
    });

    it('the main door changes neither spec nor status', () => {
      const wanted = requestFor('master', SERVING, ['any'], { status: { conditions: [approved] } });
      const prepared = prepareSigningRequestUpdate(wanted, old(), 'main', now);
      assert.deepEqual([prepared.spec, prepared.status], [old().spec, {}]);
    });

    const withConditions = (...conditions: object[]) =>
      ({ ...old(), status: { conditions } }) as CertificateSigningRequest;
    const certified = (certificate: string) => ({ ...old(), status: { certificate } }) as CertificateSigningRequest;
    const bad: [
      rule: string,
      next: () => CertificateSigningRequest,
      before: () => CertificateSigningRequest,
      door: 'approval' | 'status',
      error: RegExp,
    ][] = [
      [
        'approval is taken back',
        old,
        () => withConditions(approved),
        'approval',
        /updates may not remove a condition of type "Approved"/,
      ],
      [
        'approved and denied',
        () => withConditions(approved, { type: 'Denied', status: 'True' }),
        old,
        'approval',
        /mutually exclusive/,
      ],
      [
        'approved by the signer',
        () => withConditions(approved),
        old,
        'status',
        /updates may not add a condition of type "Approved"/,
      ],
      [
        'approval changed by the signer',
        () => withConditions({ ...approved, reason: 'x' }),
        () => withConditions(approved),
        'status',
        /updates may not modify a condition of type "Approved"/,
      ],
      [
        'approval that is false',
        () => withConditions({ ...approved, status: 'False' }),
        old,
        'approval',
        /status.conditions\[0\].status: Unsupported value: "False"/,
      ],
      [
        'condition without type',
        () => withConditions({ type: '', status: 'True' }),
        old,
        'status',
        /status.conditions\[0\].type: Required value/,
      ],
      [
        'certificate through approval',
        () => certified('LS0t'),
        old,
        'approval',
        /updates may not set certificate content/,
      ],
      [
        'another certificate',
        () => certified('eA=='),
        () => certified('eQ=='),
        'status',
        /updates may not modify existing certificate content/,
      ],
      [
        'condition without a status',
        () => withConditions({ ...approved, status: undefined }),
        old,
        'approval',
        /status.conditions\[0\].status: Required value/,
      ],
      [
        'condition twice',
        () => withConditions(approved, approved),
        old,
        'approval',
        /status.conditions\[1\].type: Duplicate value: "Approved"/,
      ],
      [
        'certificate that is none',
        () => certified('eA=='),
        old,
        'status',
        /must contain at least one CERTIFICATE PEM block/,
      ],
    ];
    for (const [rule, next, before, door, error] of bad) {
      it(`refused: ${rule}`, () => {
        const messages = signingRequestUpdateErrors(next(), before(), door).map(formatFieldError);
        assert.ok(
          messages.some(message => error.test(message)),
          messages.join('\n'),
        );
      });
    }
  });

  describe('permission', () => {
    const user = { name: 'u', uid: '', groups: [], extra: {} };
    const only = (verb: string, name: string): Authorizer => ({
      authorize: attributes => {
        const asked =
          !('path' in attributes) &&
          attributes.resource === 'signers' &&
          attributes.verb === verb &&
          attributes.name === name;
        return { verdict: asked ? 'allow' : 'no-opinion', reason: '' };
      },
    });

    it('approve, for one signer or for a whole domain', () => {
      checkApproval(only('approve', CLIENT), user, requestFor('user', CLIENT, CLIENT_USAGES));
      checkApproval(only('approve', 'kubernetes.io/*'), user, requestFor('user', CLIENT, CLIENT_USAGES));
      assert.throws(() => checkApproval(only('approve', SERVING), user, requestFor('user', CLIENT, CLIENT_USAGES)), {
        code: 403,
        message: `certificatesigningrequests.certificates.k8s.io "r" is forbidden: user not permitted to approve requests with signerName "${CLIENT}"`,
      });
    });

    it('sign, only where something changes', () => {
      const old = requestFor('user', CLIENT, CLIENT_USAGES);
      const signed = { ...old, status: { certificate: 'x' } };
      checkSigning(only('sign', 'nothing'), user, old, old);
      checkSigning(only('sign', CLIENT), user, signed, old);
      assert.throws(() => checkSigning(only('approve', CLIENT), user, signed, old), { code: 403 });
    });
  });

  describe('signing', () => {
    const options = { authority: () => ca, keys, lifetimeMs: days(1) };
    const sign = (pem: string, signer: string, usages: string[], spec: object = {}) => {
      const request = requestFor(pem, signer, usages, { status: { conditions: [approved] } });
      return signedStatus({ ...request, spec: { ...request.spec, ...spec } }, options, now);
    };
    const certificateOf = (status: CertificateSigningRequest['status']) => {
      const { certificates } = readCertificates(Buffer.from(status?.certificate ?? '', 'base64').toString());
      const [certificate] = certificates;
      assert.ok(certificate, JSON.stringify(status));
      return certificate;
    };

    it('a client certificate for the key of the request', async () => {
      const certificate = certificateOf(await sign('user', CLIENT, CLIENT_USAGES));
      assert.deepEqual([certificate.subject.commonName, certificate.subject.organizations], ['u', ['dev']]);
      assert.equal(verifyChain({ leaf: certificate, roots: ca.chain, now, usage: 'clientAuth' }).ok, true);
      assert.equal(verifyChain({ leaf: certificate, roots: ca.chain, now, usage: 'serverAuth' }).ok, false);
      assert.equal(certificate.isCA, false);
    });

    it('a serving certificate for addresses alone', async () => {
      const certificate = certificateOf(await sign('node with address', SERVING, SERVING_USAGES));
      assert.deepEqual([certificate.dnsNames, certificate.ipAddresses], [[], ['10.0.0.1']]);
    });

    it('a serving certificate for the names of the request', async () => {
      const certificate = certificateOf(await sign('server', SERVING, SERVING_USAGES));
      assert.equal(
        verifyChain({ leaf: certificate, roots: ca.chain, now, usage: 'serverAuth', host: 'a.example' }).ok,
        true,
      );
    });

    const lifetimes: [rule: string, asked: number | undefined, lifetimeMs: number][] = [
      ['the default', undefined, days(1)],
      ['less on request', 3600, hours(1)],
      ['never more', 10 * 86_400, days(1)],
      ['never so little that it is no use', 1, minutes(10)],
    ];
    for (const [rule, asked, lifetimeMs] of lifetimes) {
      it(`lifetime: ${rule}`, async () => {
        const certificate = certificateOf(
          await sign('user', CLIENT, CLIENT_USAGES, asked === undefined ? {} : { expirationSeconds: asked }),
        );
        assert.equal(certificate.notAfter.getTime() - now.getTime(), lifetimeMs);
        assert.ok(certificate.notBefore.getTime() <= now.getTime() - seconds(1));
      });
    }

    const failing: [rule: string, pem: string, signer: string, usages: string[], message: string][] = [
      [
        'serving usage for a client',
        'user',
        CLIENT,
        ['server auth'],
        'invalid usage for client certificate: server auth',
      ],
      [
        'client without client auth',
        'user',
        CLIENT,
        ['digital signature'],
        'missing required usage for client certificate: client auth',
      ],
      ['kubelet client of a user', 'user', KUBELET, CLIENT_USAGES, 'subject organization is not system:nodes'],
      ['kubelet client with a name', 'node with name', KUBELET, CLIENT_USAGES, 'DNS subjectAltNames are not allowed'],
      [
        'kubelet client of no node',
        'odd node',
        KUBELET,
        CLIENT_USAGES,
        'subject common name does not begin with system:node:',
      ],
      [
        'kubelet client with serving usage',
        'node',
        KUBELET,
        SERVING_USAGES,
        'usages did not match [client auth digital signature key encipherment]',
      ],
      [
        'kubelet client with an address',
        'node with address',
        KUBELET,
        CLIENT_USAGES,
        'IP subjectAltNames are not allowed',
      ],
      [
        'kubelet client with a usage more',
        'node',
        KUBELET,
        [...CLIENT_USAGES, 'code signing'],
        'usages did not match [client auth digital signature key encipherment]',
      ],
      ...[KUBELET, SERVING].map((signer): (typeof failing)[0] => [
        `node that would be a master too, by ${signer}`,
        'node and master',
        signer,
        signer === KUBELET ? CLIENT_USAGES : SERVING_USAGES,
        'subject organization is not system:nodes',
      ]),
      ['server without names', 'node', SERVING, SERVING_USAGES, 'DNS or IP subjectAltName is required'],
      ['server of a user', 'user', SERVING, SERVING_USAGES, 'subject organization is not system:nodes'],
    ];
    for (const [rule, pem, signer, usages, message] of failing) {
      it(`failed: ${rule}`, async () => {
        const status = await sign(pem, signer, usages);
        const condition = status?.conditions?.at(-1);
        assert.deepEqual(
          [status?.certificate, condition?.type, condition?.status, condition?.reason, condition?.message],
          [undefined, 'Failed', 'True', 'SignerValidationFailure', message],
        );
      });
    }

    it('nothing to do', async () => {
      const denied = { type: 'Denied', status: 'True' };
      const idle = (status: object) =>
        signedStatus(requestFor('user', CLIENT, CLIENT_USAGES, { status }), options, now);
      assert.equal(await idle({}), undefined);
      assert.equal(await idle({ conditions: [{ ...approved, status: 'False' }] }), undefined);
      assert.equal(await idle({ conditions: [approved, denied] }), undefined);
      assert.equal(await idle({ conditions: [approved, { type: 'Failed', status: 'True' }] }), undefined);
      assert.equal(await idle({ conditions: [approved], certificate: 'x' }), undefined);
      assert.equal(await sign('user', 'example.com/other', CLIENT_USAGES), undefined);
      const without = { ...options, authority: () => undefined };
      assert.equal(
        await signedStatus(
          requestFor('user', CLIENT, CLIENT_USAGES, { status: { conditions: [approved] } }),
          without,
          now,
        ),
        undefined,
      );
    });
  });
});
