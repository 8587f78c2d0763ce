/** What the tests of the cockpit share: an API with the twelve chains of kube-apiserver, and ways to run the command. */

import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { dump } from 'js-yaml';
import { type Api, startApi } from '../../src/api/api.ts';
import { liveObjects } from '../../src/certrotation/ensure.ts';
import { ObjectLocks } from '../../src/certrotation/locks.ts';
import { reconcileOnce } from '../../src/certrotation/reconcile.ts';
import { systemClock } from '../../src/kube/clock.ts';
import { days } from '../../src/kube/duration.ts';
import { recordingEvents } from '../../src/kube/events.ts';
import { hostnameSources } from '../../src/kube-apiserver/rotation/follow-hostnames.ts';
import { rotationUnits } from '../../src/kube-apiserver/rotation/units.ts';
import { prepareCluster } from '../../src/kube-apiserver/testing.ts';
import { issueClient, issueSigner } from '../../src/pki/issue.ts';
import { systemKeys } from '../../src/pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../../src/pki/pem.ts';
import { ended } from '../tools/child.ts';
import { PATIENCE_MS } from '../tools/eventually.ts';

const root = new URL('../..', import.meta.url).pathname;
export const main = join(root, 'src/cli/main.ts');

export interface Cockpit {
  readonly api: Api;
  readonly dir: string;
  readonly kubeconfig: string;
  /** Makes the chains anew where they are due. */
  rotate(): Promise<void>;
  /** A kubeconfig for somebody the API knows and gives no rights, or whose certificate is over. */
  strangersKubeconfig(name: string, lifetimeMs: number): Promise<string>;
  run(args: readonly string[], more?: { readonly kubeconfig?: string; readonly input?: string }): Promise<Result>;
  stop(): Promise<void>;
}

export interface Result {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export async function startCockpit(): Promise<Cockpit> {
  const dir = mkdtempSync(join(tmpdir(), 'rotunda-cockpit-'));
  const api = await startApi({ dir });
  const { kube } = api;
  await prepareCluster({ kube, idle: () => api.engine.idle() });
  const sources = hostnameSources();
  for (const source of Object.values(sources)) source.set(['api.example.com']);
  const units = rotationUnits({ dayMs: days(1), hostnames: sources, keyAlgorithm: 'P-256' });
  const rotation = {
    kube,
    objects: liveObjects(kube),
    clock: systemClock,
    keys: systemKeys,
    locks: new ObjectLocks(),
    events: recordingEvents(),
  };
  const rotate = () => reconcileOnce(units, rotation);
  await rotate();
  const kubeconfig = join(dir, 'kubeconfig');
  const made = new Date(Date.now() - days(2));
  const ca = await issueSigner({
    commonName: 'strangers',
    lifetimeMs: days(30),
    now: made,
    keys: systemKeys,
    algorithm: 'P-256',
  });
  api.setClientCas(encodeCertificates(ca.chain));
  return {
    api,
    dir,
    kubeconfig,
    rotate,
    async strangersKubeconfig(name, lifetimeMs) {
      const pair = await issueClient({
        signer: ca,
        user: { name },
        lifetimeMs,
        now: made,
        keys: systemKeys,
        algorithm: 'P-256',
      });
      const base64 = (text: string) => Buffer.from(text).toString('base64');
      const own = /certificate-authority-data: (\S+)/.exec(api.kubeconfig)?.[1];
      const file = join(dir, `${name}.kubeconfig`);
      const user = {
        'client-certificate-data': base64(encodeCertificates(pair.chain)),
        'client-key-data': base64(encodePrivateKey(pair.key)),
      };
      writeFileSync(file, kubeconfigText(api.url, { 'certificate-authority-data': own }, user), { mode: 0o600 });
      return file;
    },
    run(args, { kubeconfig: other = kubeconfig, input = '' } = {}) {
      return runMain(args, { KUBECONFIG: other }, input);
    },
    async stop() {
      await api.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** A kubeconfig with one of everything. */
export function kubeconfigText(server: string, cluster: object = {}, user: object = {}): string {
  return dump({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'c',
    clusters: [{ name: 'c', cluster: { server, ...cluster } }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
  });
}

/** Runs the command beside this process, which has to go on: the API is in it. */
export function runMain(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  input = '',
): Promise<Result> {
  return new Promise(resolve => {
    const options = {
      timeout: PATIENCE_MS,
      env: { ...process.env, KUBECONFIG: '', HOME: '/nowhere', ...env },
      maxBuffer: 64 * 1024 * 1024,
    };
    const child = execFile(process.execPath, [main, ...args], options, (_error, stdout, stderr) => {
      resolve({ status: child.exitCode, stdout, stderr });
    });
    child.stdin?.end(input);
  });
}

/** A command that goes on: what it has printed so far, and a way to wait for more. */
export class Running {
  text = '';
  readonly child: ChildProcess;
  readonly #waiting = new Set<() => void>();

  constructor(command: string, args: readonly string[], env: Readonly<Record<string, string>>) {
    this.child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ['pipe', 'pipe', 'pipe'] });
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.setEncoding('utf8').on('data', (chunk: string) => {
        this.text += chunk;
        for (const look of this.#waiting) look();
      });
    }
  }

  /** Its exit code, when it has ended. */
  async end(): Promise<number | null> {
    return (await ended(this.child)).code;
  }

  async until(pattern: RegExp): Promise<void> {
    if (pattern.test(this.text)) return;
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(look);
        reject(new Error(`waited for ${pattern} in vain; it printed:\n${this.text}`));
      }, PATIENCE_MS);
      const look = () => {
        if (!pattern.test(this.text)) return;
        clearTimeout(timer);
        this.#waiting.delete(look);
        resolve();
      };
      this.#waiting.add(look);
    });
  }
}

/** The command in a real pseudo-terminal; what is written to its input is typed. Undefined where there is no python3 to make one. */
export function inTerminal(args: readonly string[], kubeconfig: string): Running | undefined {
  if (spawnSync('python3', ['-c', 'import pty']).status !== 0) return undefined;
  const script = 'import pty, sys, os; status = pty.spawn(sys.argv[1:]); sys.exit(os.waitstatus_to_exitcode(status))';
  return new Running('python3', ['-c', script, process.execPath, main, ...args], {
    KUBECONFIG: kubeconfig,
    TERM: 'xterm',
    COLUMNS: '200',
  });
}
