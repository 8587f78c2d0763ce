import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { days, formatGoDuration, parseGoDuration, seconds } from '../kube/duration.ts';
import type { SignerName } from './chains.ts';
import { isFields, isMoment, isSignerName, type Reader, readJson } from './exchange.ts';
import { CERTIFICATES_DIRECTORY, PKI_NAMESPACE } from './names.ts';

/** The one ConfigMap of an adopted cluster: what was agreed on at its adoption, and what its operator is doing now. */
export const CLUSTER_RECORD = { namespace: PKI_NAMESPACE, name: 'kubeadm' } as const;

/** What adoption wrote down. */
export interface ClusterSettings {
  /** Of the nodes; `certificatesDir` of ClusterConfiguration. */
  readonly certificatesDirectory: string;
  /** The keys of the CAs stay on the nodes: Secrets hold certificates alone (KA-2). */
  readonly keysOnNodes: boolean;
  /** The part of its life after which a leaf is made anew (KA-5). */
  readonly refresh: number;
  /** What becomes of pods that hold older trust in a hand-over (KA-9). */
  readonly pods: PodsPolicy;
  /** The node whose agent copies the CAs into Secrets. */
  readonly publishFrom: string;
  /** How long a day of validities lasts, where that is not 24 hours: in a cluster that is only for trying. */
  readonly dayMs?: number | undefined;
}

export type PodsPolicy = 'wait' | 'restart' | 'ignore';

/** What the operator says of itself, for people and for programs; the same state gives the same text. */
export interface ClusterStatus {
  /** All control-plane nodes were seen to agree (KA-1), and the Secrets of all CAs are there. */
  readonly adopted: boolean;
  /** What stands in the way of that, one sentence each. */
  readonly differences: readonly string[];
  /** One sentence: what is going on, or that all is as it is to be, and what comes next. */
  readonly message: string;
  /** The node that is being changed; absent: none is. */
  readonly round?: RoundStatus | undefined;
  /** Who holds up what would be done otherwise. */
  readonly waitingFor: readonly Waiting[];
  readonly families: Readonly<Partial<Record<SignerName, FamilyStatus>>>;
  /** Of the keys of service accounts; absent: nobody asked for other ones. */
  readonly serviceAccount?: FamilyStatus | undefined;
}

export interface RoundStatus {
  readonly node: string;
  readonly round: string;
  readonly since: string;
  /** What is done there, for people. */
  readonly because: string;
}

export interface Waiting {
  /** By name: `node/<name>`, or a verifier as a hand-over calls it. */
  readonly who: string;
  readonly why: string;
  readonly since: string;
}

export interface FamilyStatus {
  /** As `Phase` of a hand-over; `Separating` and `Joining` are the steps before and after it (KA-7). */
  readonly phase: string;
  readonly because: string;
  /** Since when the next one is known, or else since when the phase is this one; absent: it is `Steady`. */
  readonly since?: string | undefined;
  /** Whose word it waits for, as `Waiting` names them; absent: nobody's. */
  readonly waitingFor?: readonly string[] | undefined;
  /** The earliest moment at which what is retiring leaves, where that is known; `because` says what else it takes. */
  readonly leavesAt?: string | undefined;
}

export const DEFAULT_REFRESH = 0.666;

const SETTINGS_KEYS = {
  certificatesDirectory: 'certificatesDir',
  keysOnNodes: 'keysOnNodes',
  refresh: 'refresh',
  pods: 'pods',
  publishFrom: 'publishFrom',
  dayMs: 'rotationDay',
} as const;
const SHORTEST_DAY_MS = seconds(1);
const STATUS_KEY = 'status';
const LONGEST_STATUS = 256 * 1024;
const MOST_ENTRIES = 1000;
const LONGEST_NAME = 253;
const LONGEST_PATH = 4096;

/** The data of the ConfigMap as adoption writes it; `status` is the operator's. */
export function encodeSettings(settings: ClusterSettings): Record<string, string> {
  return {
    [SETTINGS_KEYS.certificatesDirectory]: settings.certificatesDirectory,
    [SETTINGS_KEYS.keysOnNodes]: String(settings.keysOnNodes),
    [SETTINGS_KEYS.refresh]: String(settings.refresh),
    [SETTINGS_KEYS.pods]: settings.pods,
    [SETTINGS_KEYS.publishFrom]: settings.publishFrom,
    ...(settings.dayMs !== undefined && { [SETTINGS_KEYS.dayMs]: formatGoDuration(settings.dayMs) }),
  };
}

export type ReadSettings =
  | { readonly ok: true; readonly settings: ClusterSettings }
  /** What is wrong, with what was expected and found. */
  | { readonly ok: false; readonly problem: string };

