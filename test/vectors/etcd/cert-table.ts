import assert from 'node:assert/strict';
import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { HOSTNAMES, ISSUER } from '../../../src/certrotation/annotations.ts';
import { dataText, loadSecret, TLS_CERT } from '../../../src/certrotation/secret.ts';
import { decideSignerByAnnotations } from '../../../src/certrotation/signer.ts';
import { FAMILY_TABLE } from '../../../src/etcd/cert-table.ts';
import { clientLeaf, nodeLeaves, wantedSigner } from '../../../src/etcd/certificates.ts';
import { SHORT_LIFETIMES } from '../../../src/etcd/lifetimes.ts';
import { ROLLOUT_REVISION } from '../../../src/etcd/names.ts';
import { certificatePath, CERT_DIRECTORY, trustPath } from '../../../src/etcd/operand/env.ts';
import { copyRules } from '../../../src/etcd/resource-sync.ts';
import { foreignSigner, NOW, TestEtcd } from '../../../src/etcd/testing.ts';
import { days, minutes } from '../../../src/kube/duration.ts';
import { MemoryKube } from '../../../src/kube/memory.ts';
import { SECRETS } from '../../../src/kube/resource.ts';
import { syncConfigMap, syncSecret } from '../../../src/kube/sync-copy.ts';
import type { Certificate } from '../../../src/pki/certificate.ts';
import { hostnamesOf } from '../../../src/pki/hosts.ts';
import { readCertificates } from '../../../src/pki/pem.ts';
import { type Json, profileOf, type Version } from './case.ts';

const NODE = 'master-0';

/** Checks one row of the table against the object the controllers make. */
export async function checkRow(row: Json, version: Version, meta: Json): Promise<void> {
  if (row.notManagedHere) return checkNotOurs(row);
  const etcd = await clusterOf(version);
  const name = row.name ?? row.nameTemplate.replace('<node>', NODE);
  const object = row.kind === 'Secret' ? await etcd.secret(name, row.namespace) : await etcd.configMap(name, row.namespace);
  if (row.type !== undefined) assert.equal((object as Secret).type, row.type);
  checkDataKeys(row, object);
  for (const [key, value] of Object.entries(row.label ?? {})) assert.equal(object.metadata?.labels?.[key], value, key);
  if (row.label === null) assert.deepEqual(object.metadata?.labels ?? {}, {});
  checkAnnotations(row, object);
  checkLists(row, version, meta);
  if (row.copyOf) checkCopy(row, version);
  for (const copy of row.copies ?? []) assert.ok(hasCopy(version, `${row.namespace}/${name}`, copy), copy);
  for (const file of [row.filesOnDisk ?? []].flat()) checkFile(file, row, version);
  const role: string = row.role;
  if (role === 'signer') await checkSigner(row, version, object as Secret, etcd);
  if (role === 'client' || role === 'server-and-client') await checkLeaf(row, version, object as Secret, etcd);
  if (role === 'ca-bundle') await checkBundle(row, version, object as ConfigMap, etcd);
}

/** What a pass and a resource sync leave behind. */
async function clusterOf(version: Version): Promise<TestEtcd> {
  const profile = profileOf(version);
  const etcd = await TestEtcd.create({ kube: new MemoryKube(), profile });
  if (version === '4.16') {
    for (const name of ['etcd-signer', 'etcd-metric-signer']) await etcd.kube.create(SECRETS, await foreignSigner(name));
  }
  await etcd.sync();
  for (const { kind, source, destination } of copyRules(profile)) {
    const context = { kube: etcd.kube, events: etcd.context.events };
    await (kind === 'Secret' ? syncSecret : syncConfigMap)(context, source, destination);
  }
  return etcd;
}

/** Objects of others: nothing of ours is called that. */
function checkNotOurs(row: Json): void {
  const ours = [...copyRules(profileOf('4.16')), ...copyRules(profileOf('main'))].flatMap(({ source, destination }) => [source, destination]);
  assert.ok(!ours.some(({ namespace, name }) => namespace === row.namespace && name === row.name));
}

function checkDataKeys(row: Json, object: Secret | ConfigMap): void {
  const keys = Object.keys(object.data ?? {}).toSorted();
  if (Array.isArray(row.dataKeys)) assert.deepEqual(keys, row.dataKeys.toSorted());
  else {
    assert.equal(row.dataKeys, '<leaf secret name>.crt and <leaf secret name>.key for every control plane node');
    assert.equal(keys.length, 18);
  }
}

