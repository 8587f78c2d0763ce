import type { Registry } from '@prometheus-io/client';
import { collectGauge } from '../../controller/collected-gauge.ts';
import { effectOfChange } from '../../trust/effect.ts';
import { type ObjectRef, objectText } from '../../trust/object.ts';
import { kubeApiserverTrust } from '../trust.ts';
import type { CertificateReport, ManagedCertificate } from './managed-certificates.ts';

export const NOT_AFTER_METRIC = 'rotunda_certificate_not_after_timestamp_seconds';
export const NOT_BEFORE_METRIC = 'rotunda_certificate_not_before_timestamp_seconds';
export const REFRESH_METRIC = 'rotunda_certificate_refresh_timestamp_seconds';
export const UNREADABLE_METRIC = 'rotunda_certificate_unreadable';
export const OBJECTS_METRIC = 'rotunda_certificates';
export const SOURCE_UP_METRIC = 'rotunda_certificate_source_up';

const LABELS = ['kind', 'namespace', 'name', 'role', 'subject', 'issuer', 'owner', 'consumers', 'superseded'] as const;

export interface CertificateMetricsOptions {
  /** Looked at when somebody asks. */
  readonly report: () => CertificateReport;
  /** Whether what the report reads from is complete. */
  readonly isUp: () => boolean;
}

/**
 * When every certificate we manage ends, as Unix time: a query subtracts `time()` (spec 70, 8.2). Old CAs that stay in a bundle
 * for the overlap are marked as superseded, so that nobody is woken up for them.
 */
export function certificateMetrics(registry: Registry, { report, isUp }: CertificateMetricsOptions): void {
  const times = (name: string, help: string, time: (certificate: ManagedCertificate) => Date | undefined) =>
    collectGauge(registry, {
      name,
      help,
      labels: LABELS,
      values: () =>
        report().certificates.flatMap(certificate => {
          const at = time(certificate);
          return at === undefined ? [] : [[labelsOf(certificate), at.getTime() / 1000] as const];
        }),
    });
  times(NOT_AFTER_METRIC, 'When a certificate ends, in Unix seconds.', ({ notAfter }) => notAfter);
  times(NOT_BEFORE_METRIC, 'When a certificate began, in Unix seconds.', ({ notBefore }) => notBefore);
  times(
    REFRESH_METRIC,
    'When a certificate will be replaced, or should have been, in Unix seconds.',
    ({ refreshAt }) => refreshAt,
  );
  collectGauge(registry, {
    name: UNREADABLE_METRIC,
    help: 'An object that should hold certificates but holds nothing that can be read.',
    labels: ['kind', 'namespace', 'name'],
    values: () => report().unreadable.map(({ kind, namespace, name }) => [{ kind, namespace, name }, 1] as const),
  });
  collectGauge(registry, {
    name: OBJECTS_METRIC,
    help: 'How many certificates are seen, by role.',
    labels: ['role'],
    values: () => {
      const byRole = Map.groupBy(report().certificates, ({ role }) => role);
      return [...byRole].map(([role, certificates]) => [{ role }, certificates.length] as const);
    },
  });
  collectGauge<string>(registry, {
    name: SOURCE_UP_METRIC,
    help: 'Whether the objects these metrics are made from can be seen.',
    values: () => [[{}, isUp() ? 1 : 0]],
  });
}

function labelsOf({ object, role, subject, issuer, owner, isSuperseded }: ManagedCertificate) {
  const { kind, namespace, name } = object;
  const consumers = consumersOf(object);
  return { kind, namespace, name, role, subject, issuer, owner, consumers, superseded: String(isSuperseded) };
}

const TRUST = kubeApiserverTrust();
const consumers = new Map<string, string>();

/** The processes that a change of the object reaches, so that an alert names who is hit (spec 70, 9.10). */
function consumersOf(object: ObjectRef): string {
  const id = objectText(object);
  let known = consumers.get(id);
  if (known === undefined) {
    const processes = effectOfChange(TRUST, object).flatMap(({ uses }) => uses.map(({ process }) => process));
    consumers.set(id, (known = [...new Set(processes)].sort().join(',')));
  }
  return known;
}
