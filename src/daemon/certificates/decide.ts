import { seconds } from '../../kube/duration.ts';
import type { ControllerConfig } from '../../machine-config-api/controller-config.ts';
import {
  CONTROLLER_CONFIG_NAME,
  LAST_OBSERVED_SERVER_CA,
  LAST_SYNCED_CONTROLLER_CONFIG,
  SERVER_CA_DIGEST,
  SERVICE_CA_ROTATE,
} from '../../machine-config-api/names.ts';
import { decodeReceipts, encodeReceipts, NODE_RECEIPTS, type NodeReceipt } from '../../trust/receipts.ts';

type Annotations = Readonly<Record<string, string>>;

/** Without its node the agent cannot say what it has done; it looks again then at the latest (spec 60, 4.2.2). */
export const UNKNOWN_NODE_AGAIN_MS: number = seconds(60);

export type SyncDecision =
  | { readonly sync: false; readonly againMs?: number }
  | {
      readonly sync: true;
      /** Something that the node has not acknowledged. Files are compared in any case: a tampered one is mended. */
      readonly isNews: boolean;
      /** Whether nodes are asked to take another server CA over and this one has not said that it has. */
      readonly isRotationOpen: boolean;
    };

/** Whether, and why, a pass goes over the files (spec 60, 4.2). */
export function decideCertificateSync(
  name: string,
  node: Annotations | undefined,
  controllerConfig: ControllerConfig | undefined,
): SyncDecision {
  if (name !== CONTROLLER_CONFIG_NAME || controllerConfig === undefined) return { sync: false };
  if (node === undefined) return { sync: false, againMs: UNKNOWN_NODE_AGAIN_MS };
  const { resourceVersion = '', annotations = {} } = controllerConfig.metadata ?? {};
  const isChanged = (node[LAST_SYNCED_CONTROLLER_CONFIG] ?? '') !== resourceVersion;
  const isRotating = annotations[SERVICE_CA_ROTATE] === 'true';
  const isRotationOpen = isRotating && node[LAST_OBSERVED_SERVER_CA] !== 'true';
  return { sync: true, isNews: isChanged || isRotating, isRotationOpen };
}

export interface Achieved {
  /** Everything of this ControllerConfig is on disk. */
  readonly isComplete: boolean;
  /** The server CA bundle that is in place and in use; undefined: none, or not yet. */
  readonly serverCaDigest: string | undefined;
}

/**
 * The annotations that say what has been done, as far as the node does not say so yet (spec 60, 4.10): to be written when files
 * are on disk and the kubelet has been restarted, never before (D-5, D-11).
 */
export function acknowledgement(
  node: Annotations,
  { metadata }: ControllerConfig,
  { isComplete, serverCaDigest }: Achieved,
): Record<string, string> {
  const { resourceVersion = '', annotations = {} } = metadata ?? {};
  const rotate = annotations[SERVICE_CA_ROTATE] ?? '';
  const announced = annotations[SERVER_CA_DIGEST];
  const isTaken = serverCaDigest !== undefined && (announced === undefined || announced === serverCaDigest);
  const wanted: Record<string, string> = {
    ...(isComplete && { [LAST_SYNCED_CONTROLLER_CONFIG]: resourceVersion }),
    ...(serverCaDigest !== undefined && { [SERVER_CA_DIGEST]: serverCaDigest }),
    ...((rotate !== 'true' || isTaken) && { [LAST_OBSERVED_SERVER_CA]: rotate }),
  };
  return Object.fromEntries(Object.entries(wanted).filter(([name, value]) => (node[name] ?? '') !== value));
}

/** The annotation with what this node has loaded, where the node says something else: at rest nothing is written (spec 90, HO-11). */
export function receiptsSaid(node: Annotations, receipts: readonly NodeReceipt[]): Record<string, string> {
  const text = encodeReceipts(receipts);
  // Who reads it takes no more than so much; then nothing is said.
  const said = decodeReceipts(text) === undefined ? NOTHING : text;
  return (node[NODE_RECEIPTS] ?? NOTHING) === said ? {} : { [NODE_RECEIPTS]: said };
}

const NOTHING = encodeReceipts([]);
