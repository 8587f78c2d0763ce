import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { BUNDLE_KEY } from '../../certrotation/bundle.ts';
import type { RotationUnit } from '../../certrotation/config.ts';
import { annotationsOf, dataText, TLS_CERT } from '../../certrotation/secret.ts';
import { decideSigner } from '../../certrotation/signer.ts';
import { decideTarget } from '../../certrotation/target.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { certificatesIn } from '../../pki/pem.ts';
import { isSameObject, type ObjectRef } from '../../trust/object.ts';
import { COMBINED_BUNDLES } from '../combined-bundles.ts';
import { OPERAND_OBJECTS, operandRef } from '../operand-objects.ts';

/** One certificate in one object. */
export interface ManagedCertificate {
  readonly object: ObjectRef;
  readonly role: 'signer' | 'target' | 'ca-bundle';
  readonly subject: string;
  readonly issuer: string;
  /** The component that answers for it. */
  readonly owner: string;
  readonly notBefore: Date;
  readonly notAfter: Date;
  /** A newer certificate of the same signer is in the same bundle: this one only has to last until nobody needs it. */
  readonly isSuperseded: boolean;
  /** When it will be replaced, or should have been; absent for what others replace. */
  readonly refreshAt?: Date | undefined;
}

export interface CertificateReport {
  readonly certificates: readonly ManagedCertificate[];
  /** Objects that exist but hold nothing that can be read. */
  readonly unreadable: readonly ObjectRef[];
}

export type ReadObject = (object: ObjectRef) => Secret | ConfigMap | undefined;

/** Everything this operator keeps certificates in, once each. */
export function managedObjects(
  units: readonly RotationUnit[],
): { object: ObjectRef; role: ManagedCertificate['role'] }[] {
  const all = [
    ...units.map(({ signer }) => ({ object: secretRef(signer), role: 'signer' as const })),
    ...units.map(({ bundle }) => ({ object: configMapRef(bundle), role: 'ca-bundle' as const })),
    ...units.map(({ target }) => ({ object: secretRef(target), role: 'target' as const })),
    ...COMBINED_BUNDLES.map(({ destination }) => ({ object: configMapRef(destination), role: 'ca-bundle' as const })),
    ...OPERAND_OBJECTS.filter(({ files }) => files.includes(TLS_CERT) || files.includes(BUNDLE_KEY)).map(listed => ({
      object: operandRef(listed),
      role: listed.kind === 'Secret' ? ('target' as const) : ('ca-bundle' as const),
    })),
  ];
  return all.filter((entry, index) => all.findIndex(other => isSameObject(other.object, entry.object)) === index);
}

/** Reads them all and says of each certificate when it ends and when it will be replaced. */
export function reportCertificates(units: readonly RotationUnit[], read: ReadObject, now: Date): CertificateReport {
  const unreadable: ObjectRef[] = [];
  const certificates = managedObjects(units).flatMap(({ object, role }): ManagedCertificate[] => {
    const stored = read(object);
    const text = stored && textOf(object, stored);
    if (stored === undefined || text === undefined || text === '') return [];
    const found = certificatesIn(text);
    if (found.length === 0) {
      unreadable.push(object);
      return [];
    }
    // Behind a leaf come its issuers, which are reported where they live.
    const own = role === 'ca-bundle' ? found : found.slice(0, 1);
    const owner = annotationsOf(stored)['openshift.io/owning-component'] ?? '';
    return own.map(certificate => ({
      object,
      role,
      subject: certificate.subject.commonName,
      issuer: certificate.issuer.commonName,
      owner,
      notBefore: certificate.notBefore,
      notAfter: certificate.notAfter,
      isSuperseded: own.some(other => isSuccessor(other, certificate)),
      refreshAt: role === 'ca-bundle' ? undefined : refreshTimeOf(object, units, read, certificate, now),
    }));
  });
  return { certificates, unreadable };
}

/** Our signers are called `<namespace>_<name>@<seconds>`: what is before the time says who it is. */
function isSuccessor(newer: Certificate, older: Certificate): boolean {
  const nameOf = ({ subject }: Certificate) => subject.commonName.replace(/@\d+$/, '');
  return nameOf(newer) === nameOf(older) && newer.notBefore > older.notBefore;
}

/** Stays where it was when that moment has passed, so that it can be told how long a certificate has been due. */
function refreshTimeOf(
  object: ObjectRef,
  units: readonly RotationUnit[],
  read: ReadObject,
  { notBefore }: Certificate,
  now: Date,
): Date | undefined {
  const asSigner = units.find(({ signer }) => isSameObject(secretRef(signer), object));
  const asTarget = units.find(({ target }) => isSameObject(secretRef(target), object));
  const unit = asSigner ?? asTarget;
  if (unit === undefined) return undefined;
  const stored = read(object) as Secret;
  const signer = certificatesOf(read, secretRef(unit.signer));
  const bundle = certificatesOf(read, configMapRef(unit.bundle));
  const decideAt = (at: Date) =>
    asSigner
      ? decideSigner(stored, unit.signer, at)
      : decideTarget(stored, signer, bundle.length > 0 ? bundle : undefined, unit.target, at);
  const decision = decideAt(now);
  if (decision.action === 'fail') return undefined;
  if (decision.action === 'keep') return decision.until;
  const whenNew = decideAt(notBefore);
  // What would not even be kept when new is due for another reason than its age: it was asked for, or its host names changed.
  return whenNew.action === 'keep' ? whenNew.until : notBefore;
}

function certificatesOf(read: ReadObject, object: ObjectRef): readonly Certificate[] {
  const stored = read(object);
  return certificatesIn(stored && textOf(object, stored));
}

function textOf({ kind }: ObjectRef, stored: Secret | ConfigMap): string | undefined {
  return kind === 'Secret' ? dataText(stored as Secret, TLS_CERT) : stored.data?.[BUNDLE_KEY];
}

function secretRef({ namespace, name }: { namespace: string; name: string }): ObjectRef {
  return { kind: 'Secret', namespace, name };
}

function configMapRef({ namespace, name }: { namespace: string; name: string }): ObjectRef {
  return { kind: 'ConfigMap', namespace, name };
}
