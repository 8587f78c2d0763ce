import { isIP } from 'node:net';
import type { Receipt, ShownOf } from '../../hand-over/receipt.ts';
import { seconds } from '../../kube/duration.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { issuerKey, signingKey } from '../../trust/receipts.ts';
import { chainServed, type ServerPlace } from '../../trust/served.ts';
import { KUBEADM_CHAINS, type SignerName } from '../chains.ts';
import type { ControlPlaneServer } from '../static-pods.ts';
import { isInRound } from './cluster.ts';
import type { SeenNode } from './evidence.ts';

export interface ShownSources {
  readonly nodes: readonly SeenNode[];
  readonly servers: readonly ControlPlaneServer[];
  look?: ((place: ServerPlace) => Promise<readonly Certificate[]>) | undefined;
}

const LOOK_TIMEOUT_MS = seconds(3);

/** Who of those who show what a CA signs shows nothing of an older one any more (spec 90, HO-3): servers in a handshake, clients by file. */
export async function presentersOf(
  family: SignerName,
  { current, retiring }: ShownOf,
  { nodes, servers, look = place => chainServed(place, LOOK_TIMEOUT_MS) }: ShownSources,
): Promise<Receipt[]> {
  const older = new Map(retiring.map(ca => [signingKey(ca), ca.subject.commonName] as const));
  const chains = KUBEADM_CHAINS.filter(({ signer }) => signer === family);
  const found = await Promise.all(
    nodes.map(async (node): Promise<Receipt[]> => {
      const sight = (verifier: string, kind: Receipt['kind'], isLoaded: boolean, evidence: string): Receipt => ({
        verifier: `${verifier} on ${node.name}`,
        node: node.name,
        kind,
        isLoaded,
        evidence,
        isWaived: node.isWaived,
      });
      if (node.report === undefined) return [sight('leaves', 'reported', false, 'the agent says nothing')];
      if (isInRound(node))
        return [sight('leaves', 'reported', false, node.report.problem ?? 'the agent is not done yet')];
      const files = chains.flatMap(({ name }): Receipt[] => {
        const issuer = node.report?.leaves[name]?.issuer;
        const olderName = issuer === undefined ? undefined : older.get(issuer);
        if (olderName === undefined) return [];
        return [sight(name, 'reported', false, `is of ${olderName}`)];
      });
      const shown = await Promise.all(
        servers
          .filter(server => server.node === node.name && chains.some(({ name }) => name === server.chain))
          .map(async ({ chain, host, port }) => {
            const [leaf] = await look({ host, port, ...(isIP(host) === 0 && { serverName: host }) });
            if (leaf === undefined) return sight(chain, 'asked', false, `nobody answers at ${host}:${port}`);
            const olderName = older.get(issuerKey(leaf));
            return olderName === undefined
              ? sight(chain, 'asked', true, `shows one of ${current.subject.commonName}`)
              : sight(chain, 'asked', false, `shows one of ${olderName}`);
          }),
      );
      return files.length + shown.length > 0
        ? [...files, ...shown]
        : [sight('leaves', 'reported', true, 'are of the CA in use')];
    }),
  );
  return found.flat().toSorted((a, b) => (a.verifier < b.verifier ? -1 : 1));
}
