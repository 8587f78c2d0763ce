import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ConfigMap, Node, Pod } from 'kubernetes-types/core/v1.d.ts';
import { BUNDLE_KEY } from '../certrotation/bundle.ts';
import { days } from '../kube/duration.ts';
import type { Certificate } from '../pki/certificate.ts';
import { issueSigner } from '../pki/issue.ts';
import { encodeCertificates } from '../pki/pem.ts';
import { seededKeys } from '../pki/seeded-keys.ts';
import type { Carrier, Edge, Holding, Side, TrustGraph } from '../trust/graph.ts';
import { configMap, secret } from '../trust/object.ts';
import { caDigest, encodeReceipts, NODE_RECEIPTS, type NodeReceipt } from '../trust/receipts.ts';
import type { Answer, Question } from './ask.ts';
import { Evidence, type EvidenceSources } from './evidence.ts';
import { WAIVED } from './names.ts';
import type { Receipt } from './receipt.ts';
import { isWaived } from './waiver.ts';

const SIGNER = secret('ns', 'signer');
const LEAF = secret('ns', 'leaf');
const BUNDLE = configMap('ns', 'bundle');
const FILE = '/host/ca.crt';

async function certificate(commonName: string): Promise<Certificate> {
  const now = new Date('2026-01-01T00:00:00Z');
  const { chain } = await issueSigner({
    commonName,
    keys: seededKeys(commonName),
    now,
    lifetimeMs: days(1),
    algorithm: 'P-256',
  });
  return chain[0] as Certificate;
}
const [OLD, NEXT] = await Promise.all([certificate('ns_signer@1'), certificate('ns_signer@2')]);

function node(name: string, annotations: Record<string, string> = {}, role = 'master'): Node {
  return { metadata: { name, labels: { [role]: '' }, annotations } };
}

const serverChecks: Edge = edgeOf({ presents: { object: LEAF } }, { verifiesWith: { object: BUNDLE } });
const clientChecks = (elsewhere?: Holding['elsewhere']): Edge =>
  edgeOf({ verifiesWith: { object: BUNDLE, elsewhere } }, { presents: { object: LEAF } });

function edgeOf(client: Partial<Side>, server: Partial<Side>): Edge {
  return {
    name: 'edge',
    client: { process: 'client', nodes: 'control-plane', ...client },
    server: { process: 'server', nodes: 'control-plane', endpoint: { url: 'https://<host>:1' }, ...server },
  };
}

function graphOf(edge: Edge, carrier: Carrier = 'sync'): TrustGraph {
  const uses = [{ process: 'client', setting: '', takes: 'watch' as const }];
  const place = { nodes: 'all', hostDirectory: '/host', directory: '/in', files: ['ca.crt'], optional: false } as const;
  return { edges: [edge], flows: [], deliveries: [{ object: BUNDLE, carrier, ...place, uses }] };
}

interface World extends Partial<EvidenceSources> {
  readonly graph: () => TrustGraph;
}

async function receiptsOf(world: World): Promise<readonly Receipt[]> {
  return new Evidence({
    leavesOf: signer => (signer === SIGNER ? [LEAF] : []),
    nodes: () => [node('a'), node('b'), node('w', {}, 'worker')],
    isIn: ({ metadata }, set) => set === 'all' || 'master' in (metadata?.labels ?? {}),
    whereIs: (_, { metadata }) => ({ host: metadata?.name ?? '', port: 1, serverName: '' }),
    revisions: () => [],
    now: () => new Date('2026-01-01T00:00:00Z'),
    bundle: () => undefined,
    copyOf: async () => undefined,
    podsOf: async () => [],
    certificateIn: () => undefined,
    rootCas: async () => [],
    pods: async () => [],
    ask: async () => assert.fail('nobody should be asked'),
    ...world,
  }).of(SIGNER, NEXT);
}

async function said(world: World): Promise<string[]> {
  return (await receiptsOf(world)).map(
    ({ verifier, kind, isLoaded, evidence }) => `${verifier} ${kind} ${isLoaded ? 'yes' : 'no'}: ${evidence}`,
  );
}

const loaded = (...cas: Certificate[]): Answer => ({
  kind: 'loaded',
  authorities: cas.map(({ subject }) => subject.der),
});

