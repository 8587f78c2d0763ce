import type { Node, Secret } from 'kubernetes-types/core/v1.d.ts';
import { HOSTNAMES, ISSUER, NOT_AFTER, NOT_BEFORE } from '../../../src/certrotation/annotations.ts';
import type { TargetConfig } from '../../../src/certrotation/config.ts';
import { decideTarget } from '../../../src/certrotation/target.ts';
import { clientLeaf, nodeLeaves } from '../../../src/etcd/certificates.ts';
import { lifetimes } from '../../../src/etcd/lifetimes.ts';
import { days } from '../../../src/kube/duration.ts';
import type { CertificateAndKey } from '../../../src/pki/authority.ts';
import type { Certificate } from '../../../src/pki/certificate.ts';
import { issueSigner } from '../../../src/pki/issue.ts';
import { seededKeys } from '../../../src/pki/keys.ts';
import { encodeCertificates, encodePrivateKey, readCertificates } from '../../../src/pki/pem.ts';
import { attempt, plain, unlike } from '../difference.ts';
import { judged } from '../judged.ts';
import type { Random } from '../random.ts';

const KINDS = ['peer', 'serving', 'metrics', 'client', 'metricsclient'] as const;
type Kind = (typeof KINDS)[number];

/** RSA keys cannot be made from a seed; no decision looks at the kind of key. */
const OPTIONS = { lifetimes: lifetimes('three years'), keyAlgorithm: 'P-256' } as const;
const SIGNER_LIFETIME_MS = days(1825);

interface Input {
  Kind: Kind;
  Node: Node;
  Secret: Secret;
  Signer: string;
  Bundle: string;
}

interface Answered {
  name: string;
  namespace: string;
  reason: string;
  validity: number;
  refresh: number;
}

/** Whether etcd's cert signer replaces a leaf, and why. */
export const ETCD_LEAVES = judged<Input>({
  name: 'etcd leaves',
  program: 'ceodiff',
  op: 'leaf',
  generate: async (r, at) => {
    const Kind = r.pick(KINDS);
    const Node = node(r);
    const signers = await Promise.all([0, 1, 2].map(index => signer(r, index, at)));
    const issuer = r.pick(signers);
    const target = attempt(() => targetOf(Kind, Node)).value ?? clientLeaf('server', OPTIONS);
    return {
      Kind,
      Node,
      Secret: await secret(r, target, issuer, at),
      Signer: encodeCertificates((r.chance(0.75) ? issuer : r.pick(signers)).chain),
      Bundle: encodeCertificates(
        [...new Set([issuer, ...signers])].slice(r.chance(0.1) ? 1 : 0).flatMap(({ chain }) => chain),
      ),
    };
  },
  compare: ({ Kind, Node, Secret, Signer, Bundle }, { out, err }, { at }) => {
    const target = attempt(() => targetOf(Kind, Node));
    if (target.error !== undefined || err !== undefined)
      return unlike(
        `refused: mine "${plain(target.error)}", theirs "${plain(err)}"`,
        target.error !== undefined,
        err !== undefined,
      );
    const theirs = out as Answered;
    const { namespace, name, validityMs, refreshMs } = target.value;
    const certificates = (text: string) => readCertificates(text).certificates;
    const decision = decideTarget(Secret, certificates(Signer), certificates(Bundle), target.value, at);
    const reason = decision.action === 'keep' ? '' : decision.action === 'fail' ? decision.error : decision.reason;
    const rule = decision.action === 'keep' ? 'keep' : decision.rule;
    return [
      ...unlike('place', [namespace, name], [theirs.namespace, theirs.name]),
      ...unlike('lifetime', [validityMs, refreshMs], [theirs.validity, theirs.refresh]),
      ...unlike(`${rule}, theirs "${plain(kindOf(theirs.reason))}"`, kindOf(reason), kindOf(theirs.reason)),
    ];
  },
});

