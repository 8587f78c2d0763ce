/**
 * Runs the groups of mcd-vectors.json that the certificate writer answers for, through the functions its controller uses. Where a
 * case is marked `advice: avoid` the corrected result is asserted, as far as the case names it.
 *
 * Held to be wrong, or not asked of us:
 * - `deferKubeletRestart: true` where no certificate was added (kubeconfig-01): D-10, a restart is put off only when one was.
 * - `firstWritten` of cert-sync-files: D-1, CAs are written before the pull secret.
 * - kubeconfig cases in which no rotation is open: D-13, what differs is taken over whether or not the flag is up.
 * - `writeFiles` and `syncKubeconfigCA` of cert-sync-trigger say when there is news; files are compared in every pass (4.2.7).
 */
import assert from 'node:assert/strict';
import { readBundle, bundleText } from '../../src/daemon/certificates/bundle.ts';
import { acknowledgement, decideCertificateSync } from '../../src/daemon/certificates/decide.ts';
import { ensureCertificates } from '../../src/daemon/certificates/ensure.ts';
import { decideOnConnectionError } from '../../src/daemon/certificates/kubelet.ts';
import { AgentMustRestart } from '../../src/daemon/certificates/controller.ts';
import { KUBELET_CA, LIVE_KUBECONFIG, MOUNTED_PULL_SECRETS, REGISTRY_CAS } from '../../src/daemon/certificates/paths.ts';
import { OsPullSecret, osPullSecret } from '../../src/daemon/certificates/pull-secret.ts';
import { decideRegistryCas, ensureRegistryCas } from '../../src/daemon/certificates/registry-ca.ts';
import { decideServerCa, ensureServerCa } from '../../src/daemon/certificates/server-ca.ts';
import { ca, installKubelet } from '../../src/daemon/certificates/testing.ts';
import type { HostFiles } from '../../src/host/port.ts';
import { memoryHost, observed } from '../../src/host/memory.ts';
import { configMapBytes } from '../../src/machine-config-api/config-map.ts';
import { parseDockercfg, parseDockerConfig, toDockercfg, toDockerConfigJson } from '../../src/machine-config-api/docker-config.ts';
import { CONTROLLER_CONFIG_NAME, SERVICE_CA_ROTATE } from '../../src/machine-config-api/names.ts';
import { type Adapter, type Case, type Json, vectorsOf } from './mcd/case.ts';
import { runGroup } from './run-case.ts';

