import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientHttp2Session, type ClientHttp2Stream, connect, type IncomingHttpHeaders } from 'node:http2';
import { request as httpsRequest } from 'node:https';
import { after, before, describe, it } from 'node:test';
import { load } from 'js-yaml';
import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { VirtualClock } from '../../kube/clock.ts';
import { days, hours } from '../../kube/duration.ts';
import { CONFIG_MAPS, NAMESPACES, PODS, SECRETS, SERVICE_ACCOUNTS } from '../../kube/resource.ts';
import { issueClient, issueSigner } from '../../pki/issue.ts';
import { systemKeys } from '../../pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../../pki/pem.ts';
import { type Api, startApi } from '../api.ts';
import { decodeProtobuf } from '../protobuf/decode.ts';

interface Answer {
  readonly code: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: Record<string, any>; // eslint-disable-line typescript/no-explicit-any
}

interface Login {
  readonly ca: string;
  readonly cert?: string;
  readonly key?: string;
}

/** The credentials in a kubeconfig. */
function loginOf(kubeconfig: string): Login {
  const config = load(kubeconfig) as {
    clusters: { cluster: Record<string, string> }[];
    users: { user: Record<string, string> }[];
  };
  const text = (base64: string | undefined) => Buffer.from(base64 ?? '', 'base64').toString();
  return {
    ca: text(config.clusters[0]?.cluster['certificate-authority-data']),
    cert: text(config.users[0]?.user['client-certificate-data']),
    key: text(config.users[0]?.user['client-key-data']),
  };
}

function ask(
  session: ClientHttp2Session,
  method: string,
  path: string,
  body?: string | Buffer,
  headers: Record<string, string> = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const head = { ':method': method, ':path': path, 'content-type': 'application/json', ...headers };
    const stream = session.request(head, { endStream: body === undefined });
    let received: IncomingHttpHeaders & { ':status'?: number } = {};
    let text = '';
    stream.setEncoding('utf8');
    stream.on('response', answered => {
      received = answered as IncomingHttpHeaders & { ':status'?: number };
    });
    stream.on('data', (chunk: string) => {
      text += chunk;
    });
    stream.on('end', () => resolve({ code: Number(received[':status']), headers: received, text, body: parsed(text) }));
    stream.on('error', reject);
    if (body !== undefined) stream.end(body);
  });
}

function parsed(text: string): Answer['body'] {
  try {
    return JSON.parse(text) as Answer['body'];
  } catch {
    return {};
  }
}

