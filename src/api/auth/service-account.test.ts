import assert from 'node:assert/strict';
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { describe, it } from 'node:test';
import type { Node, Pod, Secret, ServiceAccount } from 'kubernetes-types/core/v1.d.ts';
import { VirtualClock } from '../../kube/clock.ts';
import { hours, minutes, seconds } from '../../kube/duration.ts';
import { type SigningKey, signingKey, signJwt, verificationKey } from './jwt.ts';
import { createTokenIssuer, createTokenVerifier, type TokenSubjects } from './service-account.ts';
import { answerTokenRequest } from './token-request.ts';

const START = '2026-06-01T00:00:00Z';
const p256 = (): KeyObject => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
const key = signingKey(p256());
const otherKey = signingKey(p256());
const publicHalf = ({ key: secret }: SigningKey) => verificationKey(secret);

describe('service account tokens', () => {
  const account: ServiceAccount = { metadata: { namespace: 'n', name: 's', uid: 'su' } };
  const pod: Pod = {
    metadata: { namespace: 'n', name: 'p', uid: 'pu' },
    spec: { containers: [], serviceAccountName: 's', nodeName: 'node' },
  };
  const secret: Secret = { metadata: { namespace: 'n', name: 'c', uid: 'cu' } };
  const node: Node = { metadata: { name: 'node', uid: 'nu' } };

  function world(over: Partial<Record<'account' | 'pod' | 'secret' | 'node', object | undefined>> = {}) {
    const clock = new VirtualClock(START);
    const found = { account, pod, secret, node, ...over } as {
      account?: ServiceAccount;
      pod?: Pod;
      secret?: Secret;
      node?: Node;
    };
    const subjects: TokenSubjects = {
      serviceAccount: (namespace, name) => (namespace === 'n' && name === 's' ? found.account : undefined),
      pod: () => found.pod,
      secret: () => found.secret,
      node: () => found.node,
    };
    const issuer = createTokenIssuer({ issuer: 'https://api', key: () => key, clock });
    const verifier = createTokenVerifier({
      issuers: ['https://api'],
      keys: () => [publicHalf(otherKey), publicHalf(key)],
      apiAudiences: ['https://api'],
      subjects,
      clock,
    });
    return { clock, subjects, issuer, verifier, found };
  }
  const who = (token: string, verifier: ReturnType<typeof world>['verifier'], audiences = ['https://api']) => {
    const answer = verifier.authenticateToken(token, audiences);
    return answer?.ok === true ? answer.user.name : (answer?.why ?? 'not mine');
  };

  it('names the account, its groups and what the token is bound to', () => {
    const { issuer, verifier } = world();
    const answer = verifier.authenticateToken(issuer.issue(account, ['https://api', 'x'], hours(1), { pod, node }), [
      'https://api',
      'y',
    ]);
    assert.ok(answer?.ok);
    assert.equal(answer.user.name, 'system:serviceaccount:n:s');
    assert.equal(answer.user.uid, 'su');
    assert.deepEqual(answer.user.groups, [
      'system:serviceaccounts',
      'system:serviceaccounts:n',
      'system:authenticated',
    ]);
    const extra = (name: string) => answer.user.extra[`authentication.kubernetes.io/${name}`];
    assert.deepEqual(['pod-name', 'node-name', 'node-uid'].map(extra), [['p'], ['node'], ['nu']]);
    assert.match(extra('credential-id')?.[0] ?? '', /^JTI=[0-9a-f-]{36}$/);
    assert.deepEqual(answer.audiences, ['https://api']);
  });

  it('expires to the second', async () => {
    const { issuer, verifier, clock } = world();
    const token = issuer.issue(account, ['https://api'], minutes(10));
    await clock.advance(minutes(10) - 1);
    assert.equal(who(token, verifier), 'system:serviceaccount:n:s');
    await clock.advance(1);
    assert.equal(who(token, verifier), 'service account token has expired');
  });

  it('a clock set back a little does no harm', () => {
    const { issuer, verifier, clock } = world();
    const token = issuer.issue(account, ['https://api'], hours(1));
    clock.jumpTo(new Date(Date.parse(START) - seconds(60)));
    assert.equal(who(token, verifier), 'system:serviceaccount:n:s');
    clock.jumpTo(new Date(Date.parse(START) - seconds(61)));
    assert.equal(who(token, verifier), 'service account token is not valid yet');
  });

  const deleted = (object: { metadata?: object }, secondsAgo: number) => ({
    ...object,
    metadata: {
      ...object.metadata,
      deletionTimestamp: new Date(Date.parse(START) - seconds(secondsAgo)).toISOString(),
    },
  });
  const cases: [
    rule: string,
    binding: 'pod' | 'secret' | 'node' | 'none',
    over: Parameters<typeof world>[0],
    expected: string,
  ][] = [
    ['account gone', 'none', { account: undefined }, 'service account the token is for does not exist'],
    [
      'account created anew',
      'none',
      { account: { metadata: { ...account.metadata, uid: 'x' } } },
      'service account the token is for has been created anew since',
    ],
    ['account being deleted, just now', 'none', { account: deleted(account, 60) }, 'system:serviceaccount:n:s'],
    [
      'account being deleted for a while',
      'none',
      { account: deleted(account, 61) },
      'service account the token is for has been deleted',
    ],
    ['pod gone', 'pod', { pod: undefined }, 'pod the token is for does not exist'],
    [
      'pod created anew',
      'pod',
      { pod: { metadata: { ...pod.metadata, uid: 'x' } } },
      'pod the token is for has been created anew since',
    ],
    ['node of the pod gone', 'pod', { node: undefined }, 'system:serviceaccount:n:s'],
    ['secret gone', 'secret', { secret: undefined }, 'secret the token is for does not exist'],
    ['node gone', 'node', { node: undefined }, 'node the token is for does not exist'],
    ['all there', 'secret', {}, 'system:serviceaccount:n:s'],
  ];
  for (const [rule, binding, over, expected] of cases) {
    it(`bound object: ${rule}`, () => {
      const { issuer, verifier } = world(over);
      const bindings = { pod: { pod, node }, secret: { secret }, node: { node }, none: {} };
      assert.equal(who(issuer.issue(account, ['https://api'], hours(1), bindings[binding]), verifier), expected);
    });
  }

  it('other audiences, issuers and keys', () => {
    const { issuer, verifier } = world();
    assert.equal(
      who(issuer.issue(account, ['x'], hours(1)), verifier),
      'token audiences are not among those accepted here',
    );
    assert.equal(who(signJwt({ iss: 'https://other' }, key), verifier), 'not mine');
    assert.equal(who('opaque', verifier), 'not mine');
    assert.equal(
      who(signJwt({ iss: 'https://api' }, signingKey(p256())), verifier),
      'the signature does not hold for any key',
    );
    assert.equal(
      who(signJwt({ iss: 'https://api', aud: 'https://api' }, key), verifier),
      'service account token does not say when it expires',
    );
    const forged = {
      iss: 'https://api',
      aud: 'https://api',
      exp: 4e9,
      sub: 'system:serviceaccount:kube-system:admin',
      'kubernetes.io': { namespace: 'n', serviceaccount: { name: 's', uid: 'su' } },
    };
    assert.equal(who(signJwt(forged, key), verifier), 'sub claim is not the service account');
    const mine = { ...forged, sub: 'system:serviceaccount:n:s' };
    assert.equal(who(signJwt(mine, key), verifier), mine.sub);
    const early = { ...mine, nbf: Date.parse(START) / 1000 + 3600 };
    assert.equal(who(signJwt(early, key), verifier), 'service account token is not valid yet');
    const timeless = { ...mine, exp: 'never' };
    assert.equal(who(signJwt(timeless, key), verifier), 'service account token does not say when it expires');
  });

  it('a token in a Secret is good as long as the Secret holds it', () => {
    const { issuer, verifier, found } = world();
    const token = issuer.issueForSecret(account, 'c');
    assert.equal(who(token, verifier), "token does not match server's copy");
    found.secret = { ...secret, data: { token: Buffer.from(token).toString('base64') } };
    assert.equal(who(token, verifier), 'system:serviceaccount:n:s');
    assert.equal(who(token, verifier, ['x']), 'token audiences are not among those accepted here');
    const last = token.at(-1) === 'A' ? 'B' : 'A';
    const other = Buffer.from(token.slice(0, -1) + last).toString('base64');
    const held = found.secret;
    found.secret = { ...secret, data: { token: other } };
    assert.equal(who(token, verifier), "token does not match server's copy", 'one as long as it');
    const deleted = { deletionTimestamp: START };
    found.secret = { ...held, metadata: { ...secret.metadata, ...deleted } };
    assert.equal(who(token, verifier), 'token has been invalidated');
    found.secret = held;
    found.account = { metadata: { ...account.metadata, ...deleted } };
    assert.equal(who(token, verifier), 'service account has been deleted');
    found.account = { metadata: { ...account.metadata, uid: 'newer' } };
    assert.equal(who(token, verifier), 'service account UID does not match claim');
    delete found.account;
    assert.equal(who(token, verifier), 'service account has been deleted');
    delete found.secret;
    assert.equal(who(token, verifier), 'token has been invalidated');
  });

  it('a token in a Secret that names another account than its sub is nobody', () => {
    const { verifier, found } = world();
    const claims = {
      iss: 'kubernetes/serviceaccount',
      sub: 'system:serviceaccount:kube-system:admin',
      'kubernetes.io/serviceaccount/namespace': 'n',
      'kubernetes.io/serviceaccount/secret.name': 'c',
      'kubernetes.io/serviceaccount/service-account.name': 's',
      'kubernetes.io/serviceaccount/service-account.uid': 'su',
    };
    const inSecret = (sub: string) => {
      const token = signJwt({ ...claims, sub }, key);
      found.secret = { ...secret, data: { token: Buffer.from(token).toString('base64') } };
      return who(token, verifier);
    };
    assert.equal(inSecret(claims.sub), 'sub claim is not the service account');
    assert.equal(inSecret('system:serviceaccount:n:s'), 'system:serviceaccount:n:s');
  });

  describe('TokenRequest', () => {
    const context = () => ({ ...world(), account, apiAudiences: ['https://api'] });

    it('defaults: one hour, our own audience', () => {
      const { issuer, verifier, subjects, clock, account, apiAudiences } = context();
      const answer = answerTokenRequest(
        { spec: { audiences: [] } },
        { issuer, subjects, clock, account, apiAudiences },
      );
      assert.equal(answer.status?.expirationTimestamp, '2026-06-01T01:00:00Z');
      assert.deepEqual(answer.spec.audiences, ['https://api']);
      assert.equal(who(answer.status.token, verifier), 'system:serviceaccount:n:s');
    });

    it('may say nothing at all', () => {
      const answer = answerTokenRequest({ spec: {} } as Parameters<typeof answerTokenRequest>[0], context());
      assert.deepEqual([answer.spec.audiences, answer.metadata?.uid], [['https://api'], 'su']);
    });

    it('may say for whom it is, and leave out what it is bound to', () => {
      const metadata = { name: 's', namespace: 'n', uid: 'su' };
      const boundObjectRef = { kind: 'Pod', name: 'p', uid: '' };
      const answer = answerTokenRequest({ metadata, spec: { audiences: [], boundObjectRef } }, context());
      assert.ok(answer.status?.token);
    });

    it('is cut to the longest lifetime', () => {
      const answer = answerTokenRequest(
        { spec: { audiences: [], expirationSeconds: 86_400 } },
        { ...context(), maxLifetimeMs: hours(2) },
      );
      assert.deepEqual(
        [answer.spec.expirationSeconds, answer.status?.expirationTimestamp],
        [7200, '2026-06-01T02:00:00Z'],
      );
    });

    it('binds to a pod of the account', () => {
      const { verifier, ...rest } = context();
      const boundObjectRef = { kind: 'Pod', apiVersion: 'v1', name: 'p', uid: 'pu' };
      const answer = answerTokenRequest({ spec: { audiences: [], boundObjectRef } }, rest);
      const verified = verifier.authenticateToken(answer.status?.token ?? '', ['https://api']);
      assert.ok(verified?.ok);
      assert.deepEqual(verified.user.extra['authentication.kubernetes.io/pod-uid'], ['pu']);
      assert.deepEqual(verified.user.extra['authentication.kubernetes.io/node-name'], ['node']);
    });

    const bad: [rule: string, request: object, code: number, message: RegExp][] = [
      [
        'too short',
        { spec: { audiences: [], expirationSeconds: 300 } },
        422,
        /spec.expirationSeconds: Invalid value: 300: may not specify a duration less than 10 minutes/,
      ],
      ['too long', { spec: { audiences: [], expirationSeconds: 2 ** 33 } }, 422, /larger than 2\^32 seconds/],
      ['not a number', { spec: { audiences: [], expirationSeconds: 'x' } }, 422, /whole number of seconds/],
      [
        'another account',
        { metadata: { name: 'x' }, spec: { audiences: [] } },
        422,
        /must match the service account name if specified/,
      ],
      [
        'another namespace',
        { metadata: { namespace: 'x' }, spec: { audiences: [] } },
        422,
        /must match the service account namespace if specified/,
      ],
      [
        'something of another group',
        { spec: { audiences: [], boundObjectRef: { kind: 'Pod', apiVersion: 'x.io/v1', name: 'p' } } },
        400,
        /cannot bind token to object of type x.io\/v1, Kind=Pod/,
      ],
      [
        'another uid',
        { metadata: { uid: 'x' }, spec: { audiences: [] } },
        409,
        /does not match the UID of the service account/,
      ],
      [
        'pod uid',
        { spec: { audiences: [], boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'p', uid: 'x' } } },
        409,
        /the UID in the bound object reference \(x\) does not match the UID in record/,
      ],
      [
        'other kind',
        { spec: { audiences: [], boundObjectRef: { kind: 'Service', apiVersion: 'v1', name: 'p' } } },
        400,
        /cannot bind token to object of type \/v1, Kind=Service/,
      ],
    ];
    for (const [rule, request, code, message] of bad) {
      it(`refused: ${rule}`, () => {
        assert.throws(() => answerTokenRequest(request as Parameters<typeof answerTokenRequest>[0], context()), {
          code,
          message,
        });
      });
    }

    it('refused: pod of another account, pod that is gone', () => {
      const boundObjectRef = { kind: 'Pod', apiVersion: 'v1', name: 'p' };
      const other = { ...pod, spec: { containers: [], serviceAccountName: 'x' } };
      const answer = (over: Parameters<typeof world>[0]) => () =>
        answerTokenRequest({ spec: { audiences: [], boundObjectRef } }, { ...world(over), account, apiAudiences: [] });
      assert.throws(answer({ pod: other }), { code: 400, message: /running with different serviceaccount name/ });
      const unaccounted = { ...pod, spec: { containers: [] } };
      const byDefault = { ...account, metadata: { ...account.metadata, name: 'default' } };
      assert.throws(
        () =>
          answerTokenRequest(
            { spec: { audiences: [], boundObjectRef } },
            { ...world({ pod: unaccounted }), account: byDefault, apiAudiences: [] },
          ),
        { code: 400, message: /running with different serviceaccount name/ },
      );
      assert.throws(answer({ pod: undefined }), { code: 404, message: 'pods "p" not found' });
    });
  });
});