describe('asked', () => {
  const answering = (answers: (question: Question) => Answer): World => ({
    graph: () => graphOf(serverChecks),
    ask: async question => answers(question),
  });

  test('a server that names the CA has loaded it; every node of the set is asked', async () => {
    const answers = answering(({ host }) => (host === 'a' ? loaded(OLD, NEXT) : loaded(OLD)));
    assert.deepEqual(await said(answers), [
      'server on a asked yes: named it in a handshake',
      'server on b asked no: has not loaded it',
    ]);
  });

  test('silence, and a server that wants no certificate, are no receipt', async () => {
    const answers = answering(({ host }) =>
      host === 'a' ? { kind: 'silent', reason: 'nobody there' } : { kind: 'not-asking' },
    );
    assert.deepEqual(await said(answers), [
      'server on a asked no: does not answer at a:1: nobody there',
      'server on b asked no: does not say which CAs it has loaded',
    ]);
  });

  test('a CA whose name others have had too is told by a certificate of it; who has no key has no evidence', async () => {
    const pair = { chain: [NEXT], key: undefined as never };
    const show = async (question: Question) =>
      (({ a: { kind: 'accepted' }, b: { kind: 'refused' }, c: { kind: 'silent', reason: 'nobody there' } }) as const)[
        question.host as 'a' | 'b' | 'c'
      ];
    const nodes = () => ['a', 'b', 'c'].map(name => node(name));
    const world = { ...answering(() => assert.fail('the name says nothing')), nodes, show };
    assert.deepEqual(await said({ ...world, namesake: ca => (ca === NEXT ? pair : undefined) }), [
      'server on a asked yes: accepted a certificate of it',
      'server on b asked no: has not loaded it: refuses a certificate of it',
      'server on c asked no: does not answer at c:1: nobody there',
    ]);
    for (const text of await said({ ...world, namesake: () => 'no key' }))
      assert.match(text, / asked no: .* tell them apart$/);
  });

  test('a node without an address is counted all the same', async () => {
    const world = { ...answering(() => loaded(NEXT)), whereIs: () => undefined };
    assert.deepEqual(
      (await said(world)).map(text => text.replace(/.* no: /, '')),
      ['its node has no address', 'its node has no address'],
    );
  });
});

describe('started: the revision that runs', () => {
  const copy = (...cas: Certificate[]): ConfigMap => ({ data: { [BUNDLE_KEY]: encodeCertificates(cas) } });
  const running = (revisions: [string, number][], copies: Record<number, ConfigMap | undefined>): World => ({
    graph: () => graphOf(clientChecks(), 'revision'),
    revisions: () => revisions.map(([nodeName, revision]) => ({ nodeName, revision })),
    copyOf: async (bundle, revision) => (bundle.name === BUNDLE.name ? copies[revision] : undefined),
  });

  test('a revision with the CA in its copy of the bundle', async () => {
    const world = running(
      [
        ['a', 2],
        ['b', 1],
      ],
      { 1: copy(OLD), 2: copy(OLD, NEXT) },
    );
    assert.deepEqual(await said(world), [
      'client on a started yes: began with revision 2',
      'client on b started no: runs revision 1, which does not have it',
    ]);
  });

  test('one that is about to run counts as well as the one that does', async () => {
    const world = running(
      [
        ['a', 1],
        ['a', 2],
        ['b', 2],
      ],
      { 1: copy(OLD), 2: copy(OLD, NEXT) },
    );
    const texts = await said(world);
    assert.equal(texts.filter(text => text.startsWith('client on a started no')).length, 1);
    assert.equal(texts.length, 3);
  });

  test('a node that no status names is counted all the same', async () => {
    assert.deepEqual(await said(running([['b', 2]], { 2: copy(NEXT) })), [
      'client on a started no: is not known to run any revision',
      'client on b started yes: began with revision 2',
    ]);
  });

  test('a copy that is gone or cannot be read is no receipt', async () => {
    const world = running(
      [
        ['a', 1],
        ['b', 2],
      ],
      { 2: { data: { [BUNDLE_KEY]: 'nonsense' } } },
    );
    for (const { isLoaded } of await receiptsOf(world)) assert.equal(isLoaded, false);
  });
});