/** Without what only describes: the text of a bundle, and the words of a library for what is wrong with a certificate. */
const kindOf = (reason: string): string =>
  (reason.split('\n', 1)[0] ?? '').replace(
    /^(could not parse pem x509 tls.crt in secret [^:]*|cert isn't signed by most recent signer anymore).*/,
    '$1',
  );

function targetOf(kind: Kind, node: Node): TargetConfig {
  if (kind === 'client') return clientLeaf('server', OPTIONS);
  if (kind === 'metricsclient') return clientLeaf('metrics', OPTIONS);
  return nodeLeaves([node], OPTIONS)[['peer', 'serving', 'metrics'].indexOf(kind)]!.target;
}

function node(r: Random): Node {
  const address = () => ({
    type: r.pick(['InternalIP', 'InternalIP', 'InternalIP', 'ExternalIP', 'Hostname']),
    address: r.pick(['10.0.0.1', '10.0.0.2', 'fd00::1', '192.168.0.1']),
  });
  return {
    metadata: { name: r.pick(['master-0', 'master-1']) },
    status: {
      addresses: r.chance(0.9)
        ? [{ type: 'InternalIP', address: '10.0.0.1' }, ...r.list(1, address)]
        : r.list(2, address),
    },
  };
}

/** Half a day keeps every age away from the moments at which a rule fires. */
const before = (at: Date, age: number): Date => new Date(at.getTime() - days(age) - days(0.5));

function signer(r: Random, index: number, at: Date): Promise<CertificateAndKey> {
  const now = before(at, r.pick([1, 40, 79, 80, 81, 200, 700]));
  const commonName = `openshift-etcd_etcd-signer@${1_700_000_000 + index}`;
  const keys = seededKeys(`etcd signer ${index} ${r.int(1000)}`);
  return issueSigner({ keys, now, algorithm: 'P-256', commonName, lifetimeMs: SIGNER_LIFETIME_MS });
}

/** A leaf of any age, often with something wrong. */
async function secret(r: Random, target: TargetConfig, issuer: CertificateAndKey, at: Date): Promise<Secret> {
  const { name, namespace, creator, validityMs } = target;
  const now = before(at, r.pick([0, 100, 500, 802, 803, 804, 875, 876, 877, 1000, 1094, 1095, 1096, 1500]));
  const keys = seededKeys(`etcd leaf ${r.int(1000)}`);
  const { chain, key } = await creator.make({ signer: issuer, lifetimeMs: validityMs, now, keys, algorithm: 'P-256' });
  const leaf = chain[0] as Certificate;
  const text = (time: Date) => time.toISOString().replace('.000Z', 'Z');
  const annotations: Record<string, string> = {
    [NOT_BEFORE]: text(leaf.notBefore),
    [NOT_AFTER]: text(leaf.notAfter),
    [ISSUER]: leaf.issuer.commonName,
    ...creator.annotations(leaf),
  };
  if (r.chance(0.15)) delete annotations[r.pick(Object.keys(annotations))];
  if (r.chance(0.1))
    annotations[r.pick([NOT_BEFORE, NOT_AFTER])] = r.pick([
      '',
      'yesterday',
      '2024-01-01',
      '2020-01-01T00:00:00Z',
      '2100-01-01T00:00:00Z',
    ]);
  if (r.chance(0.05)) annotations[ISSUER] = r.pick(['', 'somebody']);
  if (r.chance(0.05) && HOSTNAMES in annotations) annotations[HOSTNAMES] += r.pick([',x', ',10.0.0.9', ',localhost']);
  const base64 = (value: string) => Buffer.from(value).toString('base64');
  const certificate = r.chance(0.06)
    ? r.pick(['', 'garbage', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'])
    : encodeCertificates(chain);
  return {
    metadata: { namespace, name, annotations },
    type: 'kubernetes.io/tls',
    data: {
      ...(r.chance(0.97) && { 'tls.crt': base64(certificate) }),
      ...(r.chance(0.97) && { 'tls.key': base64(encodePrivateKey(key)) }),
    },
  };
}
