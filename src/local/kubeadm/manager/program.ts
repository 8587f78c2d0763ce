import { mkdtempSync, rmSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { lead } from '../../../controller/lead.ts';
import type { Log } from '../../../controller/log.ts';
import type { Access } from '../../../kube/access.ts';
import { againWhileTransient } from '../../../kube/again.ts';
import { HttpKube } from '../../../kube/client.ts';
import { systemClock } from '../../../kube/clock.ts';
import { days, seconds } from '../../../kube/duration.ts';
import { loadAccess } from '../../../kube/kubeconfig.ts';
import type { Kube } from '../../../kube/port.ts';
import { issueServing, issueSigner } from '../../../pki/issue.ts';
import { systemKeys } from '../../../pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../../../pki/pem.ts';
import { writeFileAtomically } from '../../../staticpod/node/atomic-write.ts';
import { systemFiles } from '../../../staticpod/node/files.ts';
import { PathMap } from '../../../staticpod/node/path-map.ts';
import { Flags } from '../../stand-in-flags.ts';
import type { InputSpec } from '../../stand-in-input.ts';
import { StandInServer } from '../../stand-in-server.ts';

export type Env = Readonly<Record<string, string | undefined>>;

export interface ManagerOptions {
  /** Its name, which is that of its lease too. */
  readonly name: string;
  readonly port: number;
  readonly argv: readonly string[];
  readonly env: Env;
  readonly log: Log;
  /** Files besides its kubeconfig, by flag. */
  readonly inputs: readonly FlaggedInput[];
  /** Of these its clients are told. */
  readonly clientCaFlag?: string | undefined;
  /** What it does while it leads; ends when `signal` aborts. */
  work(kube: Kube, loaded: Loaded, signal: AbortSignal): Promise<void>;
}

export interface FlaggedInput extends Omit<InputSpec, 'paths'> {
  readonly flags: readonly string[];
}

/** What of a file is in effect now. */
export type Loaded = (input: string, index?: number) => string | undefined;

const LEASE_TIMES = { leaseDurationMs: seconds(15), renewDeadlineMs: seconds(10), retryMs: seconds(2) };
const SELF_SIGNED_MS = days(365);

/**
 * Stands in for a program of the control plane that has a port of its own, and works while it leads: its kubeconfig is read once, at the
 * start, and whoever is not let in any more loses the lease and ends, to be started again by the kubelet.
 */
export async function managerServer(
  options: ManagerOptions,
): Promise<{ start(): Promise<void>; stop(): Promise<void> }> {
  const { name, argv, env, log, inputs, clientCaFlag } = options;
  const flags = new Flags(argv);
  const paths = PathMap.fromEnv(env);
  const path = (flag: string) => {
    const value = flags.get(flag);
    return value === undefined ? undefined : paths.outside(value);
  };
  const kubeconfig = path('kubeconfig');
  if (kubeconfig === undefined) throw new Error('--kubeconfig is required');
  const kube = new HttpKube(await accessOnce(kubeconfig), { fieldManager: name });
  const folder = mkdtempSync(join(tmpdir(), `${name}-`));
  const others = [{ name: 'kubeconfig', kind: 'file', reload: 'start', flags: ['kubeconfig'] } as const, ...inputs];
  const server = new StandInServer({
    name,
    log,
    settings: {
      listen: [
        { host: flags.get('bind-address') ?? env.ROTUNDA_NODE_ADDRESS ?? '127.0.0.1', port: portOf(options, flags) },
      ],
      serving: await selfSigned(folder, flags.get('bind-address') ?? '127.0.0.1'),
      sni: [],
      clientCa: clientCaFlag === undefined ? undefined : path(clientCaFlag),
      servingReload: 'start',
      clientCaReload: 'watch',
      others: others.flatMap(({ flags: named, ...spec }) => {
        const files = named.map(path);
        return files.every(file => file !== undefined) ? [{ ...spec, paths: files }] : [];
      }),
    },
  });
  const stop = new AbortController();
  let working = Promise.resolve();
  // The kube-apiserver of the node may begin later than this.
  const run = () =>
    againWhileTransient(leading, { signal: stop.signal, onError: err => log.info({ err }, 'nobody answers yet') });
  const leading = () =>
    lead(
      {
        kube,
        clock: systemClock,
        log,
        lease: { namespace: 'kube-system', name },
        identity: `${env.HOSTNAME ?? hostname()}_${process.pid}`,
        ...LEASE_TIMES,
      },
      (fenced, signal) => options.work(fenced, (input, index) => server.text(input, index), signal),
      stop.signal,
    );
  return {
    async start() {
      await server.start();
      working = run().catch((err: unknown) => {
        if (stop.signal.aborted) return;
        log.error({ err }, 'the lease is lost');
        process.exit(1);
      });
    },
    async stop() {
      stop.abort(new Error('told to stop'));
      await working;
      await server.stop();
      await kube.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function portOf({ port }: ManagerOptions, flags: Flags): number {
  return Number(flags.get('secure-port') ?? port);
}

/** As it is in the file now, whatever becomes of that. */
async function accessOnce(path: string): Promise<Access> {
  const access = await loadAccess({ path });
  const connection = await access.connection();
  return { namespace: access.namespace, connection: async () => connection, refused: () => false };
}

/** Nobody verifies it. */
async function selfSigned(folder: string, host: string): Promise<{ cert: string; key: string }> {
  const options = { keys: systemKeys, now: systemClock.now(), lifetimeMs: SELF_SIGNED_MS, algorithm: 'P-256' } as const;
  const signer = await issueSigner({ ...options, commonName: `${host}-ca` });
  const { chain, key } = await issueServing({ ...options, signer, hostnames: [host, 'localhost'] });
  const files = systemFiles();
  const pair = { cert: join(folder, 'serving.crt'), key: join(folder, 'serving.key') };
  await writeFileAtomically(files, pair.cert, Buffer.from(encodeCertificates(chain)), 0o600);
  await writeFileAtomically(files, pair.key, Buffer.from(encodePrivateKey(key)), 0o600);
  return pair;
}
