import { createPublicKey } from 'node:crypto';
import { posix } from 'node:path';
import type { CertificateSigningRequest } from 'kubernetes-types/certificates/v1.d.ts';
import type { Log } from '../../controller/log.ts';
import { rootedFiles } from '../../host/directory-disk.ts';
import type { HostFiles } from '../../host/port.ts';
import type { Access } from '../../kube/access.ts';
import { HttpKube } from '../../kube/client.ts';
import { sleep, systemClock } from '../../kube/clock.ts';
import { days, milliseconds, seconds } from '../../kube/duration.ts';
import type { Kube } from '../../kube/port.ts';
import { CERTIFICATE_SIGNING_REQUESTS, NODES } from '../../kube/resource.ts';
import { CERTIFICATES_DIRECTORY, KUBELET_DIRECTORY } from '../../kubeadm/names.ts';
import { nodeAccess } from '../../kubeadm/node/access.ts';
import { KEY_MODE, KUBELET_CLIENT, placesOf, signerPlace } from '../../kubeadm/node/places.ts';
import { createCertificateRequest, encodeCertificateRequest } from '../../pki/csr.ts';
import { issueServing, issueSigner } from '../../pki/issue.ts';
import { keyAlgorithmOf, systemKeys } from '../../pki/keys.ts';
import { encodeCertificates, encodePrivateKey, readCertificates } from '../../pki/pem.ts';
import type { LocalNode } from '../node.ts';
import { StandInServer } from '../stand-in-server.ts';
import { KUBELET_PORT } from './names.ts';

const SERVING = `${KUBELET_DIRECTORY}/kubelet`;
const SERVING_LIFE_MS = days(365);
const CLIENT_SIGNER = 'kubernetes.io/kube-apiserver-client-kubelet';
/** A real one chooses between seven and nine tenths of the life of its certificate. */
const RENEWED_AT = 0.8;
const SPEAK_EVERY_MS = seconds(2);
const ASK_AGAIN_MS = milliseconds(500);
/** In which the kernel counts the age of processes. */
const TICK_MS = 10;

/**
 * What of a kubelet has to do with certificates: its port, its way to kube-apiserver with what it read at its start, and its client
 * certificate, for which it asks anew in time (spec 80, 2). Pods are run by the node itself.
 */
export class KubeletStandIn {
  readonly #node: LocalNode;
  readonly #log: Log;
  readonly #files: HostFiles;
  readonly #changed: () => void;
  #running: { readonly stop: AbortController; readonly over: Promise<void> } | undefined;
  #isLetIn = false;

  constructor(node: LocalNode, log: Log, changed: () => void) {
    this.#node = node;
    this.#log = log.child({ node: node.name, standsInFor: 'kubelet' });
    this.#files = rootedFiles(node.root);
    this.#changed = changed;
  }

  /** Whether kube-apiserver has let it in when it last asked. */
  get isLetIn(): boolean {
    return this.#isLetIn;
  }

  async start(): Promise<void> {
    await this.#provideServing();
    const server = await this.#serve();
    await this.#showProcess();
    const stop = new AbortController();
    const live = async () => {
      await this.#live(stop.signal);
      await server.stop();
      await this.#files.removeTree('/proc');
      this.#tell(false);
    };
    const over = live();
    this.#running = { stop, over };
    await this.#node.kubeletStarts();
  }

  async stop(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    running?.stop.abort(new Error('the kubelet is stopped'));
    await running?.over;
  }