describe('reported: the agent of the node', () => {
  const noted = (file: string, process: string, ...cas: Certificate[]): NodeReceipt => ({
    process,
    file,
    kind: 'started',
    cas: cas.map(caDigest),
  });
  const reporting = (notes: Record<string, NodeReceipt[] | string>, elsewhere?: Holding['elsewhere']): World => ({
    graph: () => graphOf(clientChecks(elsewhere)),
    nodes: () =>
      Object.entries(notes).map(([name, note]) =>
        node(name, { [NODE_RECEIPTS]: typeof note === 'string' ? note : encodeReceipts(note) }),
      ),
  });

  test('by the files that the process reads', async () => {
    assert.deepEqual(
      await said(
        reporting({ a: [noted(FILE, 'x', OLD, NEXT)], b: [noted(FILE, 'x', OLD)], c: [noted('/other', 'x', NEXT)] }),
      ),
      [
        `client on a reported yes: has it: ${FILE}`,
        'client on b reported no: has not loaded it, says the agent of its node',
        'client on c reported no: the agent of its node has seen no file that it reads',
      ],
    );
  });

  test('by the process, with everything that it reads', async () => {
    const elsewhere = { file: 'kubeconfig', takes: 'restart', by: 'x', seenBy: 'agent' } as const;
    const notes = {
      a: [noted('/1', 'client', NEXT), noted('/2', 'client', NEXT), noted('/3', 'other', OLD)],
      b: [noted('/1', 'client', NEXT), noted('/2', 'client', OLD)],
    };
    assert.deepEqual(await said(reporting(notes, elsewhere)), [
      'client on a reported yes: has it: /1, /2',
      'client on b reported no: has not loaded it, says the agent of its node',
    ]);
  });

  test('a node that says nothing, or nothing that can be understood, is counted all the same', async () => {
    const world = reporting({ a: 'nonsense', b: [] });
    const nodes = [...(world.nodes?.() ?? []), node('c')];
    assert.deepEqual(await said({ ...world, nodes: () => nodes }), [
      'client on a reported no: the agent of its node reports nothing',
      'client on b reported no: the agent of its node has seen no file that it reads',
      'client on c reported no: the agent of its node reports nothing',
    ]);
  });
});

describe('started: what a pod says of itself', () => {
  const elsewhere = { file: 'kubeconfig', takes: 'restart', by: 'x', seenBy: 'pod' } as const;
  const pod = (nodeName: string, ...cas: Certificate[]): Pod => {
    const note: NodeReceipt = { process: 'client', file: '/f', kind: 'started', cas: cas.map(caDigest) };
    return {
      metadata: { annotations: { [NODE_RECEIPTS]: encodeReceipts([note]) } },
      spec: { nodeName, containers: [] },
    };
  };
  const world = (...pods: Pod[]): World => ({
    graph: () => graphOf(clientChecks(elsewhere)),
    podsOf: async process => (process === 'client' ? pods : []),
  });

  test('every pod on a node that exists counts; one that says nothing is somebody else’s', async () => {
    const silent: Pod = { metadata: {}, spec: { nodeName: 'a', containers: [] } };
    assert.deepEqual(await said(world(pod('a', OLD, NEXT), pod('b', OLD), pod('gone', OLD), silent)), [
      'client on a started yes: has it: /f',
      'client on b started no: was started with other CAs',
    ]);
  });
});

describe('a waiver (HO-7)', () => {
  const AT = '2026-01-01T00:00:00Z';
  const withReady = (status: string, lastTransitionTime: string): Node => ({
    ...node('a', { [WAIVED]: AT }),
    status: { conditions: [{ type: 'Ready', status, lastTransitionTime }] },
  });
  for (const [name, subject, expected] of [
    ['a node that nobody waived', node('a'), false],
    ['a node that was waived', node('a', { [WAIVED]: AT }), true],
    ['a time that cannot be read waives nothing', node('a', { [WAIVED]: 'yes' }), false],
    ['a node that was away when it was waived, and is', withReady('Unknown', AT), true],
    ['a node that has gone away since', withReady('Unknown', '2026-01-01T00:00:01Z'), false],
    ['a node that was ready before it was waived', withReady('True', AT), true],
    ['a node that has come back since', withReady('True', '2026-01-01T00:00:01Z'), false],
  ] as const) {
    test(name, () => assert.equal(isWaived(subject), expected));
  }

  test('stands on every receipt of the node, and hides nothing', async () => {
    const receipts = await receiptsOf({
      graph: () => graphOf(serverChecks),
      nodes: () => [node('a', { [WAIVED]: AT }), node('b')],
      ask: async () => loaded(OLD),
    });
    assert.deepEqual(
      receipts.map(({ isLoaded, isWaived: waived }) => [isLoaded, waived]),
      [
        [false, true],
        [false, false],
      ],
    );
  });
});

test('units that share a signer ask once', async () => {
  let asked = 0;
  const sources: EvidenceSources = {
    graph: () => graphOf(serverChecks),
    leavesOf: () => [LEAF],
    nodes: () => [node('a')],
    isIn: () => true,
    whereIs: () => ({ host: 'a', port: 1, serverName: '' }),
    revisions: () => [],
    now: () => new Date(),
    bundle: () => undefined,
    copyOf: async () => undefined,
    podsOf: async () => [],
    certificateIn: () => undefined,
    rootCas: async () => [],
    pods: async () => [],
    ask: async () => {
      asked++;
      return loaded(NEXT);
    },
  };
  const evidence = new Evidence(sources);
  await Promise.all([evidence.of(SIGNER, NEXT), evidence.of(SIGNER, NEXT)]);
  assert.equal(asked, 1);
  await evidence.of(SIGNER, OLD);
  assert.equal(asked, 2, 'another CA is another question');
});
