import { createPublicKey, type KeyObject } from 'node:crypto';
import type { CertificateAndKey } from './authority.ts';
import type { Certificate, KeyUsage } from './certificate.ts';
import { PkiError } from './error.ts';
import { splitHosts } from './hosts.ts';
import { subjectKeyIdOfInfo } from './key-id.ts';
import type { KeyAlgorithm, Keys } from './keys.ts';
import { MAX_HOSTNAME_CHARACTERS, MAX_HOSTNAMES } from './limits.ts';
import type { Name, NameAttributes } from './name.ts';
import { publicKeyInfoOf } from './signature.ts';
import { type Issuer, type MutableTemplate, randomSerial, signTemplate } from './template.ts';
import { subjectForUser, type UserInfo } from './user.ts';
import { type Validity, validityFor } from './validity.ts';

export type { MutableTemplate } from './template.ts';

/** What every issuance needs. */
export interface IssueOptions {
  readonly keys: Keys;
  readonly now: Date;
  /** The wanted lifetime, counted from `now`; cut to the signer's end (spec 10, V-2, V-3). */
  readonly lifetimeMs: number;
  /** `RSA-2048` unless told otherwise, as in 4.16. */
  readonly algorithm?: KeyAlgorithm | undefined;
}

/** Changes a certificate just before it is signed; an error aborts the generation (spec 10, 5.7). */
export type CertificateHook = (template: MutableTemplate) => void | Promise<void>;

interface SignedBy {
  readonly signer: CertificateAndKey;
}

interface WithHooks {
  /** Applied in order. */
  readonly hooks?: readonly CertificateHook[] | undefined;
}

/** A self-signed CA. */
export async function issueSigner(options: IssueOptions & { readonly commonName: string }): Promise<CertificateAndKey> {
  const { certificate, key } = await issue(options, undefined, caPlan(options.commonName));
  return { chain: [certificate], key };
}

/** A CA signed by another; the signer's chain follows it (spec 10, P-3). */
export async function issueIntermediate(
  options: IssueOptions & SignedBy & { readonly commonName: string },
): Promise<CertificateAndKey> {
  const { certificate, key } = await issue(options, options.signer, caPlan(options.commonName));
  return { chain: [certificate, ...options.signer.chain], key };
}

/** A certificate for a server, followed by the signer's chain. Fails with NO_HOSTNAMES for an empty list. */
export async function issueServing(
  options: IssueOptions & SignedBy & WithHooks & { readonly hostnames: Iterable<string> },
): Promise<CertificateAndKey> {
  const { commonName, dnsNames, ipAddresses } = splitHosts(checkedHostnames(options.hostnames));
  const plan = { subject: { commonName }, extKeyUsages: ['serverAuth'], dnsNames, ipAddresses, hooks: options.hooks };
  const { certificate, key } = await issue(options, options.signer, plan);
  return { chain: [certificate, ...options.signer.chain], key };
}

/** A certificate for a client: alone, and without a subject key id, as 4.16 makes it. */
export async function issueClient(
  options: IssueOptions & SignedBy & { readonly user: UserInfo },
): Promise<CertificateAndKey> {
  const plan = { subject: subjectForUser(options.user), extKeyUsages: ['clientAuth'], withoutSubjectKeyId: true };
  const { certificate, key } = await issue(options, options.signer, plan);
  return { chain: [certificate], key };
}

/** A serving certificate that is good for clients as well; its subject is the user's where one is given (spec 10, 6.4). */
export async function issuePeer(
  options: IssueOptions &
    SignedBy &
    WithHooks & { readonly hostnames: Iterable<string>; readonly user?: UserInfo | undefined },
): Promise<CertificateAndKey> {
  const { commonName, dnsNames, ipAddresses } = splitHosts(checkedHostnames(options.hostnames));
  const subject = options.user ? subjectForUser(options.user) : { commonName };
  const plan = { subject, extKeyUsages: ['clientAuth', 'serverAuth'], dnsNames, ipAddresses, hooks: options.hooks };
  const { certificate, key } = await issue(options, options.signer, plan);
  return { chain: [certificate, ...options.signer.chain], key };
}

/** A leaf for a key that stays elsewhere, for instance that of a certificate request. */
export async function issueForPublicKey(
  options: Omit<IssueOptions, 'algorithm'> &
    SignedBy &
    WithHooks & {
      readonly publicKey: KeyObject;
      /** A name as read, which is copied byte for byte, or attributes. */
      readonly subject: Name | NameAttributes;
      readonly extKeyUsages: readonly string[];
      readonly keyUsages?: readonly KeyUsage[] | undefined;
      readonly dnsNames?: readonly string[] | undefined;
      readonly ipAddresses?: readonly string[] | undefined;
    },
): Promise<Certificate> {
  const validity = validityFor(options, options.signer);
  return certify(options, options.signer, { ...options, isCA: false }, validity, options.publicKey);
}