/** What adoption wrote down, or what is wrong with it; what is left out stands for what is usual. */
export function readSettings({ data = {} }: Pick<ConfigMap, 'data'>): ReadSettings {
  const wrong = (key: string, expected: string): ReadSettings => ({
    ok: false,
    problem: `${key} in ConfigMap ${CLUSTER_RECORD.namespace}/${CLUSTER_RECORD.name} must be ${expected}, found ${quoted(data[key])}`,
  });
  const certificatesDirectory = data[SETTINGS_KEYS.certificatesDirectory] ?? CERTIFICATES_DIRECTORY;
  if (!certificatesDirectory.startsWith('/') || certificatesDirectory.length > LONGEST_PATH)
    return wrong(SETTINGS_KEYS.certificatesDirectory, 'an absolute path');
  const keysOnNodes = data[SETTINGS_KEYS.keysOnNodes] ?? 'false';
  if (keysOnNodes !== 'true' && keysOnNodes !== 'false') return wrong(SETTINGS_KEYS.keysOnNodes, '"true" or "false"');
  const refresh = refreshFrom(data[SETTINGS_KEYS.refresh] ?? String(DEFAULT_REFRESH));
  if (refresh === undefined) return wrong(SETTINGS_KEYS.refresh, 'a number above 0 and below 1, such as "0.666"');
  const pods = data[SETTINGS_KEYS.pods] ?? 'wait';
  if (!isPodsPolicy(pods)) return wrong(SETTINGS_KEYS.pods, '"wait", "restart" or "ignore"');
  const publishFrom = data[SETTINGS_KEYS.publishFrom] ?? '';
  if (publishFrom === '' || publishFrom.length > LONGEST_NAME)
    return wrong(SETTINGS_KEYS.publishFrom, 'the name of a control-plane node');
  const day = data[SETTINGS_KEYS.dayMs];
  const dayMs = rotationDayFrom(day);
  if (day !== undefined && dayMs === undefined) return wrong(SETTINGS_KEYS.dayMs, 'a duration from 1s to 24h');
  return {
    ok: true,
    settings: {
      certificatesDirectory,
      keysOnNodes: keysOnNodes === 'true',
      refresh,
      pods,
      publishFrom,
      ...(dayMs !== undefined && { dayMs }),
    },
  };
}

/** The part of a life that a text names; undefined: it names none. */
export function refreshFrom(text: string): number | undefined {
  const refresh = /^0?\.\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  return refresh > 0 ? refresh : undefined;
}

/** How long a day lasts that a text names; undefined: it names none. */
export function rotationDayFrom(text: string | undefined): number | undefined {
  const dayMs = text === undefined ? undefined : parseGoDuration(text);
  return dayMs !== undefined && dayMs >= SHORTEST_DAY_MS && dayMs <= days(1) ? dayMs : undefined;
}

export function isPodsPolicy(text: string): text is PodsPolicy {
  return text === 'wait' || text === 'restart' || text === 'ignore';
}

/** The ConfigMap with this status in it, and everything else as it was. */
export function withStatus(record: ConfigMap, status: ClusterStatus): ConfigMap {
  return { ...record, data: { ...record.data, [STATUS_KEY]: JSON.stringify(status) } };
}

/** What the operator last said; undefined: nothing yet, or nothing that can be understood. */
export function statusOf(record: Pick<ConfigMap, 'data'> | undefined): ClusterStatus | undefined {
  return readJson(record?.data?.[STATUS_KEY], LONGEST_STATUS, isStatus);
}

const isStatus: Reader<ClusterStatus> = (value): value is ClusterStatus => {
  if (!isFields(value)) return false;
  const { adopted, differences, message, round, waitingFor, families, serviceAccount } = value;
  return (
    typeof adopted === 'boolean' &&
    isListOf(differences, isText) &&
    isText(message) &&
    (round === undefined || isRound(round)) &&
    isListOf(waitingFor, isWaiting) &&
    isFields(families) &&
    Object.entries(families).every(([name, family]) => isSignerName(name) && isFamily(family)) &&
    (serviceAccount === undefined || isFamily(serviceAccount))
  );
};

function isRound(value: unknown): value is RoundStatus {
  return isFields(value) && isText(value.node) && isText(value.round) && isMoment(value.since) && isText(value.because);
}

function isWaiting(value: unknown): value is Waiting {
  return isFields(value) && isText(value.who) && isText(value.why) && isMoment(value.since);
}

function isFamily(value: unknown): value is FamilyStatus {
  if (!isFields(value)) return false;
  const { phase, because, since, waitingFor, leavesAt } = value;
  return (
    isText(phase) &&
    isText(because) &&
    (since === undefined || isMoment(since)) &&
    (waitingFor === undefined || isListOf(waitingFor, isText)) &&
    (leavesAt === undefined || isMoment(leavesAt))
  );
}

function isListOf<T>(value: unknown, isOne: (one: unknown) => one is T): value is readonly T[] {
  return Array.isArray(value) && value.length <= MOST_ENTRIES && value.every(isOne);
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function quoted(text: string | undefined): string {
  return text === undefined ? 'none' : JSON.stringify(text.slice(0, 80));
}
