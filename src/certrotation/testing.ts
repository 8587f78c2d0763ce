import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { VirtualClock } from '../kube/clock.ts';
import { days, seconds } from '../kube/duration.ts';
import { type RecordedEvent, recordingEvents } from '../kube/events.ts';
import { MemoryKube } from '../kube/memory.ts';
import type { Kube } from '../kube/port.ts';
import { formatRfc3339 } from '../kube/time.ts';
import type { CertificateAndKey } from '../pki/authority.ts';
import { issueSigner } from '../pki/issue.ts';
import { systemKeys } from '../pki/keys.ts';
import { ISSUER, NOT_AFTER, NOT_BEFORE } from './annotations.ts';
import type { RotationUnit, SignerConfig, TargetConfig } from './config.ts';
import { clientCreator } from './creator.ts';
import { liveObjects, type Rotation } from './ensure.ts';
import { ObjectLocks } from './locks.ts';
import { withCertificate } from './secret.ts';

/** What the tests of this room share: one moment, one small cluster, one unit. */
export const NOW = new Date('2026-01-01T00:00:00Z');

export function at(relativeSeconds: number): Date {
  return new Date(NOW.getTime() + seconds(relativeSeconds));
}

export interface TestRotation extends Rotation {
  readonly clock: VirtualClock;
  readonly events: Rotation['events'] & { readonly events: RecordedEvent[] };
}

export function testRotation(kube: Kube = new MemoryKube(), clock = new VirtualClock(NOW)): TestRotation {
  const events = recordingEvents();
  return { kube, objects: liveObjects(kube), clock, keys: systemKeys, events, locks: new ObjectLocks() };
}

export const SIGNER: SignerConfig = {
  namespace: 'ns',
  name: 'signer',
  validityMs: days(30),
  refreshMs: days(15),
  keyAlgorithm: 'P-256',
};

export const TARGET: TargetConfig = { ...SIGNER, name: 'target', creator: clientCreator({ name: 'user' }) };

export const UNIT: RotationUnit = {
  name: 'Unit',
  signer: SIGNER,
  bundle: { namespace: 'ns', name: 'bundle' },
  target: TARGET,
};

/** A CA valid from and to these seconds around `NOW`. */
export function testCA(commonName: string, notBeforeRel = -1, notAfterRel = 30 * 86_400): Promise<CertificateAndKey> {
  const lifetimeMs = seconds(notAfterRel - notBeforeRel - 1);
  return issueSigner({ commonName, lifetimeMs, now: at(notBeforeRel + 1), keys: systemKeys, algorithm: 'P-256' });
}

export function timeAnnotations(notBeforeRel: number, notAfterRel: number, issuer = 'ca'): Record<string, string> {
  return {
    [NOT_BEFORE]: formatRfc3339(at(notBeforeRel)),
    [NOT_AFTER]: formatRfc3339(at(notAfterRel)),
    [ISSUER]: issuer,
  };
}

export function secretOf(certificate: CertificateAndKey, role: 'signer' | 'target' = 'signer'): Secret {
  const secret: Secret = { metadata: { namespace: 'ns', name: role }, type: 'kubernetes.io/tls' };
  return withCertificate(secret, certificate, role, days(15));
}