  async restart(): Promise<void> {
    if (this.#running === undefined) return;
    await this.stop();
    await this.start();
  }

  /** Asks for its Node again and again, and for another certificate in time. */
  async #live(signal: AbortSignal): Promise<void> {
    let kube: HttpKube | undefined;
    try {
      while (!signal.aborted) {
        try {
          kube ??= new HttpKube(await this.#accessOnce());
          await kube.get(NODES, { name: this.#node.name }, { signal });
          this.#tell(true);
          if (await this.#isDue()) {
            await this.#renew(kube, signal);
            await kube.close();
            kube = undefined;
          }
        } catch (err) {
          if (signal.aborted) return;
          this.#log.warn({ err }, 'kube-apiserver could not be asked');
          this.#tell(false);
        }
        await sleep(systemClock, SPEAK_EVERY_MS, signal).catch(() => {});
      }
    } finally {
      await kube?.close();
    }
  }

  /** As the files are now: whatever becomes of them, it needs a restart, or a certificate that it has asked for itself. */
  async #accessOnce(): Promise<Access> {
    const access = nodeAccess({ files: this.#files });
    const connection = await access.connection();
    return { namespace: access.namespace, connection: async () => connection, refused: () => false };
  }

  async #isDue(): Promise<boolean> {
    const { notBefore, notAfter } = await this.#client();
    const lifeMs = notAfter.getTime() - notBefore.getTime();
    return systemClock.now().getTime() >= notBefore.getTime() + RENEWED_AT * lifeMs;
  }

  async #client() {
    const text = (await this.#files.read(KUBELET_CLIENT))?.toString() ?? '';
    const [certificate] = readCertificates(text).certificates;
    if (certificate === undefined) throw new Error(`${KUBELET_CLIENT}: expected a certificate, found none`);
    return certificate;
  }

  async #renew(kube: Kube, signal: AbortSignal): Promise<void> {
    const before = await this.#client();
    const key = await systemKeys.generate(keyAlgorithmOf(before.publicKey) ?? 'P-256');
    const subject = { commonName: `system:node:${this.#node.name}`, organizations: ['system:nodes'] };
    const pem = encodeCertificateRequest(await createCertificateRequest({ keys: systemKeys, key, subject }));
    const isRsa = createPublicKey(key).asymmetricKeyType === 'rsa';
    const wanted: CertificateSigningRequest = {
      metadata: { generateName: 'csr-' },
      spec: {
        request: Buffer.from(pem).toString('base64'),
        signerName: CLIENT_SIGNER,
        usages: ['digital signature', ...(isRsa ? ['key encipherment'] : []), 'client auth'],
      },
    };
    const { metadata } = await kube.create(CERTIFICATE_SIGNING_REQUESTS, wanted, { signal });
    const name = metadata?.name ?? '';
    for (;;) {
      const { status } = await kube.get(CERTIFICATE_SIGNING_REQUESTS, { name }, { signal });
      const refused = status?.conditions?.find(({ type }) => type === 'Denied' || type === 'Failed');
      if (refused !== undefined) throw new Error(`${name}: ${refused.message ?? refused.type}`);
      if (status?.certificate) {
        await this.#keep(Buffer.from(status.certificate, 'base64').toString() + encodePrivateKey(key));
        this.#log.info({ request: name }, 'got another client certificate');
        return;
      }
      await sleep(systemClock, ASK_AGAIN_MS, signal);
    }
  }

  async #keep(pem: string): Promise<void> {
    const stamp = systemClock.now().toISOString().slice(0, 19).replaceAll(/[T:]/g, '-');
    const dated = posix.join(KUBELET_DIRECTORY, `kubelet-client-${stamp}.pem`);
    await this.#files.write(dated, Buffer.from(pem), { mode: KEY_MODE });
    await this.#files.symlink(dated, KUBELET_CLIENT);
  }

  /** Signed by itself, once; kubeadm has nobody verify it. */
  async #provideServing(): Promise<void> {
    if ((await this.#files.stat(`${SERVING}.crt`)) !== undefined) return;
    const now = systemClock.now();
    const common = { keys: systemKeys, now, lifetimeMs: SERVING_LIFE_MS, algorithm: 'P-256' } as const;
    const commonName = `${this.#node.name}-ca@${Math.floor(now.getTime() / 1000)}`;
    const signer = await issueSigner({ ...common, commonName });
    const made = await issueServing({ ...common, signer, hostnames: [this.#node.name] });
    await this.#files.write(`${SERVING}.key`, Buffer.from(encodePrivateKey(made.key)), { mode: KEY_MODE });
    await this.#files.write(`${SERVING}.crt`, Buffer.from(encodeCertificates(made.chain)), { mode: 0o644 });
  }

  async #serve(): Promise<StandInServer> {
    const below = (path: string) => `${this.#node.root}${path}`;
    const server = new StandInServer({
      name: 'kubelet',
      log: this.#log,
      settings: {
        listen: [{ host: this.#node.address, port: KUBELET_PORT }],
        serving: { cert: below(`${SERVING}.crt`), key: below(`${SERVING}.key`) },
        sni: [],
        clientCa: below(signerPlace(placesOf(CERTIFICATES_DIRECTORY), 'ca').certificate),
        servingReload: 'start',
        clientCaReload: 'watch',
        others: [],
      },
    });
    await server.start();
    return server;
  }

  /** Whoever looks for the kubelet among the processes of this node finds this one, and since when it runs. */
  async #showProcess(): Promise<void> {
    const bootSeconds = Math.floor((Date.now() - performance.now()) / 1000) - 1;
    const ticks = Math.floor((systemClock.now().getTime() - bootSeconds * 1000) / TICK_MS);
    const zeros = Array.from({ length: 18 }, () => '0').join(' ');
    const write = (path: string, text: string) => this.#files.write(`/proc/${path}`, Buffer.from(text));
    await write('stat', `cpu 0 0 0\nbtime ${bootSeconds}\n`);
    await write(`${process.pid}/comm`, 'kubelet\n');
    await write(`${process.pid}/stat`, `${process.pid} (kubelet) S ${zeros} ${ticks} 0\n`);
  }

  #tell(isLetIn: boolean): void {
    if (this.#isLetIn === isLetIn) return;
    this.#isLetIn = isLetIn;
    this.#changed();
  }
}