describe('the API over HTTPS', () => {
  let api: Api;
  let clock: VirtualClock;
  let login: Login;
  let session: ClientHttp2Session;
  const sessions: ClientHttp2Session[] = [];
  const errors: unknown[] = [];

  before(async () => {
    clock = new VirtualClock(new Date());
    api = await startApi({ clock, onError: (_, error) => errors.push(error) });
    login = loginOf(api.kubeconfig);
    session = open(login);
    await api.kube.create(NAMESPACES, { metadata: { name: 'web' } });
    await api.engine.idle();
  });
  after(async () => {
    for (const open of sessions) open.close();
    await api.close();
    assert.deepEqual(errors, []);
  });

  function open(options: Login): ClientHttp2Session {
    // A client of Node refuses the answer while it still holds too much of its own request.
    const opened = connect(api.url, { ...options, maxSessionMemory: 200 });
    opened.on('error', () => {});
    sessions.push(opened);
    return opened;
  }

  const secrets = '/api/v1/namespaces/web/secrets';
  const secret = (name: string) => JSON.stringify({ metadata: { name } });

  function isStatus(
    { body, code }: Answer,
    expected: number,
    reason: string | undefined,
    message: RegExp | string,
  ): void {
    assert.deepEqual(
      [code, body['kind'], body['status'], body['code'], body['reason']],
      [expected, 'Status', 'Failure', expected, reason],
      JSON.stringify(body),
    );
    if (typeof message === 'string') assert.equal(body['message'], message);
    else assert.match(body['message'] as string, message);
  }

  it('answers bad input with the Status a real server gives', async () => {
    const cases: [
      string,
      string,
      string | undefined,
      Record<string, string>,
      number,
      string | undefined,
      RegExp | string,
    ][] = [
      ['POST', secrets, '{', {}, 400, 'BadRequest', /must be of type Secret\).*unexpected end of JSON input$/],
      ['POST', secrets, '[]', {}, 400, 'BadRequest', /the object provided is unrecognized \(must be of type Secret\)/],
      ['POST', secrets, `${'['.repeat(100_000)}${']'.repeat(100_000)}`, {}, 400, 'BadRequest', /unrecognized/],
      [
        'POST',
        secrets,
        `{"data":${'{"a":'.repeat(5000)}1${'}'.repeat(5000)}}`,
        {},
        400,
        'BadRequest',
        /nested too deeply/,
      ],
      [
        'POST',
        secrets,
        secret('x'),
        { 'content-type': 'text/plain' },
        415,
        'UnsupportedMediaType',
        /^the body of the request was in an unknown format/,
      ],
      [
        'POST',
        `${secrets}?fieldValidation=Strict`,
        '{"metadata":{"name":"x"},"spec":1}',
        {},
        400,
        'BadRequest',
        /strict decoding error: unknown field "spec"/,
      ],
      [
        'POST',
        `${secrets}?fieldValidation=Foo`,
        secret('x'),
        {},
        422,
        'Invalid',
        /fieldValidation: Unsupported value: "Foo"/,
      ],
      ['POST', `${secrets}?dryRun=Foo`, secret('x'), {}, 422, 'Invalid', /dryRun: Unsupported value/],
      [
        'POST',
        '/api/v1/secrets',
        secret('x'),
        {},
        405,
        'MethodNotAllowed',
        'the server does not allow this method on the requested resource',
      ],
      ['PUT', secrets, '{}', {}, 405, 'MethodNotAllowed', /./],
      [
        'PUT',
        `${secrets}/a`,
        secret('b'),
        {},
        400,
        'BadRequest',
        'the name of the object (b) does not match the name on the URL (a)',
      ],
      ['PATCH', `${secrets}/a`, '{}', {}, 415, 'UnsupportedMediaType', /./],
      [
        'PATCH',
        `${secrets}/a`,
        '{}',
        { 'content-type': 'application/apply-patch+yaml' },
        422,
        'Invalid',
        /fieldManager: Required value/,
      ],
      [
        'PATCH',
        `${secrets}/a?fieldManager=m`,
        'a: &a [1]\nb: *a',
        { 'content-type': 'application/apply-patch+yaml' },
        400,
        'BadRequest',
        /^error decoding YAML/,
      ],
      ['GET', `${secrets}/..%2f..%2fx`, undefined, {}, 404, 'NotFound', /./],
      [
        'GET',
        `${secrets}/a%25b`,
        undefined,
        {},
        400,
        'BadRequest',
        'Name parameter invalid: "a%b": may not contain \'%\'',
      ],
      ['GET', `${secrets}/%zz`, undefined, {}, 400, 'BadRequest', /escape/],
      ['GET', `${secrets}/a`, undefined, {}, 404, 'NotFound', 'secrets "a" not found'],
      [
        'GET',
        '/api/v1/namespaces/web/foos',
        undefined,
        {},
        404,
        'NotFound',
        'the server could not find the requested resource',
      ],
      ['GET', `${secrets}?labelSelector=a%3D%3D%3D`, undefined, {}, 400, 'BadRequest', /unable to parse requirement/],
      ['GET', `${secrets}?limit=x`, undefined, {}, 400, 'BadRequest', 'strconv.ParseInt: parsing "x": invalid syntax'],
      ['GET', `${secrets}?resourceVersion=99999999`, undefined, {}, 504, 'Timeout', /Too large resource version/],
      [
        'GET',
        `${secrets}?resourceVersionMatch=Exact`,
        undefined,
        {},
        422,
        'Invalid',
        /resourceVersionMatch is forbidden unless resourceVersion is provided/,
      ],
      [
        'GET',
        `${secrets}?watch=1&sendInitialEvents=true`,
        undefined,
        {},
        422,
        'Invalid',
        /sendInitialEvents requires setting resourceVersionMatch/,
      ],
      [
        'GET',
        `${secrets}?watch=1`,
        undefined,
        { accept: 'application/vnd.kubernetes.protobuf;stream=other' },
        406,
        'NotAcceptable',
        /^only the following media types are accepted: application\/json, /,
      ],
    ];
    for (const [method, path, body, headers, code, reason, message] of cases) {
      isStatus(await ask(session, method, path, body, headers), code, reason, message);
    }
  });

  it('refuses options that make no sense', async () => {
    const containers = [{ name: 'c', image: 'i' }];
    await api.kube.create(PODS, { metadata: { name: 'idle', namespace: 'web' }, spec: { containers } });
    const log = '/api/v1/namespaces/web/pods/idle/log';
    const refused = 'PodLogOptions "idle" is invalid:';
    const cases: [string, string | RegExp][] = [
      [`${log}?tailLines=-1`, `${refused} tailLines: Invalid value: -1: must be greater than or equal to 0`],
      [`${log}?sinceSeconds=0`, `${refused} sinceSeconds: Invalid value: 0: must be greater than 0`],
      [`${log}?limitBytes=0`, `${refused} limitBytes: Invalid value: 0: must be greater than 0`],
      [`${log}?sinceSeconds=1&sinceTime=2026-01-01T00:00:00Z`, /at most one of `sinceTime` or `sinceSeconds`/],
      [
        `${secrets}?resourceVersionMatch=Exact&resourceVersion=1&continue=abc`,
        /is forbidden when continue is provided/,
      ],
      [`${secrets}?resourceVersionMatch=Newest&resourceVersion=1`, /resourceVersionMatch: Unsupported value: "Newest"/],
      [`${secrets}?resourceVersionMatch=Exact&resourceVersion=0`, /is forbidden for resourceVersion "0"/],
      [`${secrets}?sendInitialEvents=true`, /sendInitialEvents is forbidden for list/],
      [
        `${secrets}?watch=1&resourceVersionMatch=NotOlderThan`,
        /forbidden for watch unless sendInitialEvents is provided/,
      ],
      [`${secrets}?watch=1&sendInitialEvents=1&resourceVersionMatch=Exact`, /Unsupported value: "Exact"/],
      [`${secrets}?watch=1&continue=abc`, /resourceVersionMatch is forbidden when continue is provided/],
    ];
    for (const [path, message] of cases) isStatus(await ask(session, 'GET', path), 422, 'Invalid', message);
    assert.equal((await ask(session, 'HEAD', secrets)).code, 405);
    const labels = { app: 'd' };
    const spec = { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } };
    const deployments = '/apis/apps/v1/namespaces/web/deployments';
    await ask(session, 'POST', deployments, JSON.stringify({ metadata: { name: 'd' }, spec }));
    const negative = JSON.stringify({ metadata: { name: 'd' }, spec: { replicas: -1 } });
    const why = 'spec.replicas: Invalid value: -1: must be greater than or equal to 0';
    const scaled = await ask(session, 'PUT', `${deployments}/d/scale`, negative);
    isStatus(scaled, 422, 'Invalid', `Scale.autoscaling "d" is invalid: ${why}`);
    const gone = await ask(session, 'DELETE', '/api/v1/namespaces/web/pods/idle?gracePeriodSeconds=0');
    assert.equal(gone.body['metadata'].deletionGracePeriodSeconds, 0);
    assert.ok(gone.body['metadata'].deletionTimestamp);
  });

  it('refuses numbers it could not give back', async () => {
    const pod = (seconds: string) =>
      `{"metadata":{"name":"n"},"spec":{"activeDeadlineSeconds":${seconds},"containers":[{"name":"c","image":"i"}]}}`;
    const pods = '/api/v1/namespaces/web/pods?dryRun=All';
    for (const number of ['9007199254740993', '-9223372036854775808', '1e400', '1'.repeat(400)]) {
      const answer = await ask(session, 'POST', pods, pod(number));
      isStatus(
        answer,
        400,
        'BadRequest',
        /^Pod in version "v1" cannot be handled as a Pod: the number \S+ cannot be kept/,
      );
    }
    const yaml = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: n, generation: 9007199254740993}\n';
    const type = { 'content-type': 'application/apply-patch+yaml' };
    const path = '/api/v1/namespaces/web/configmaps/n?fieldManager=me&dryRun=All';
    isStatus(await ask(session, 'PATCH', path, yaml, type), 400, 'BadRequest', /error decoding patch: the number/);
  });

  describe('answers in protocol buffers those who take nothing else', () => {
    const accept = 'application/vnd.kubernetes.protobuf';
    const buffer = '/api/v1/namespaces/default/configmaps/buffer';
    before(() =>
      api.kube.create(CONFIG_MAPS, { metadata: { name: 'buffer', namespace: 'default' }, data: { k: 'v' } }),
    );

    async function request(path: string, accepted = accept) {
      const stream = session.request({ ':path': path, accept: accepted });
      const [head] = (await once(stream, 'response')) as [IncomingHttpHeaders];
      return { stream, code: Number(head[':status']), type: head['content-type'] };
    }

    it('objects and errors', async () => {
      const cases: [string, number, object][] = [
        [buffer, 200, { kind: 'ConfigMap', data: { k: 'v' } }],
        [`${buffer}-no`, 404, { kind: 'Status', reason: 'NotFound', message: 'configmaps "buffer-no" not found' }],
        ['/api/v1/none', 404, { kind: 'Status', reason: 'NotFound' }],
        ['/apis/apiextensions.k8s.io/v1/customresourcedefinitions', 406, { kind: 'Status', reason: 'NotAcceptable' }],
      ];
      for (const [path, expected, part] of cases) {
        const { stream, code, type } = await request(path);
        assert.deepEqual([code, type], [expected, accept], path);
        const chunks = (await stream.toArray()) as Buffer[];
        assert.partialDeepStrictEqual(decodeProtobuf(Buffer.concat(chunks)), part);
      }
    });

    it('watches', async () => {
      const path = '/api/v1/namespaces/default/configmaps?watch=1&fieldSelector=metadata.name=buffer';
      for (const accepted of [accept, `${accept};stream=watch`]) {
        const { stream, code, type } = await request(path, accepted);
        assert.deepEqual([code, type], [200, `${accept};stream=watch`]);
        const event = await firstFrame(stream);
        assert.equal(event.toString('latin1', 0, 7), '\n\x05ADDED');
        const { kind, data } = decodeProtobuf(event.subarray(event.indexOf('k8s\0'))) as ConfigMap;
        assert.deepEqual([kind, data], ['ConfigMap', { k: 'v' }]);
        stream.close();
      }
      // The server hears of it in its own time.
      while (api.watches() > 0) await new Promise(resolve => setImmediate(resolve));
    });

    it('a watch that begins too late ends with a Status', async () => {
      api.engine.core.store.compact(api.engine.core.store.revision);
      const { stream } = await request('/api/v1/configmaps?watch=1&resourceVersion=1');
      const event = await firstFrame(stream);
      assert.equal(event.toString('latin1', 0, 7), '\n\x05ERROR');
      assert.partialDeepStrictEqual(decodeProtobuf(event.subarray(event.indexOf('k8s\0'))), { code: 410 });
    });

    it('but has no watches in YAML', async () => {
      const { stream, code } = await request(`${buffer}?watch=1`, 'application/yaml');
      const { message } = load(String((await stream.toArray())[0])) as { message: string };
      const types = `application/json;stream=watch, ${accept};stream=watch`;
      assert.deepEqual([code, message], [406, `only the following media types are accepted: ${types}`]);
    });

    /** The first event, which comes after its length. */
    async function firstFrame(stream: ClientHttp2Stream): Promise<Buffer> {
      let bytes = Buffer.alloc(0);
      while (bytes.length < 4 || bytes.length < 4 + bytes.readUInt32BE()) {
        const [chunk] = (await once(stream, 'data')) as [Buffer];
        bytes = Buffer.concat([bytes, chunk]);
      }
      return bytes.subarray(4, 4 + bytes.readUInt32BE());
    }
  });

  it('takes custom objects that say what they are, and tells which rules it does not apply', async () => {
    const properties = { spec: { type: 'object', properties: { n: { type: 'number', maximum: 0 } } } };
    const rules = [{ rule: "cidr('10.0.0.0/8').containsIP('10.0.0.1')" }];
    const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-validations': rules, properties } };
    const versions = [{ name: 'v1', served: true, storage: true, schema }];
    const spec = { group: 'x.io', scope: 'Namespaced', names: { plural: 'goods', kind: 'Good' }, versions };
    const text = JSON.stringify({ metadata: { name: 'goods.x.io' }, spec });
    const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
    const large = text.replace('"maximum":0', '"maximum":9223372036854775807');
    const defined = await ask(session, 'POST', definitions, large);
    assert.equal(defined.code, 201);
    assert.match(String(defined.headers['warning']), /is not enforced here: unknown function containsIP/);
    await api.engine.idle();
    const goods = '/apis/x.io/v1/namespaces/web/goods';
    const post = (kind: object) => ask(session, 'POST', goods, JSON.stringify({ ...kind, metadata: { name: 'g' } }));
    isStatus(await post({}), 400, 'BadRequest', /Object 'Kind' is missing/);
    isStatus(await post({ kind: 'Good' }), 400, 'BadRequest', /the API version in the data \(\) does not match/);
    const other = { apiVersion: 'x.io/v1', kind: 'Foo' };
    isStatus(await post(other), 422, 'Invalid', 'Foo.x.io "g" is invalid: kind: Invalid value: "Foo": must be Good');
    assert.equal((await post({ apiVersion: 'x.io/v1', kind: 'Good' })).code, 201);
    const merge = { 'content-type': 'application/merge-patch+json' };
    const patched = await ask(session, 'PATCH', `${goods}/g`, '{"kind":"Foo","apiVersion":"x.io/v2"}', merge);
    const both = 'kind: Invalid value: "Foo": must be Good, apiVersion: Invalid value: "x.io/v2": must be x.io/v1';
    isStatus(patched, 422, 'Invalid', `Foo.x.io "g" is invalid: [${both}]`);
  });

  it('refuses a body that is too large, and still answers', async () => {
    const large = Buffer.alloc(50 * 1024 * 1024, 0x20);
    isStatus(
      await ask(session, 'POST', secrets, large, { 'content-length': String(large.length) }),
      413,
      'RequestEntityTooLarge',
      'Request entity too large: limit is 3145728',
    );
    isStatus(
      await ask(session, 'POST', secrets, large.subarray(0, 4 * 1024 * 1024)),
      413,
      'RequestEntityTooLarge',
      /limit is 3145728/,
    );
    assert.equal((await ask(session, 'GET', '/livez')).text, 'ok');
  });

  it('cuts off a body that does not end', async () => {
    const endless = session.request({ ':method': 'POST', ':path': secrets }, { endStream: false });
    endless.resume();
    endless.write(Buffer.alloc(70 * 1024 * 1024, 0x20));
    await once(endless, 'close');
    assert.equal((await ask(session, 'GET', '/livez')).text, 'ok');
  });

  it('lets nobody in without credentials, except to ask how it is', async () => {
    const stranger = open({ ca: login.ca });
    isStatus(await ask(stranger, 'GET', secrets), 401, 'Unauthorized', 'Unauthorized');
    isStatus(
      await ask(stranger, 'GET', secrets, undefined, { authorization: 'Bearer nonsense' }),
      401,
      'Unauthorized',
      'Unauthorized',
    );
    assert.equal((await ask(stranger, 'GET', '/healthz')).code, 200);
    const now = clock.now();
    const other = await issueSigner({
      keys: systemKeys,
      now,
      lifetimeMs: days(1),
      algorithm: 'P-256',
      commonName: 'other',
    });
    const leaf = await issueClient({
      keys: systemKeys,
      now,
      lifetimeMs: days(1),
      algorithm: 'P-256',
      signer: other,
      user: { name: 'eve', groups: ['system:masters'] },
    });
    const certificate = { cert: encodeCertificates(leaf.chain), key: encodePrivateKey(leaf.key) };
    const eve = open({ ca: login.ca, ...certificate });
    isStatus(await ask(eve, 'GET', secrets), 401, 'Unauthorized', 'Unauthorized');
    api.setClientCas(encodeCertificates(other.chain));
    assert.equal((await ask(eve, 'GET', secrets)).code, 200, 'a CA that is added counts on open connections too');
  });

  it('knows service accounts by their tokens, as long as these last', async () => {
    await api.kube.create(SERVICE_ACCOUNTS, { metadata: { name: 'robot', namespace: 'web' } });
    const request = JSON.stringify({ spec: { expirationSeconds: 3600 } });
    const made = await ask(session, 'POST', '/api/v1/namespaces/web/serviceaccounts/robot/token', request);
    assert.equal(made.code, 201);
    const authorization = `Bearer ${made.body['status'].token as string}`;
    const robot = open({ ca: login.ca });
    isStatus(
      await ask(robot, 'GET', secrets, undefined, { authorization }),
      403,
      'Forbidden',
      'secrets is forbidden: User "system:serviceaccount:web:robot" cannot list resource "secrets" in API group "" in the namespace "web"',
    );
    isStatus(
      await ask(robot, 'GET', secrets, undefined, { authorization, 'impersonate-user': 'root' }),
      403,
      'Forbidden',
      /^users "root" is forbidden: User "system:serviceaccount:web:robot" cannot impersonate resource "users"/,
    );
    const review = JSON.stringify({ spec: { token: made.body['status'].token as string } });
    const known = await ask(session, 'POST', '/apis/authentication.k8s.io/v1/tokenreviews', review);
    assert.equal(known.body['status'].user.username, 'system:serviceaccount:web:robot');
    clock.jumpTo(new Date(clock.now().getTime() + hours(2)));
    isStatus(await ask(robot, 'GET', secrets, undefined, { authorization }), 401, 'Unauthorized', 'Unauthorized');
    clock.jumpTo(new Date());
  });

  it('lets those impersonate who may', async () => {
    const asBob = { 'impersonate-user': 'bob', 'impersonate-group': 'devs' };
    isStatus(
      await ask(session, 'GET', secrets, undefined, asBob),
      403,
      'Forbidden',
      /User "bob" cannot list resource "secrets"/,
    );
    const whoami = await ask(session, 'POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', '{}', asBob);
    assert.deepEqual(whoami.body['status'].userInfo, { username: 'bob', groups: ['devs', 'system:authenticated'] });
  });

  it('shows paths to those who may see them, and takes nothing there', async () => {
    const asBob = { 'impersonate-user': 'bob', 'impersonate-group': 'devs' };
    const message = 'forbidden: User "bob" cannot get path "/nothing"';
    isStatus(await ask(session, 'GET', '/nothing', undefined, asBob), 403, 'Forbidden', message);
    assert.equal((await ask(session, 'GET', '/apis', undefined, asBob)).code, 200);
    assert.equal((await ask(session, 'POST', '/version', '{}')).code, 405);
    assert.equal((await ask(session, 'HEAD', '/version')).code, 200);
  });

  it('takes the key of an impersonated extra with a broken escape as it is', async () => {
    const asBob = { 'impersonate-user': 'bob', 'impersonate-extra-a%zz': 'x', 'impersonate-extra-b%2fc': 'y' };
    const whoami = await ask(session, 'POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', '{}', asBob);
    assert.deepEqual(whoami.body['status'].userInfo.extra, { 'a%zz': ['x'], 'b/c': ['y'] });
  });

  it('warns without refusing', async () => {
    const answer = await ask(session, 'POST', secrets, '{"metadata":{"name":"warned"},"spec":"\\"x\\""}');
    assert.equal(answer.code, 201);
    assert.equal(answer.headers['warning'], '299 - "unknown field \\"spec\\""');
  });

  it('speaks JSON, YAML, tables and bare metadata', async () => {
    await api.kube.create(CONFIG_MAPS, { metadata: { name: 'shown', namespace: 'web' }, data: { a: 'b' } });
    const path = '/api/v1/namespaces/web/configmaps';
    const yaml = await ask(session, 'GET', `${path}/shown`, undefined, { accept: 'application/yaml' });
    assert.match(yaml.text, /^data:\n {2}a: b$/m);
    const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json';
    const table = await ask(session, 'GET', path, undefined, { accept });
    assert.deepEqual(
      [table.body['kind'], table.body['columnDefinitions'][0].name, table.body['rows'].length],
      ['Table', 'Name', 2],
    );
    const metadata = await ask(session, 'GET', path, undefined, {
      accept: 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io',
    });
    assert.deepEqual([metadata.body['kind'], metadata.body['items'][1].data], ['PartialObjectMetadataList', undefined]);
    const preferred = await ask(session, 'GET', path, undefined, {
      accept: 'application/vnd.kubernetes.protobuf,application/json',
    });
    assert.equal(preferred.headers['content-type'], 'application/json');
  });

  it('describes itself', async () => {
    const resources = await ask(session, 'GET', '/api/v1');
    const names = new Set((resources.body['resources'] as { name: string }[]).map(({ name }) => name));
    for (const name of ['secrets', 'pods/eviction', 'pods/log', 'serviceaccounts/token'])
      assert.ok(names.has(name), name);
    assert.equal((await ask(session, 'GET', '/apis/apps')).body['preferredVersion'].groupVersion, 'apps/v1');
    const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json';
    const aggregated = await ask(session, 'GET', '/apis', undefined, { accept });
    assert.equal(
      aggregated.headers['content-type'],
      'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList',
    );
    const again = await ask(session, 'GET', '/apis', undefined, {
      accept,
      'if-none-match': String(aggregated.headers['etag']),
    });
    assert.deepEqual([again.code, again.text], [304, '']);
    const index = await ask(session, 'GET', '/openapi/v3');
    const document = await ask(session, 'GET', index.body['paths']['apis/apps/v1'].serverRelativeURL as string);
    assert.equal(document.body['openapi'], '3.0.0');
    assert.equal((await ask(session, 'GET', '/version')).body['major'], '1');
    assert.deepEqual(
      [(await ask(session, 'GET', '/nothing')).code, (await ask(session, 'GET', '/nothing')).text],
      [404, '404 page not found\n'],
    );
  });

  it('streams what happens', async () => {
    const path = '/api/v1/namespaces/web/configmaps';
    const start = (await ask(session, 'GET', path)).body['metadata'].resourceVersion as string;
    const stream = session.request({ ':path': `${path}?watch=1&resourceVersion=${start}` });
    const lines: { type: string; object: { metadata: { name: string } } }[] = [];
    const done = new Promise<void>(resolve => {
      stream.setEncoding('utf8');
      stream.on('data', (chunk: string) => {
        for (const line of chunk.trim().split('\n')) lines.push(JSON.parse(line) as (typeof lines)[0]);
        if (lines.length >= 2) resolve();
      });
    });
    await api.kube.create(CONFIG_MAPS, { metadata: { name: 'seen', namespace: 'web' } });
    await api.kube.delete(CONFIG_MAPS, { name: 'seen', namespace: 'web' });
    await done;
    assert.deepEqual(
      lines.map(({ type, object }) => `${type} ${object.metadata.name}`),
      ['ADDED seen', 'DELETED seen'],
    );
    assert.equal(api.watches(), 1);
    const closed = new Promise(resolve => {
      stream.once('close', resolve);
    });
    stream.close();
    await closed;
    // The server hears of it in its own time.
    while (api.watches() > 0) await new Promise(resolve => setImmediate(resolve));
    api.engine.core.store.compact(api.engine.core.store.revision);
    const gone = await ask(session, 'GET', `${path}?watch=1&resourceVersion=${start}`);
    assert.deepEqual([gone.code, gone.body['type'], gone.body['object'].code], [200, 'ERROR', 410]);
  });

  it('streams tables, the columns once', async () => {
    const path = '/api/v1/namespaces/web/configmaps';
    const start = (await ask(session, 'GET', path)).body['metadata'].resourceVersion as string;
    for (const name of ['row-1', 'row-2']) await api.kube.create(CONFIG_MAPS, { metadata: { name, namespace: 'web' } });
    const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io';
    const watched = `${path}?watch=1&resourceVersion=${start}&allowWatchBookmarks=1&timeoutSeconds=1`;
    const { text, headers } = await ask(session, 'GET', watched, undefined, { accept });
    assert.equal(headers['content-type'], 'application/json');
    const lines = text.trim().split('\n').map(parsed);
    assert.deepEqual(
      lines.map(({ type, object }) => [type, object.kind, object.columnDefinitions?.length, object.rows[0].cells[0]]),
      [
        ['ADDED', 'Table', 3, 'row-1'],
        ['ADDED', 'Table', 0, 'row-2'],
        ['BOOKMARK', 'Table', 0, undefined],
      ],
    );
  });

  it('says when to come back', async () => {
    const early = await ask(session, 'GET', `${secrets}?resourceVersionMatch=NotOlderThan&resourceVersion=999999999`);
    isStatus(early, 504, 'Timeout', /Too large resource version/);
    assert.equal(early.headers['retry-after'], '1');
    assert.equal((await ask(session, 'GET', `${secrets}/nothing`)).headers['retry-after'], undefined);
  });

  it('deletes, many at once too', async () => {
    for (const name of ['d1', 'd2', 'd3']) {
      await api.kube.create(SECRETS, {
        metadata: { name, namespace: 'web', labels: { d: name === 'd3' ? 'no' : 'yes' } },
      });
    }
    const one = await ask(
      session,
      'DELETE',
      `${secrets}/d3`,
      '{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"}',
    );
    assert.deepEqual([one.body['status'], one.body['details'].name], ['Success', 'd3']);
    const many = await ask(session, 'DELETE', `${secrets}?labelSelector=d%3Dyes`);
    assert.deepEqual((many.body['items'] as unknown[]).length, 2);
    assert.deepEqual((await api.kube.list(SECRETS, { namespace: 'web', labelSelector: 'd' })).items, []);
  });

  it('has no logs unless somebody provides them', async () => {
    const pod = {
      metadata: { name: 'quiet', namespace: 'web' },
      spec: { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }] },
    };
    await api.kube.create(PODS, pod);
    const path = '/api/v1/namespaces/web/pods/quiet/log';
    isStatus(
      await ask(session, 'GET', `${path}?container=x`),
      400,
      'BadRequest',
      'container x is not valid for pod quiet',
    );
    isStatus(await ask(session, 'GET', path), 500, 'InternalError', /offers no logs/);
  });

  it('works over HTTP/1.1', async () => {
    const text = await new Promise<string>((resolve, reject) => {
      const request = httpsRequest(`${api.url}/api/v1/namespaces/web`, { ...login, agent: false }, response => {
        let received = '';
        response.setEncoding('utf8').on('data', (chunk: string) => {
          received += chunk;
        });
        response.on('end', () => resolve(received));
      });
      request.on('error', reject).end();
    });
    assert.equal(parsed(text)['metadata'].name, 'web');
  });
});