function checkAnnotations(row: Json, { metadata }: Secret | ConfigMap): void {
  const found = metadata?.annotations ?? {};
  // Signers of an installer carry what the installer gave them.
  const isForeign = row.createdBy?.startsWith('render');
  for (const [key, value] of Object.entries<string>(row.annotations ?? {})) {
    if (isForeign && key.startsWith('openshift.io/')) continue;
    assert.ok(found[key] !== undefined, key);
    if (value === 'RFC3339') assert.match(found[key], /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    else if (key === ROLLOUT_REVISION) assert.match(found[key], /^\d+$/);
    else if (key === HOSTNAMES) assert.deepEqual(found[key].split(','), found[key].split(',').toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))));
    else if (key === ISSUER) assert.ok(found[key] !== '');
    else if (value.startsWith('long text')) assert.notEqual(found[key], '');
    else assert.equal(found[key], value.replace('<node>', NODE), key);
  }
}

function checkLists(row: Json, version: Version, meta: Json): void {
  const profile = profileOf(version);
  for (const list of ['revisioned', 'unrevisioned'] as const) {
    if (row[list] === undefined) continue;
    const ours = row.kind === 'Secret' ? profile[list].secrets : profile[list].configMaps;
    assert.equal(ours.some(({ name }) => name === row.name), row[list], list);
    const expected: string[] = meta[list][version][row.kind === 'Secret' ? 'secrets' : 'configMaps'].map((name: string) => name.split(' ')[0]);
    assert.deepEqual(ours.map(({ name }) => name).toSorted(), expected.toSorted());
  }
}

function hasCopy(version: Version, source: string, destination: string): boolean {
  return copyRules(profileOf(version)).some(
    rule => `${rule.source.namespace}/${rule.source.name}` === source && `${rule.destination.namespace}/${rule.destination.name}` === destination,
  );
}

function checkCopy(row: Json, version: Version): void {
  assert.ok(hasCopy(version, row.copyOf, `${row.namespace}/${row.name}`), `${row.namespace}/${row.name} is a copy of ${row.copyOf}`);
}

function checkFile(file: string, row: Json, version: Version): void {
  const host = '/etc/kubernetes/static-pod-resources/etcd-certs';
  if (!file.startsWith(host)) return;
  const inside = file.replace(host, CERT_DIRECTORY).replaceAll('<node>', 'NODE_NAME');
  const { trust } = profileOf(version);
  const known = [
    ...Object.values(trust).map(trustPath),
    `${CERT_DIRECTORY}/configmaps/${row.name}/ca-bundle.crt`,
    `${CERT_DIRECTORY}/secrets/etcd-all-certs/*`,
    ...['etcd-peer-', 'etcd-serving-', 'etcd-serving-metrics-'].flatMap(prefix => ['crt', 'key'].map(end => `${certificatePath(`${prefix}NODE_NAME`)}.${end}`)),
  ];
  assert.ok(known.includes(inside), inside);
}

async function checkSigner(row: Json, version: Version, secret: Secret, etcd: TestEtcd): Promise<void> {
  const certificate = loadSecret(secret).chain[0] as Certificate;
  checkShape(row, certificate);
  const prefix = row.subject.CN.replace(/@.*$/, '');
  assert.match(certificate.subject.commonName, new RegExp(`^${prefix}@\\d+$`));
  assert.deepEqual(certificate.subjectKeyId, certificate.authorityKeyId);
  assert.equal((certificate.notAfter.getTime() - NOW.getTime()) / days(1), row.validityDays);
  if (row.refreshDays !== null) {
    const family = row.name === 'etcd-signer' ? 'server' : 'metrics';
    const config = wantedSigner(family, profileOf(version));
    assert.deepEqual([config.validityMs, config.refreshMs], [days(row.validityDays), days(row.refreshDays)]);
    checkRotationDay(row.effectiveRotation, secret, days(row.refreshDays));
  }
  if (row.shortCertRotation !== undefined) checkShort(row.shortCertRotation, SHORT_LIFETIMES.signer);
  const leaf = await etcd.certificate(row.name === 'etcd-signer' ? 'etcd-peer-master-0' : 'etcd-serving-metrics-master-0');
  assert.equal(leaf.authorityKeyId?.equals(certificate.subjectKeyId as Buffer), row.activeSigner);
}

/** `day 1460 (80 percent)`: kept at the end of that day's eve, replaced right after. */
function checkRotationDay(text: string, secret: Secret, refreshMs: number): void {
  const [, day] = /^day (\d+) \(80 percent\)/.exec(text) ?? [];
  assert.ok(day, `unknown words: ${text}`);
  const annotations = secret.metadata?.annotations ?? {};
  const policy = { validityMs: 1, refreshMs };
  const at = (shiftMs: number) => decideSignerByAnnotations(annotations, policy, new Date(NOW.getTime() + days(Number(day)) + shiftMs)).action;
  assert.deepEqual([at(-days(1)), at(days(1))], ['keep', 'regenerate']);
}

