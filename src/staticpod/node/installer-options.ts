import { parseGoDuration, seconds } from '../../kube/duration.ts';
import { FlagError, parseFlags } from './flags.ts';
import { SETTLE_PAUSE_MS } from './settle.ts';

/** What one run of the installer is asked to do. Names of objects are without revision. */
export interface InstallerOptions {
  /** Inserted literally; must be an integer for the settle phase. */
  readonly revision: string;
  readonly nodeName: string;
  readonly namespace: string;
  /** The ConfigMap with the manifests. */
  readonly pod: string;
  readonly resourceDir: string;
  readonly podManifestDir: string;
  readonly configMaps: readonly string[];
  readonly optionalConfigMaps: readonly string[];
  readonly secrets: readonly string[];
  readonly optionalSecrets: readonly string[];
  /** Absent: no unrevisioned directory is primed. */
  readonly certDir?: string | undefined;
  readonly certConfigMaps: readonly string[];
  readonly optionalCertConfigMaps: readonly string[];
  readonly certSecrets: readonly string[];
  readonly optionalCertSecrets: readonly string[];
  readonly podManifestsLockFile?: string | undefined;
  /** For the copy phase, counted from its start (spec 30, T29). */
  readonly timeoutMs: number;
  readonly settlePauseMs: number;
  readonly kubeconfig?: string | undefined;
}

type Env = Readonly<Record<string, string | undefined>>;

const TIMEOUT_MS = seconds(120);

const FLAGS = {
  kubeconfig: 'text',
  revision: 'text',
  namespace: 'text',
  pod: 'text',
  secrets: 'list',
  configmaps: 'list',
  'optional-secrets': 'list',
  'optional-configmaps': 'list',
  'resource-dir': 'text',
  'pod-manifest-dir': 'text',
  'timeout-duration': 'duration',
  'pod-manifests-lock-file': 'text',
  'cert-secrets': 'list',
  'cert-configmaps': 'list',
  'optional-cert-secrets': 'list',
  'optional-cert-configmaps': 'list',
  'cert-dir': 'text',
} as const;

/** Reads the flags of upstream's installer and the environment of its pod (spec 30, 10.1). */
export function parseInstallerOptions(argv: readonly string[], env: Env): InstallerOptions {
  const flags = parseFlags(argv, FLAGS);
  const options: InstallerOptions = {
    revision: required(flags.revision, '--revision'),
    nodeName: required(env.NODE_NAME, 'env var NODE_NAME'),
    namespace: required(flags.namespace, '--namespace'),
    pod: required(flags.pod, '--pod'),
    configMaps: requiredList(flags.configmaps, '--configmaps'),
    resourceDir: required(flags['resource-dir'], '--resource-dir'),
    podManifestDir: required(flags['pod-manifest-dir'], '--pod-manifest-dir'),
    optionalConfigMaps: flags['optional-configmaps'] ?? [],
    secrets: flags.secrets ?? [],
    optionalSecrets: flags['optional-secrets'] ?? [],
    certDir: flags['cert-dir'] || undefined,
    certConfigMaps: flags['cert-configmaps'] ?? [],
    optionalCertConfigMaps: flags['optional-cert-configmaps'] ?? [],
    certSecrets: flags['cert-secrets'] ?? [],
    optionalCertSecrets: flags['optional-cert-secrets'] ?? [],
    podManifestsLockFile: flags['pod-manifests-lock-file'] || undefined,
    timeoutMs: flags['timeout-duration'] ?? TIMEOUT_MS,
    settlePauseMs: settlePauseMs(env.ROTUNDA_SETTLE_PAUSE),
    kubeconfig: flags.kubeconfig || undefined,
  };
  if (options.timeoutMs === 0) throw new FlagError('--timeout-duration cannot be 0');
  return options;
}

/** A local cluster whose days last seconds cannot pause for half a minute; its nodes set this in the environment. */
function settlePauseMs(text: string | undefined): number {
  if (text === undefined || text === '') return SETTLE_PAUSE_MS;
  const duration = parseGoDuration(text);
  if (duration === undefined || duration < 0) {
    throw new FlagError(`env var ROTUNDA_SETTLE_PAUSE: expected a duration such as 30s, found ${JSON.stringify(text)}`);
  }
  return duration;
}

function required(value: string | undefined, name: string): string {
  if (value === undefined || value === '') throw new FlagError(`${name} is required`);
  return value;
}

function requiredList(value: string[] | undefined, name: string): string[] {
  if (value === undefined || value.length === 0) throw new FlagError(`${name} is required`);
  return value;
}
