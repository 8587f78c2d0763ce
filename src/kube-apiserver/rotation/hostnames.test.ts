import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { CLUSTER, type Infrastructure, type Network } from '../resources.ts';
import { followHostnames, hostnameReconcile, hostnameSources } from './follow-hostnames.ts';
import { decideHostnames, firstAddress, hostOfUrl } from './hostnames.ts';

const SERVICE_NAMES = [
  'kubernetes',
  'kubernetes.default',
  'kubernetes.default.svc',
  'kubernetes.default.svc.cluster.local',
  'openshift',
  'openshift.default',
  'openshift.default.svc',
  'openshift.default.svc.cluster.local',
];

describe('host of a URL (spec 20, 1.8)', () => {
  for (const [url, host] of [
    ['https://api.c.example.com:6443', 'api.c.example.com'],
    ['https://api.c.example.com', 'api.c.example.com'],
    ['api.c.example.com:6443', 'api.c.example.com'],
    ['https://api.c.example.com:6443/path', 'api.c.example.com'],
    ['https://10.0.0.5:6443', '10.0.0.5'],
    ['https://[fd00::5]:6443', 'fd00::5'],
    ['https://[FD00:0:0::5]', 'fd00::5'],
    ['fd00::5', 'fd00::5'],
    ['HTTPS://api.c.example.com:6443', 'api.c.example.com'],
    ['https://api.c.example.com.:6443', 'api.c.example.com'],
    ['https://api.c.example.com:abc', 'api.c.example.com'],
    ['ftp://api.c.example.com', undefined],
    ['https://https://api.c.example.com', undefined],
    ['https://api.c.example.com..:6443', undefined],
    ['https://.:6443', undefined],
    ['https://', undefined],
    ['https://:6443', undefined],
    ['https://[fd00::5', undefined],
    ['https://user@host:6443', undefined],
    ['https://bad host:6443', undefined],
    ['https://a..b:6443', undefined],
    ['', undefined],
  ] as const) {
    test(`${JSON.stringify(url)} has ${host ?? 'none'}`, () => assert.equal(hostOfUrl(url), host));
  }

  test('never throws, and never gives what a certificate cannot carry', () => {
    fc.assert(
      fc.property(fc.string(), text => {
        const host = hostOfUrl(text);
        assert.ok(host === undefined || /^[\w.:-]+$/.test(host), host);
      }),
    );
  });
});

describe('address number 1 of a network', () => {
  for (const [cidr, address] of [
    ['172.30.0.0/16', '172.30.0.1'],
    ['172.30.5.7/16', '172.30.0.1'],
    ['10.96.0.0/12', '10.96.0.1'],
    ['10.111.0.0/12', '10.96.0.1'],
    ['fd02::/112', 'fd02::1'],
    ['10.0.0.4/31', '10.0.0.5'],
    ['10.0.0.4/32', undefined],
    ['fd02::1/128', undefined],
    ['172.30.0.0', undefined],
    ['172.30.0.0/33', undefined],
    ['172.30.0.0/x', undefined],
    ['nonsense', undefined],
  ] as const) {
    test(`${cidr} has ${address ?? 'none'}`, () => assert.equal(firstAddress(cidr), address));
  }
});

describe('dynamic host names', () => {
  const network = (serviceNetwork?: string[]): Network => ({
    metadata: CLUSTER,
    status: { ...(serviceNetwork && { serviceNetwork }) },
  });

  test('IPv6 only, IPv4 only and both kinds of service networks', () => {
    for (const [cidrs, addresses] of [
      [['fd02::/112'], ['fd02::1']],
      [['172.30.0.0/16'], ['172.30.0.1']],
      [
        ['172.30.0.0/16', 'fd02::/112'],
        ['172.30.0.1', 'fd02::1'],
      ],
    ] as [string[], string[]][]) {
      const answer = decideHostnames('service-network', { network: network(cidrs), infrastructure: undefined });
      assert.deepEqual(answer, { ok: true, hostnames: [...SERVICE_NAMES, ...addresses] });
    }
  });

  test('what cannot be told is said, with the place', () => {
    const problem = (
      source: Parameters<typeof decideHostnames>[0],
      inputs: Partial<Parameters<typeof decideHostnames>[1]>,
    ) => {
      const answer = decideHostnames(source, { network: undefined, infrastructure: undefined, ...inputs });
      return answer.ok ? 'none' : answer.problem;
    };
    assert.match(problem('service-network', {}), /networks.*does not exist/);
    assert.match(problem('service-network', { network: network() }), /no status.serviceNetwork/);
    assert.match(problem('service-network', { network: network(['junk']) }), /expected a network.*"junk"/);
    assert.match(problem('external-load-balancer', {}), /infrastructures.*does not exist/);
    assert.match(problem('external-load-balancer', { infrastructure: {} }), /apiServerURL.*is empty/);
    assert.match(problem('internal-load-balancer', { infrastructure: {} }), /apiServerInternalURI.*is empty/);
    const status = { apiServerURL: 'https://:6443' };
    assert.match(problem('external-load-balancer', { infrastructure: { status } }), /expected a URL with a host/);
  });

  test('every change of either object is followed, the internal load balancer too; what cannot be told keeps its names', async () => {
    const networks = new FakeCache<Network>();
    const infrastructures = new FakeCache<Infrastructure>();
    const sources = hostnameSources();
    const stop = followHostnames(sources, networks, infrastructures);
    const problems = () =>
      hostnameReconcile(() => ({ network: networks.get(), infrastructure: infrastructures.get() }));
    const run = () => problems()('key', {} as never);
    await assert.rejects(run(), /networks.*\n.*infrastructures/s);

    networks.put(network(['172.30.0.0/16']));
    infrastructures.put({ status: { apiServerURL: 'https://a:1', apiServerInternalURI: 'https://b:1' } });
    assert.deepEqual(sources['service-network'].get(), ['172.30.0.1', ...SERVICE_NAMES].sort());
    assert.deepEqual(
      [sources['external-load-balancer'].get(), sources['internal-load-balancer'].get()],
      [['a'], ['b']],
    );
    await run();

    infrastructures.put({ status: { apiServerURL: '', apiServerInternalURL: 'https://c' } });
    assert.deepEqual(
      [sources['external-load-balancer'].get(), sources['internal-load-balancer'].get()],
      [['a'], ['c']],
    );
    await assert.rejects(run(), /apiServerURL.*is empty/);

    stop();
    infrastructures.put({ status: { apiServerURL: 'https://z' } });
    assert.deepEqual(sources['external-load-balancer'].get(), ['a']);
  });
});

class FakeCache<T> {
  readonly synced = Promise.resolve();
  readonly #handlers = new Set<{ add(object: T): void; update(before: T, after: T): void }>();
  #object: T | undefined;

  get(): T | undefined {
    return this.#object;
  }

  subscribe(handlers: { add(object: T): void; update(before: T, after: T): void }): () => void {
    this.#handlers.add(handlers);
    return () => this.#handlers.delete(handlers);
  }

  put(object: T): void {
    const before = this.#object;
    this.#object = object;
    for (const handlers of this.#handlers) {
      if (before === undefined) handlers.add(object);
      else handlers.update(before, object);
    }
  }
}
