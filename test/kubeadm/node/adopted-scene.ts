/** The adoption of a cluster whose nodes are scenes: real agents on files of their own, the real operator, and what a person is told. */

import { KubeadmWorld } from '../../../src/cli/adopt/testing.ts';
import { untilAdopted } from '../../../src/cli/adopt/until-adopted.ts';
import { silentLog } from '../../../src/controller/log.ts';
import type { Host } from '../../../src/host/port.ts';
import { recordingEvents } from '../../../src/kube/events.ts';
import { CONFIG_MAPS, NODES } from '../../../src/kube/resource.ts';
import { CLUSTER_RECORD, type ClusterStatus, encodeSettings, statusOf } from '../../../src/kubeadm/cluster-record.ts';
import { CONTROL_PLANE_LABEL } from '../../../src/kubeadm/names.ts';
import { Pass } from '../../../src/kubeadm/operator/pass.ts';
import { NODE_REPORT } from '../../../src/kubeadm/report.ts';
import { seededKeys } from '../../../src/pki/seeded-keys.ts';
import type { Signers } from './kubeadm-node.ts';
import { type Life, Scene } from './scene.ts';

/** How a node differs from what kubeadm has made of it. */
export interface Strange {
  readonly signers?: () => Promise<Signers>;
  /** What somebody has done there. */
  readonly did?: (scene: Scene) => Promise<void>;
  /** What its agent is given in place of the host. */
  readonly host?: (host: Host) => Host;
}

const SETTINGS = {
  certificatesDirectory: '/etc/kubernetes/pki',
  keysOnNodes: false,
  refresh: 0.666,
  pods: 'ignore',
  publishFrom: 'a',
} as const;
/** A publication and a round are a few each. */
const MOST_PASSES = 30;

/** Control-plane node `a` is strange; its agent lives, and its API is that of the cluster. The others have told of themselves once. */
export class AdoptedScene {
  readonly a: Scene;
  readonly #agent: Life;

  private constructor(a: Scene, agent: Life) {
    this.a = a;
    this.#agent = agent;
  }

  /** `others`: the role of each further node, and how it is strange. */
  static async create(
    strange: Strange,
    others: Readonly<Record<string, Strange & Pick<Scene, 'role'>>> = {},
  ): Promise<AdoptedScene> {
    const { scene: a, agent } = await tellingOfItself('a', 'control-plane', strange);
    await KubeadmWorld.kindsOn(a.kube);
    await a.kube.patch(
      NODES,
      { name: 'a' },
      { type: 'merge', body: { metadata: { labels: labelsOf('control-plane') } } },
    );
    for (const [name, { role, ...other }] of Object.entries(others)) {
      const made = await tellingOfItself(name, role, other);
      const { annotations } = (await made.scene.kube.get(NODES, { name })).metadata ?? {};
      const report = { [NODE_REPORT]: annotations?.[NODE_REPORT] ?? '' };
      await a.kube.create(NODES, { metadata: { name, labels: labelsOf(role), annotations: report } });
      await made.agent.stop();
      await made.scene.close();
    }
    await a.kube.create(CONFIG_MAPS, { metadata: CLUSTER_RECORD, data: encodeSettings(SETTINGS) });
    return new AdoptedScene(a, agent);
  }

  /** The operator works until it says so, or has nothing to do any more. */
  async until(
    isSo: (status: ClusterStatus) => boolean,
    more: { readonly refresh?: number } = {},
  ): Promise<ClusterStatus> {
    const { kube } = this.a;
    const data = encodeSettings({ ...SETTINGS, ...more });
    await kube.patch(CONFIG_MAPS, CLUSTER_RECORD, { type: 'merge', body: { data } });
    for (let count = 0; ; count++) {
      await this.#pass();
      const status = statusOf(await kube.get(CONFIG_MAPS, CLUSTER_RECORD));
      if (status !== undefined && isSo(status)) return status;
      if (count > MOST_PASSES) throw new Error(`not so: ${JSON.stringify(status)}`);
      await this.a.rest();
    }
  }

  /** What rotunda adopt ends with where nodes do not agree: a sentence each. */
  async refusal(): Promise<readonly string[]> {
    await this.until(({ differences }) => differences.length > 0);
    try {
      await untilAdopted(this.a.kube, { timeoutMs: 60_000, onProgress: () => undefined });
    } catch (error) {
      return (error as Error).message
        .split('\n')
        .filter(line => line.startsWith('- '))
        .map(line => line.slice(2));
    }
    throw new Error('it was adopted');
  }

  async close(): Promise<void> {
    await this.#agent.stop();
    await this.a.close();
  }

  async #pass(): Promise<void> {
    const { kube, clock } = this.a;
    const { items } = await kube.list(NODES, {});
    const nodes = items.map(node => ({ ...node, status: { conditions: [{ type: 'Ready', status: 'True' }] } }));
    const pass = new Pass({
      kube,
      clock,
      keys: seededKeys('operator'),
      events: recordingEvents(),
      log: silentLog,
      nodes: () => nodes,
      staticPods: () => [],
      pods: async () => [],
    });
    await pass.run();
  }
}

async function tellingOfItself(name: string, role: Scene['role'], { signers, did, host }: Strange) {
  const scene = await Scene.create({ name, role, did, ...(signers && { signers: await signers() }) });
  const agent = scene.run(host?.(scene.host));
  await scene.rest();
  return { scene, agent };
}

function labelsOf(role: Scene['role']): Record<string, string> {
  return role === 'control-plane' ? { [CONTROL_PLANE_LABEL]: '' } : {};
}
