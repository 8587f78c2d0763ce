import { type CallOptions, type ConnectEtcd, type EtcdClient, EtcdRefusal } from '../etcd/client/gateway.ts';
import type { TlsMaterial } from '../etcd/client/material.ts';
import type { Member } from '../etcd/quorum/member.ts';
import type { Party } from './edges.ts';
import type { EtcdCluster, EtcdOptions } from './etcd.ts';
import type { TwinNode } from './node.ts';

const EDGE = 'etcd operator to etcd';

/** What carries the operator's questions to the members in a twin: they verify each other, and answer as etcd's gateway would. */
export function etcdClients(etcd: EtcdCluster, { nodes, whyNot }: Pick<EtcdOptions, 'nodes' | 'whyNot'>): ConnectEtcd {
  return (endpoints, material) => new ModelClient({ etcd, nodes, whyNot }, endpoints, material);
}

interface ModelClientOptions extends Pick<EtcdOptions, 'nodes' | 'whyNot'> {
  readonly etcd: EtcdCluster;
}

class ModelClient implements EtcdClient {
  readonly material: TlsMaterial;
  endpoints: readonly string[];
  readonly #options: ModelClientOptions;
  readonly #party: Party;

  constructor(options: ModelClientOptions, endpoints: readonly string[], material: TlsMaterial) {
    this.#options = options;
    this.endpoints = endpoints;
    this.material = material;
    const held = {
      shown: { 'tls.crt': material.cert, 'tls.key': material.key },
      trusted: { 'ca-bundle.crt': material.ca },
    };
    this.#party = { name: 'etcd-operator', address: '', have: (_process, _files, _takes, as) => held[as] };
  }

  async members(options: CallOptions = {}): Promise<Member[]> {
    return this.#ask(options, false, () => this.#options.etcd.members.map(member => ({ ...member })));
  }

  async readHealthKey({ isLearner }: Pick<Member, 'isLearner'>, options: CallOptions = {}): Promise<number> {
    return this.#ask(options, isLearner, () => this.#options.etcd.term);
  }

  async addLearner(peerURL: string, options: CallOptions = {}): Promise<void> {
    this.#ask(options, false, () => this.#options.etcd.addLearner(peerURL));
  }

  async promote(memberId: string, options: CallOptions = {}): Promise<void> {
    this.#ask(options, false, () => this.#options.etcd.promote(memberId));
  }

  async remove(memberId: string, options: CallOptions = {}): Promise<void> {
    this.#ask(options, false, () => this.#options.etcd.remove(memberId));
  }

  async close(): Promise<void> {}

  /** All endpoints in turn until one answers; an answer is an answer, whoever gives it. */
  #ask<T>({ endpoint, signal }: CallOptions, forItself: boolean, work: () => T): T {
    const problems: string[] = [];
    for (const url of endpoint === undefined ? this.endpoints : [endpoint]) {
      signal?.throwIfAborted();
      const problem = this.#problemWith(url, forItself);
      if (problem !== undefined) {
        problems.push(`${url}: ${problem}`);
        continue;
      }
      try {
        return work();
      } catch (error) {
        throw new EtcdRefusal(9, (error as Error).message);
      }
    }
    throw new Error(problems.length === 0 ? 'there is no etcd endpoint to ask' : problems.join('; '));
  }

  #problemWith(url: string, forItself: boolean): string | undefined {
    const { etcd, nodes, whyNot } = this.#options;
    const { hostname } = new URL(url);
    const node: TwinNode | undefined = nodes().find(({ address }) => address === hostname);
    if (node === undefined || !etcd.answers(node, true)) return 'ECONNREFUSED';
    return whyNot(EDGE, this.#party, node) ?? (etcd.answers(node, forItself) ? undefined : 'etcdserver: no leader');
  }
}