const adapters: Record<string, Adapter> = {
  'pull-secret-merge': async (given, expected) => {
    const { files } = memoryHost();
    const { mountedSecret } = given;
    if (mountedSecret) {
      await files.write(`${MOUNTED_PULL_SECRETS}/${mountedSecret.role}/${mountedSecret.key}`, Buffer.from(mountedSecret.bytes));
    }
    const labels = Object.fromEntries((given.nodeLabels as string[]).map(name => [name, '']));
    const internal = Buffer.from(given.internalRegistryPullSecret ?? '');
    if (expected.error) await assert.rejects(osPullSecret(files, { labels, internal }));
    else assert.equal((await osPullSecret(files, { labels, internal })).toString(), expected.bytes);
  },

  'docker-config': (given, expected) => {
    const work = () => dockerConfig(given);
    if (expected.error) assert.throws(work);
    else assert.deepEqual(work(), expected);
  },

  'cert-sync-trigger': (given, expected, vector) => {
    const { resourceVersion, annotations } = given.controllerConfig;
    const controllerConfig = { metadata: { name: CONTROLLER_CONFIG_NAME, resourceVersion, annotations } };
    const node = given.nodeKnown ? given.nodeAnnotations : undefined;
    const decision = decideCertificateSync(given.queueKey, node, controllerConfig);
    if (expected.writeFiles !== undefined) assert.equal(decision.sync && decision.isNews, expected.writeFiles);
    if (typeof expected.syncKubeconfigCA === 'string') assert.ok(decision.sync && isMended(vector));
    else if (expected.syncKubeconfigCA !== undefined) {
      assert.equal(decision.sync && decision.isRotationOpen, expected.syncKubeconfigCA);
    }
    if (expected.requeueAfterSeconds !== undefined) {
      assert.equal(!decision.sync && decision.againMs, expected.requeueAfterSeconds * 1000);
    }
    if (!decision.sync) return assert.ok(!expected.annotations);
    const isRotating = annotations?.[SERVICE_CA_ROTATE] === 'true';
    const achieved = { isComplete: true, serverCaDigest: isRotating ? 'digest' : undefined };
    const after = { ...node, ...acknowledgement(node, controllerConfig, achieved) };
    for (const [name, value] of Object.entries({ ...node, ...expected.annotations })) {
      assert.equal(after[name] ?? '', value, name);
    }
  },

  'configmap-data': (given, expected) => {
    const bytes = configMapBytes(given.configMap, given.key);
    if (expected.error) assert.equal(bytes, undefined);
    else if (expected.bytesHex !== undefined) assert.equal(bytes?.toString('hex'), expected.bytesHex);
    else if (expected.bytesBase64 !== undefined) assert.equal(bytes?.toString('base64'), expected.bytesBase64);
    else assert.equal(bytes?.toString(), expected.bytes);
  },

  'cert-sync-files': async (given, expected) => {
    const host = memoryHost();
    if (given.dockerCertsDirExists) await host.files.makeDirectory(REGISTRY_CAS);
    await place(host.files, given.existingFiles);
    const encode = (text: string | undefined | null) => (text == null ? null : Buffer.from(text).toString('base64'));
    const spec = given.controllerConfigSpec;
    const outcome = await ensureCertificates(host, new OsPullSecret(host.files), {
      spec: {
        kubeAPIServerServingCAData: encode(spec.kubeAPIServerServingCAData),
        cloudProviderCAData: encode(spec.cloudProviderCAData),
        internalRegistryPullSecret: encode(spec.internalRegistryPullSecret),
        imageRegistryBundleData: encodedBundles(spec.imageRegistryBundleData),
        imageRegistryBundleUserData: encodedBundles(spec.imageRegistryBundleUserData),
      },
      nodeLabels: Object.fromEntries((given.nodeLabels as string[]).map(name => [name, ''])),
      kubeconfigData: undefined,
      isRotationOpen: false,
    });
    const { files = {} } = expected;
    for (const [path, text] of Object.entries(files)) assert.equal(String(await host.files.read(path)), text, path);
    // 4.16 begins with the pull secret, so that one it cannot merge holds the CAs back; ours writes those whatever becomes of it.
    if (expected.firstWritten !== undefined) assert.ok(outcome.written.includes(expected.firstWritten));
    const others = outcome.written.filter(path => !(path in files));
    if (expected.files !== undefined) assert.deepEqual(others, []);
  },

  'registry-ca-dirs': async (given, expected) => {
    const { files } = memoryHost();
    if (given.dirExists) await files.makeDirectory(REGISTRY_CAS);
    for (const name of given.existingSubdirs ?? []) await files.write(`${REGISTRY_CAS}/${name}/ca.crt`, Buffer.from('before'));
    await place(files, given.existingFiles);
    const decided = decideRegistryCas(encodedBundles(given.imageRegistryBundleData), encodedBundles(given.imageRegistryBundleUserData));
    const { removed } = await ensureRegistryCas(files, decided, []);
    if (expected.removedDirs !== undefined) assert.deepEqual(new Set(removed), new Set(expected.removedDirs));
    if (expected.files === undefined) return;
    for (const [path, text] of Object.entries(expected.files)) {
      assert.equal(String(await files.read(path)), text, path);
      assert.equal((await files.stat(path))?.mode, 0o644);
    }
    const directories = (await files.list(REGISTRY_CAS)) ?? [];
    const listed = Object.keys(expected.files).map(path => path.split('/').at(-2));
    for (const name of directories) assert.ok(listed.includes(name) || isKeptFile(given, name), `${name} is there`);
  },

  'kubeconfig-ca': (given, expected, vector) => {
    if ('backgroundError' in given) return afterConnectionError(given, expected);
    if (given.restartKubelet === true) return restartSequence(expected);
    if (given.configMapBundle === null || given.configMapBundle === undefined) return unreadableBundle();
    return kubeconfigDecision(given, expected, isMended(vector));
  },
};

for (const [group, adapter] of Object.entries(adapters)) {
  runGroup(
    group,
    vectorsOf(group).map(vector => ({ ...vector, name: vector.id, run: (given, expected) => adapter(given, expected, vector) })),
  );
}

/** A corrected result may be a sentence, and names only what it corrects. */
function isMended({ advice, expectedFixed }: Case): boolean {
  return advice === 'avoid' && expectedFixed !== undefined;
}

function dockerConfig({ operation, bytes, map }: Json): Json {
  switch (operation) {
    case 'dockerconfigjson->dockercfg':
      return { bytes: toDockercfg(bytes) };
    case 'any->dockerconfigjson': {
      const { text, converted } = toDockerConfigJson(bytes);
      return { bytes: text, converted };
    }
    case 'any->typed':
      return { auths: { ...parseDockerConfig(bytes) } };
    case 'merge-legacy-into-map': {
      const merged = Object.entries({ ...map, ...parseDockercfg(bytes) });
      const isSet = ([, value]: [string, unknown]) => value !== '';
      return { map: Object.fromEntries(merged.map(([host, entry]) => [host, Object.fromEntries(Object.entries(entry as object).filter(isSet))])) };
    }
    default:
      throw new Error(`no such operation: ${operation}`);
  }
}

