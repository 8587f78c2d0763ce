import type { Log } from '../../controller/log.ts';
import type { HandOverReport } from '../../hand-over/report.ts';
import type { Clock } from '../../kube/clock.ts';
import type { EventRecorder } from '../../kube/events.ts';
import type { Kube } from '../../kube/port.ts';
import type { KeyAlgorithm, Keys } from '../../pki/keys.ts';
import type { ExpirationMetrics } from '../metrics.ts';
import type { Profile } from '../profile.ts';
import type { HealthRequest } from '../quorum/member.ts';

/** Names the controller in conditions, events and errors. */
export const CERT_SIGNER = 'EtcdCertSignerController';

/** Says whether a member may go down now. `safe: false` without an error is taken as it is. */
export type QuorumCheck = (
  request: HealthRequest,
) => Promise<{ readonly safe: boolean; readonly error?: string | undefined }>;

/** What the cert signer needs from the world. */
export interface CertSignerDependencies {
  readonly kube: Kube;
  readonly clock: Clock;
  readonly keys: Keys;
  readonly events: Pick<EventRecorder, 'event'>;
  readonly profile: Profile;
  readonly quorum: QuorumCheck;
  readonly metrics: ExpirationMetrics;
  /** Told after each pass where the hand-over of every signer stands; nobody is when absent. */
  readonly handOvers?: Pick<HandOverReport, 'decided'> | undefined;
  readonly keyAlgorithm?: KeyAlgorithm | undefined;
  readonly log?: Pick<Log, 'info' | 'warn'> | undefined;
  /** One pass makes everything, for rendering (spec 40, N-7). */
  readonly isGateOff?: boolean | undefined;
}

/** The same for one pass. */
export interface CertSignerOptions extends CertSignerDependencies {
  /** Throws when the quorum does not allow what is about to be written. */
  readonly secondCheck: () => Promise<void>;
}
