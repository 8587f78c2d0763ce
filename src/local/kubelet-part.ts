import { CORE_SCHEMA, dump, load } from 'js-yaml';
import { loadSecret } from '../certrotation/secret.ts';
import { BOOTSTRAP_KUBECONFIG, KUBELET_CA, LIVE_KUBECONFIG } from '../daemon/certificates/paths.ts';
import { aborted } from '../kube/aborted.ts';
import { sleep, systemClock } from '../kube/clock.ts';
import { milliseconds } from '../kube/duration.ts';
import { SECRETS } from '../kube/resource.ts';
import type { CertificateAndKey } from '../pki/authority.ts';
import { issueClient, issueServing } from '../pki/issue.ts';
import { systemKeys } from '../pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../pki/pem.ts';
import { writeFileAtomically } from '../staticpod/node/atomic-write.ts';
import { type Files, systemFiles } from '../staticpod/node/files.ts';
import { CSR_SIGNER, issuing } from './cluster-inputs.ts';
import type { LocalNode } from './node.ts';
import type { ClusterPart, PartContext } from './part.ts';
import { StandInServer } from './stand-in-server.ts';

const PORT = 10_250;
const PKI = '/var/lib/kubelet/pki';
const LOOK_EVERY_MS = milliseconds(300);

/**
 * What a kubelet shows to others: its port, with a serving certificate of the CSR signer, open to clients of the CAs in the file that
 * the agent of the node keeps; and the kubeconfig of its own. It is no kubelet; pods are run by the node itself.
 */
export const kubeletPart: ClusterPart = {
  name: 'kubelets',
  async start(context) {
    const { nodes, signal, changed } = context;
    let serving = 0;
    const work = async () => {
      const signer = loadSecret(await context.patiently(() => context.kube.get(SECRETS, CSR_SIGNER, { signal })));
      await Promise.all(
        nodes.map(async node => {
          await node.power.whileOn(signal, async on => {
            const server = await startServer(node, signer, context, on);
            serving++;
            changed();
            await aborted(on);
            serving--;
            await server?.stop();
          });
        }),
      );
    };
    return {
      ended: work(),
      state: () => ({
        ready: serving === nodes.length,
        text: `${serving} of ${nodes.length} serve with the CAs that their agent has written`,
      }),
    };
  },
};

/** What a kubelet makes of the kubeconfig that it was given, once it has a certificate. From then on the agent of the node keeps both. */
async function provideKubeconfig(files: Files): Promise<void> {
  if ((await files.info(LIVE_KUBECONFIG)) !== undefined) return;
  const given = load((await files.readFile(BOOTSTRAP_KUBECONFIG)).toString(), { schema: CORE_SCHEMA }) as object;
  const pair = `${PKI}/kubelet-client-current.pem`;
  const users = [{ name: 'kubelet', user: { 'client-certificate': pair, 'client-key': pair } }];
  await writeFileAtomically(files, LIVE_KUBECONFIG, Buffer.from(dump({ ...given, users })), 0o600);
}

/** Undefined when the cluster was closed before. */
async function startServer(
  node: LocalNode,
  signer: CertificateAndKey,
  { log, keyAlgorithm }: PartContext,
  signal: AbortSignal,
): Promise<StandInServer | undefined> {
  const files = systemFiles(node.root);
  const options = { ...issuing({ keys: systemKeys, clock: systemClock, keyAlgorithm }), signer };
  const user = { name: `system:node:${node.name}`, groups: ['system:nodes'] };
  const pairs = {
    'kubelet-server-current.pem': () => issueServing({ ...options, hostnames: [node.name, node.address] }),
    'kubelet-client-current.pem': () => issueClient({ ...options, user }),
  };
  await files.makeDirectory(PKI);
  for (const [name, issue] of Object.entries(pairs)) {
    if ((await files.info(`${PKI}/${name}`)) !== undefined) continue;
    const { chain, key } = await issue();
    const text = encodeCertificates(chain) + encodePrivateKey(key);
    await writeFileAtomically(files, `${PKI}/${name}`, Buffer.from(text), 0o600);
  }
  for (const path of [KUBELET_CA, BOOTSTRAP_KUBECONFIG]) {
    while ((await files.info(path)) === undefined) {
      await sleep(systemClock, LOOK_EVERY_MS, signal).catch(() => {});
      if (signal.aborted) return undefined;
    }
  }
  await provideKubeconfig(files);
  const pair = `${node.root}${PKI}/kubelet-server-current.pem`;
  const server = new StandInServer({
    name: 'kubelet',
    log: log.child({ node: node.name }),
    settings: {
      listen: [{ host: node.address, port: PORT }],
      serving: { cert: pair, key: pair },
      sni: [],
      clientCa: `${node.root}${KUBELET_CA}`,
      servingReload: 'watch',
      clientCaReload: 'watch',
      others: [],
    },
  });
  await server.start();
  return server;
}