interface Plan extends WithHooks {
  readonly subject: Name | NameAttributes;
  readonly isCA?: boolean;
  readonly keyUsages?: readonly KeyUsage[] | undefined;
  readonly extKeyUsages?: readonly string[];
  readonly dnsNames?: readonly string[] | undefined;
  readonly ipAddresses?: readonly string[] | undefined;
  readonly withoutSubjectKeyId?: boolean;
}

function caPlan(commonName: string): Plan {
  if (commonName === '') throw new PkiError('SUBJECT_INVALID', 'expected the common name of a CA, found an empty text');
  return { subject: { commonName }, isCA: true };
}

async function issue(
  options: IssueOptions,
  signer: CertificateAndKey | undefined,
  plan: Plan,
): Promise<{ certificate: Certificate; key: KeyObject }> {
  // Before the key: making an RSA key can take a second, which must not move the end (spec 10, V-3, trap 14.9).
  const validity = validityFor(options, signer);
  const key = await options.keys.generate(options.algorithm ?? 'RSA-2048');
  const publicKey = createPublicKey(key);
  const certificate = await certify(options, signer ?? { chain: [], key }, plan, validity, publicKey);
  return { certificate, key };
}

/** Builds and signs; a signer without a chain means self-signed. */
async function certify(
  options: Pick<IssueOptions, 'keys' | 'now'>,
  signer: CertificateAndKey,
  plan: Plan,
  validity: Validity,
  publicKey: KeyObject,
): Promise<Certificate> {
  const publicKeyInfo = publicKeyInfoOf(publicKey);
  const ownKeyId = subjectKeyIdOfInfo(publicKeyInfo);
  const [authority] = signer.chain;
  const template: MutableTemplate = {
    serial: randomSerial(options.keys),
    ...validity,
    isCA: plan.isCA ?? false,
    subject: { ...plan.subject },
    keyUsages: [...(plan.keyUsages ?? keyUsagesFor(publicKey, plan.isCA ?? false))],
    extKeyUsages: [...(plan.extKeyUsages ?? [])],
    dnsNames: [...(plan.dnsNames ?? [])],
    ipAddresses: [...(plan.ipAddresses ?? [])],
    subjectKeyId: plan.withoutSubjectKeyId ? undefined : ownKeyId,
    // Copied from the signer, never computed from its key (spec 10, K-2).
    authorityKeyId: authority ? authority.subjectKeyId : ownKeyId,
    extraExtensions: [],
  };
  await applyHooks(template, plan.hooks ?? []);
  checkNames(template.dnsNames);
  const issuer: Issuer = {
    name: authority?.subject.der,
    key: signer.key,
    publicKey: authority?.publicKey ?? publicKey,
  };
  const certificate = await signTemplate(template, publicKeyInfo, issuer, options.keys);
  if (authority && certificate.notAfter > authority.notAfter) {
    throw new PkiError('OUTLIVES_SIGNER', `${quote(certificate)} would end after its signer ${quote(authority)}`);
  }
  return certificate;
}

/** RSA keys are also used to encrypt session keys; others cannot (spec 10, 5.3 and 13). */
function keyUsagesFor(publicKey: KeyObject, isCA: boolean): KeyUsage[] {
  const usages: KeyUsage[] = ['digitalSignature'];
  if (publicKey.asymmetricKeyType === 'rsa') usages.push('keyEncipherment');
  if (isCA) usages.push('keyCertSign');
  return usages;
}

async function applyHooks(template: MutableTemplate, hooks: readonly CertificateHook[]): Promise<void> {
  for (const hook of hooks) {
    try {
      await hook(template);
    } catch (cause) {
      const text = cause instanceof Error ? cause.message : String(cause);
      throw new PkiError('HOOK_FAILED', `a certificate extension hook failed: ${text}`, { cause });
    }
  }
}

/** Reads the hosts once and refuses those that neither a certificate nor the hostnames annotation can carry. */
function checkedHostnames(hostnames: Iterable<string>): string[] {
  const hosts = [...hostnames];
  if (hosts.length === 0) throw new PkiError('NO_HOSTNAMES', 'no hostnames set');
  if (hosts.length > MAX_HOSTNAMES) {
    throw new PkiError('TOO_LARGE', `a certificate has at most ${MAX_HOSTNAMES} host names, found ${hosts.length}`);
  }
  checkNames(hosts);
  return hosts;
}

/** Visible ASCII; no comma, because the annotation is a comma-separated list and would never match again. */
const HOSTNAME = /^[!-+\--~]+$/;

function checkNames(names: readonly string[]): void {
  for (const name of names) {
    if (name.length > MAX_HOSTNAME_CHARACTERS) {
      const limit = `a host name has at most ${MAX_HOSTNAME_CHARACTERS} characters`;
      throw new PkiError('TOO_LARGE', `${limit}, found ${name.length}`);
    }
    if (!HOSTNAME.test(name)) {
      const expected = 'visible ASCII characters without a comma';
      throw new PkiError('HOSTNAME_INVALID', `expected a host name of ${expected}, found ${JSON.stringify(name)}`);
    }
  }
}

const quote = (certificate: Certificate): string => JSON.stringify(certificate.subject.commonName);
