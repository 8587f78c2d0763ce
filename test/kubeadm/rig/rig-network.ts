import { execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { ended } from '../../tools/child.ts';

/** Where a node is in the network. */
export interface Place {
  readonly name: string;
  /** What its machine is called here, which makes up the name of its link as well. */
  readonly machine: string;
  readonly address: string;
  /** Network of its pods. */
  readonly pods: string;
  /** What its machine is told. */
  readonly environment: Readonly<Record<string, string>>;
}

export const API_PORT = 6443;
/** The first address of kubeadm's usual service network. */
const API_SERVICE = '10.96.0.1';
const PREFIX = 'rk';
/** Set aside for tests of networks (RFC 2544): nobody's own. */
const NETWORKS = '198.18';
const FIRST_NODE = 10;
const MOST_NODES = 16;
const BALANCER = new URL('./balancer-process.ts', import.meta.url).pathname;
let made = 0;

/** A bridge with an address of ours, the plan of who is where on it, and a load balancer for the API at our address. */
export class RigNetwork {
  readonly bridge: string;
  /** `host:port` of the API, for everybody. */
  readonly endpoint: string;
  readonly #network: string;
  readonly #number: number;
  readonly #servers: string[] = [];
  readonly #balancer: ReturnType<typeof fork>;

  private constructor(number: number, network: string) {
    this.bridge = bridgeOf(number);
    this.#number = number;
    this.#network = network;
    this.endpoint = `${network}.1:${API_PORT}`;
    // What a test is run with is not for it.
    this.#balancer = fork(BALANCER, [`${network}.1`, String(API_PORT)], { execArgv: [] });
  }

  static async start(): Promise<RigNetwork> {
    removeStale();
    const number = made++;
    const bridge = bridgeOf(number);
    const network = freeNetwork();
    ip('link', 'add', bridge, 'type', 'bridge');
    try {
      ip('address', 'add', `${network}.1/24`, 'dev', bridge);
      ip('link', 'set', bridge, 'up');
      const started = new RigNetwork(number, network);
      const failed = once(started.#balancer, 'exit').then(() => Promise.reject(new Error('no load balancer')));
      await Promise.race([once(started.#balancer, 'message'), failed]);
      failed.catch(() => {});
      return started;
    } catch (error) {
      ip('link', 'delete', bridge);
      throw error;
    }
  }

  place(name: string, index: number): Place {
    if (index >= MOST_NODES) throw new Error(`expected at most ${MOST_NODES} nodes, found one more`);
    const others = Array.from({ length: MOST_NODES }, (_, other) => other).filter(other => other !== index);
    const environment = {
      ADDRESS: `${this.#addressOf(index)}/24`,
      GATEWAY: `${this.#network}.1`,
      POD_ROUTES: others.map(other => `${podsOf(other)}=${this.#addressOf(other)}`).join(' '),
      API_SERVICE,
      API: this.endpoint,
    };
    const machine = `k${process.pid.toString(36)}-${this.#number}-${index}`;
    return { name, machine, address: this.#addressOf(index), pods: podsOf(index), environment };
  }

  /** From now on it answers for the API. */
  serve(address: string): void {
    this.#servers.push(address);
    this.#balancer.send(this.#servers);
  }

  /**
   * Takes the link of a machine that is off. The kernel keeps it for as long as a connection in there waits for an answer, which are
   * minutes where the other side was switched off first.
   */
  unplug({ machine }: Place): void {
    deleteLink(`vb-${machine}`);
  }

  /** Ends it; machines are off and unplugged by now. */
  async close(): Promise<void> {
    this.#balancer.disconnect();
    await ended(this.#balancer);
    ip('link', 'delete', this.bridge);
  }

  #addressOf(index: number): string {
    return `${this.#network}.${FIRST_NODE + index}`;
  }
}

function podsOf(index: number): string {
  return `10.244.${index}.0/24`;
}

function freeNetwork(): string {
  const taken = ip('-o', 'address');
  for (let number = 0; number < 256; number++) {
    const network = `${NETWORKS}.${(process.pid + number) % 256}`;
    if (!taken.includes(` ${network}.`)) return network;
  }
  throw new Error(`all networks of ${NETWORKS}.0.0/16 are taken`);
}

/** Bridges of those who could not clean up, with the links to them. */
function removeStale(): void {
  const names = ip('-o', 'link', 'show', 'type', 'bridge').matchAll(new RegExp(`: (${PREFIX}(\\d+)-\\d+): `, 'g'));
  for (const [, name = '', pid = ''] of names) {
    if (existsSync(`/proc/${pid}`)) continue;
    const links = ip('-o', 'link', 'show', 'master', name).matchAll(/^\d+: ([^@:]+)/gm);
    for (const [, link = ''] of links) deleteLink(link);
    deleteLink(name);
  }
}

/** It may go by itself in the same moment. */
function deleteLink(name: string): void {
  try {
    ip('link', 'delete', name);
  } catch (error) {
    if (ip('-o', 'link').includes(` ${name}@`)) throw error;
  }
}

function bridgeOf(number: number): string {
  return `${PREFIX}${process.pid}-${number}`;
}

function ip(...words: string[]): string {
  return execFileSync('ip', words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}