async function checkLeaf(row: Json, version: Version, secret: Secret, etcd: TestEtcd): Promise<void> {
  const chain = readCertificates(dataText(secret, TLS_CERT) ?? '').certificates;
  const leaf = chain[0] as Certificate;
  checkShape(row, leaf);
  const [namespace = '', name = ''] = row.signedBy[version].split('/');
  const signer = await etcd.certificate(name, namespace);
  assert.deepEqual(leaf.authorityKeyId, signer.subjectKeyId);
  assert.equal(leaf.issuer.commonName, signer.subject.commonName);
  assert.equal(chain.length, row.tlsCrtContents === 'leaf only' ? 1 : 2);
  if (chain.length === 2) assert.ok(chain[1]?.der.equals(signer.der));
  assert.equal(leaf.subjectKeyId !== undefined, chain.length === 2);
  const { lifetimes } = profileOf(version);
  assert.deepEqual([lifetimes.leaf.validityMs, lifetimes.leaf.refreshMs], [days(row.validityDays[version]), days(row.refreshDays[version])]);
  checkShort(row.shortCertRotation, SHORT_LIFETIMES.leaf);
  if (row.sans === null) {
    const family = name === 'etcd-signer' ? 'server' : 'metrics';
    assert.equal(clientLeaf(family, { lifetimes }).name, FAMILY_TABLE[family].client.secret);
    assert.deepEqual(hostnamesOf(leaf), []);
    assert.equal(leaf.subject.commonName, row.subject.CN);
    assert.deepEqual(leaf.subject.organizations.toSorted(), row.subject.O.toSorted());
  } else {
    const hosts = hostnamesOf(leaf);
    assert.deepEqual(hosts, [...row.sans.dns, ...row.sans.ip, '10.0.0.1'].toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))));
    assert.equal(leaf.subject.commonName, hosts[0]);
    for (const address of leaf.ipAddresses) assert.equal(leaf.dnsNames.includes(address), row.sans.ipAlsoAsDns);
    assert.equal(hosts.includes(NODE), row.sans.nodeHostname);
    const leaves = nodeLeaves([{ metadata: { name: NODE }, status: { addresses: [{ type: 'InternalIP', address: '10.0.0.1' }] } }], { lifetimes });
    assert.ok(leaves.some(({ target }) => target.name === secret.metadata?.name));
    const aggregate = Object.keys((await etcd.secret('etcd-all-certs')).data ?? {});
    for (const key of row.aggregateKeys) assert.ok(aggregate.includes(key.replace('<node>', NODE)));
  }
}

async function checkBundle(row: Json, version: Version, configMap: ConfigMap, etcd: TestEtcd): Promise<void> {
  assert.ok(row.contents);
  const found = readCertificates(configMap.data?.['ca-bundle.crt'] ?? '').certificates;
  const signer = row.name === 'etcd-ca-bundle' ? 'etcd-signer' : 'etcd-metric-signer';
  const namespaces = version === '4.16' ? ['openshift-config', 'openshift-etcd'] : ['openshift-etcd'];
  for (const namespace of namespaces) {
    const certificate = await etcd.certificate(signer, namespace);
    assert.ok(found.some(({ der }) => der.equals(certificate.der)), namespace);
  }
  assert.equal(found.length, namespaces.length);
}

/** Key and signature algorithm are those of P-256 here; RSA 2048 is the default and tested beside the library. */
function checkShape(row: Json, certificate: Certificate): void {
  const usages = row.keyUsage.filter((usage: string) => usage !== 'keyEncipherment');
  assert.deepEqual(certificate.keyUsages.toSorted(), usages.toSorted());
  assert.deepEqual(certificate.extKeyUsages, row.extKeyUsage);
  assert.equal(certificate.isCA, row.basicConstraints.ca);
  assert.equal(row.key, 'RSA 2048');
  assert.ok(certificate.notBefore.getTime() === NOW.getTime() - 1000);
}

function checkShort(row: Json, lifetime: { validityMs: number; refreshMs: number }): void {
  assert.deepEqual([lifetime.validityMs, lifetime.refreshMs], [minutes(row.validityMinutes), minutes(row.refreshMinutes)]);
  assert.equal(Math.min(lifetime.refreshMs, lifetime.validityMs * 0.8), minutes(row.effectiveRotationMinutes));
}