function kubeconfigDecision(given: Json, expected: Json, isCorrected: boolean): void {
  const wanted = readBundle(Buffer.from(given.configMapBundle));
  const decision = decideServerCa(wanted, readBundle(Buffer.from(given.diskCAData)));
  const isOpen = given.rotateAnnotation === 'true' && given.nodeObservedAnnotation !== 'true';
  if (expected.allCertsThere !== undefined) assert.equal(decision.added.length === 0, expected.allCertsThere);
  if (!isOpen) return;
  if (expected.kubeConfigDiff === false) assert.equal(decision.write, false);
  if (expected.writeKubeconfig !== undefined) assert.equal(decision.write, expected.writeKubeconfig);
  if (expected.restartKubelet !== undefined) assert.equal(decision.restart === 'now', expected.restartKubelet);
  const defers = decision.added.length > 0 && expected.deferKubeletRestart;
  if (expected.deferKubeletRestart !== undefined) assert.equal(decision.restart === 'deferred', defers);
  if (typeof expected.newCAData !== 'string') return;
  const isSentence = !expected.newCAData.includes('-----BEGIN');
  assert.ok(!isSentence || isCorrected);
  const certificates = isSentence ? (given.configMapBundle.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) as string[]).join('\n') : expected.newCAData;
  assert.equal(decision.write && bundleText(wanted), certificates.trimEnd());
}

function afterConnectionError({ deferKubeletRestart, backgroundError }: Json, expected: Json): void {
  const due = deferKubeletRestart ? 'deferred' : 'none';
  const { restartsKubelet } = decideOnConnectionError(due, new Error(backgroundError));
  assert.equal(restartsKubelet, expected.rebootstrap);
  assert.equal(restartsKubelet ? new AgentMustRestart().exitCode : null, expected.processExit);
}

/** What is asked of the host from the stop on. */
async function restartSequence(expected: Json): Promise<void> {
  const host = memoryHost();
  const [before, added] = [await ca('before'), await ca('added')];
  await installKubelet(host, before);
  const steps: string[] = [];
  const watched = observed(host, ({ name, args: [path] }) => {
    if (name === 'services.stop') steps.push('systemctl stop kubelet');
    if (steps.length === 0) return;
    if (name === 'files.read' && path === LIVE_KUBECONFIG) steps.push(`read ${LIVE_KUBECONFIG}`);
    if (name === 'files.write' && path === LIVE_KUBECONFIG) {
      steps.push('replace clusters[0].cluster.certificate-authority-data with the new bundle');
      steps.push(`atomic write ${LIVE_KUBECONFIG} (mode kept)`);
    }
    if (name === 'services.daemonReload') steps.push('systemctl daemon-reload');
    if (name === 'services.start') steps.push('systemctl start kubelet');
  });
  await ensureServerCa(watched, Buffer.from(before + added), []);
  assert.deepEqual(steps, expected.steps);
}

/** D-5: the rotation is not observed, and that is said. */
async function unreadableBundle(): Promise<void> {
  const host = memoryHost();
  await installKubelet(host, await ca('before'));
  host.asked.length = 0;
  const inputs = { spec: {}, nodeLabels: {}, kubeconfigData: undefined, isRotationOpen: true };
  const { problems, serverCaDigest } = await ensureCertificates(host, new OsPullSecret(host.files), inputs);
  assert.ok(problems.some(({ code }) => code === 'ServerCANotFound'));
  assert.equal(serverCaDigest, undefined);
  assert.deepEqual(host.asked, []);
  assert.equal(await host.files.read(KUBELET_CA), undefined);
}

function encodedBundles(bundles: { file: string; data: string }[] | undefined): { file: string; data: string }[] {
  return (bundles ?? []).map(({ file, data }) => ({ file, data: Buffer.from(data).toString('base64') }));
}

/** Files that are there before: a map of paths and texts, or names in the directory of registries. */
async function place(files: HostFiles, given: Json): Promise<void> {
  const entries = Array.isArray(given) ? given.map(name => [name, 'before']) : Object.entries(given ?? {});
  for (const [path, text] of entries as [string, string][]) {
    await files.write(path.startsWith('/') ? path : `${REGISTRY_CAS}/${path}`, Buffer.from(text));
  }
}

function isKeptFile({ existingFiles = [] }: Json, name: string): boolean {
  const paths: string[] = Array.isArray(existingFiles) ? existingFiles : Object.keys(existingFiles);
  return paths.some(path => path === name || path === `${REGISTRY_CAS}/${name}`);
}
