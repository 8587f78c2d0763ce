import { encodeCertificates, encodePrivateKey } from '../../pki/pem.ts';
import { caDigest } from '../../trust/receipts.ts';
import { SERVICE_ACCOUNT } from '../service-account-keys.ts';
import type { Wanted } from '../wanted.ts';
import { bundleContent, type Content, kubeconfigContent, manifestContent, wholeContent } from './contents.ts';
import type { FileText } from './file-text.ts';
import { refusalOf } from './judge.ts';
import { KUBELET_CONF } from './places.ts';
import { isOwnSigner, type Order, signsOf, understand } from './refuse.ts';
import {
  behindOf,
  COMPONENTS,
  isAsWritten,
  isOfManifest,
  type LeafFiles,
  type NodeSight,
  type SignerFiles,
  type StaticPod,
} from './sight.ts';
import type { KubeletRenewal, Step } from './step.ts';

export type Decision =
  /** Carry these out, then look again. */
  | { readonly kind: 'steps'; readonly steps: readonly Step[] }
  /** Something has to happen by itself first. */
  | { readonly kind: 'wait'; readonly for: string }
  /** Nothing may be written. */
  | { readonly kind: 'refused'; readonly problem: string }
  /** Files and processes are as they are to be. */
  | { readonly kind: 'settled' };

const SIGNING_FLAGS = { certificate: 'cluster-signing-cert-file', key: 'cluster-signing-key-file' } as const;

/**
 * What is to be done next on a node so that it becomes what is wanted (spec 80, 5 to 7). It follows from what is there alone, so that
 * whoever died in the middle is followed by somebody who goes on. The first thing that is not as it is to be comes first.
 */
export function decideSteps(sight: NodeSight, wanted: Wanted, now: Date): Decision {
  const [begun] = sight.begun;
  if (begun !== undefined && sight.faults.length === 0) return { kind: 'steps', steps: [{ do: 'end-pair', begun }] };
  const order = understand(sight, wanted, now);
  if ('refusal' in order) return { kind: 'refused', problem: order.refusal };
  for (const stage of STAGES) {
    const decision = stage(sight, order);
    if (Array.isArray(decision)) {
      if (decision.length > 0) return { kind: 'steps', steps: decision };
    } else if (decision !== undefined) return decision;
  }
  return { kind: 'settled' };
}

/** A kubelet renews its certificate by itself before this part of its life is over. */
const KUBELET_REFRESH = 0.9;

/** What the kubelet's own certificate needs without anybody having asked: it is near its end, or past it (spec 80, 5). */
export function decideRescue(sight: NodeSight, now: Date, isInRound: boolean): readonly Step[] {
  const leaf = sight.leaves.get(KUBELET_CONF);
  if (leaf === undefined || sight.faults.length > 0 || refusalOf(sight, leaf) !== undefined) return [];
  const { notBefore, notAfter } = leaf.certificate;
  const dueMs = notBefore.getTime() + KUBELET_REFRESH * (notAfter.getTime() - notBefore.getTime());
  // A round ends with a restart, and leaves nothing behind; one is enough.
  if (now.getTime() < dueMs) return isInRound ? [] : afterRescue(sight);
  const [ca] = sight.signers.get('ca')?.cas ?? [];
  const signs = ca && caDigest(ca);
  const hasEnded = now >= notAfter || !leaf.keyFits;
  const canSign = ca !== undefined && ca.notAfter > now && sight.keys.has(caDigest(ca));
  const how: KubeletRenewal =
    hasEnded && canSign && signs !== undefined ? { by: 'sign', signs, isStopgap: true } : asking(leaf, undefined, now);
  return [{ do: 'renew-kubelet', leaf, from: now, how }];
}

function afterRescue({ kubelet, own, places }: NodeSight): Step[] {
  if (kubelet.mustRestart) return [{ do: 'restart-kubelet' }];
  return own.isEmpty ? [{ do: 'remove', paths: [places.own] }] : [];
}

/** Where one of these has ended, nobody is answered by kube-apiserver, or it by etcd: what is wanted does not arrive here any more. */
const LIFELINE = ['apiserver', 'apiserver-etcd-client', 'etcd-server', 'etcd-peer'];

/** What of that has ended, and can be signed here. Servers take it by themselves; everything else is for a round (spec 80, 5). */
export function decideLifeline(sight: NodeSight, now: Date): readonly Step[] {
  if (sight.faults.length > 0) return [];
  return LIFELINE.flatMap((name): Step[] => {
    const leaf = sight.leaves.get(name);
    const [ca] = sight.signers.get(leaf?.chain.signer ?? 'ca')?.cas ?? [];
    if (leaf === undefined || ca === undefined || leaf.certificate.notAfter > now) return [];
    const signs = caDigest(ca);
    const canSign = ca.notAfter > now && sight.keys.has(signs) && refusalOf(sight, leaf) === undefined;
    return canSign ? [{ do: 'renew', leaf, from: now, signs, isStopgap: true }] : [];
  });
}

/** Whose certificate has ended cannot ask for another one himself. */
function asking(leaf: LeafFiles, signs: string | undefined, now: Date): KubeletRenewal {
  const isGood = leaf.keyFits && now < leaf.certificate.notAfter;
  return { by: isGood ? 'ask-as-node' : 'ask-as-agent', signs };
}

type Stage = (sight: NodeSight, order: Order) => Step[] | Decision | undefined;

const STAGES: readonly Stage[] = [
  publish,
  signingFiles,
  separate,
  authorities,
  kubeconfigAuthorities,
  leaves,
  serviceAccount,
  staticPods,
  joinAgain,
  kubelet,
  forget,
];

function publish(sight: NodeSight, { wanted }: Order): Step[] {
  return wanted.publishes
    .filter(what => (what === SERVICE_ACCOUNT || isOwnSigner(sight, what)) && !sight.published.has(what))
    .map(what => ({ do: 'publish', what }));
}

/** The pair that kube-controller-manager is to sign with stands in files of its own (KA-7). */
function signingFiles(sight: NodeSight, order: Order): Step[] {
  const { places, signing } = sight;
  const signs = signsOf(sight, order.signers, 'ca');
  if (!order.wanted.isSeparate || !sight.pods.has('kube-controller-manager') || signs === undefined) return [];
  const isThere = signing !== undefined && signing.key !== undefined && holdsOnly(signing, caDigest(signs));
  if (isThere) return [];
  return [pairStep(sight, caDigest(signs), places.signing, signing, encodeCertificates([signs]), false)];
}

/** A second CA may be trusted only after that (KA-7). */
function separate(sight: NodeSight, { wanted }: Order): Step[] | Decision {
  const manager = sight.pods.get('kube-controller-manager');
  if (!wanted.isSeparate || manager === undefined) return [];
  const content = manifestContent(
    manager,
    { flags: signingFlags(sight, true), mustRestart: false, isPlain: false },
    undefined,
  );
  if (content.is !== 'as-it-is') return fileSteps(manager.file, content);
  return isAsWritten(manager) ? [] : waitFor(manager);
}

/** Files of CAs, and the key of the one that signs. */
function authorities(sight: NodeSight, { signers }: Order): Step[] {
  return [...signers].flatMap(([name, { cas, signs }]): Step[] => {
    const there = sight.signers.get(name);
    if (there === undefined) return [];
    const content = bundleContent(there.file, cas, sight.before.get(there.file.real));
    const [first] = there.cas;
    const isSigning =
      sight.role === 'control-plane' &&
      (there.keyFile !== undefined || first === undefined || caDigest(first) !== signs);
    const isKeyRight = !isSigning || (there.key !== undefined && first !== undefined && caDigest(first) === signs);
    if (isKeyRight) return fileSteps(there.file, content);
    const text =
      content.is === 'text' ? content.text : content.is === 'before' ? beforeText(sight, there.file) : there.file.text;
    return [pairStep(sight, signs, there.place, there, text, true)];
  });
}

/** Whoever trusts `ca.crt` through a kubeconfig has the same CAs. */
function kubeconfigAuthorities(sight: NodeSight, { signers }: Order): Step[] {
  const cas = signers.get('ca')?.cas;
  if (cas === undefined) return [];
  return [...sight.kubeconfigs.values()].flatMap(kubeconfig =>
    fileSteps(kubeconfig.file, kubeconfigContent(kubeconfig, cas, sight.before.get(kubeconfig.file.real))),
  );
}

function leaves(_: NodeSight, { due }: Order): Step[] {
  return due.filter(({ leaf }) => leaf.chain.name !== KUBELET_CONF).map(leaf => ({ do: 'renew', ...leaf }));
}

function serviceAccount(sight: NodeSight, { wanted }: Order): Step[] {
  const { serviceAccount: asked } = wanted;
  const there = sight.serviceAccount;
  if (asked === undefined || there === undefined || sight.role === 'worker') return [];
  const steps: Step[] = [];
  const { publicFile } = there;
  // A public key comes before its private one.
  steps.push(...fileSteps(publicFile, wholeContent(publicFile, asked.publicKeys, sight.before.get(publicFile.real))));
  // Not put back with its times: a process that began with another key has to be seen to be older than it.
  if (there.signs !== asked.signs && there.keyFile !== undefined) {
    steps.push(...fileSteps(there.keyFile, { is: 'text', text: sight.tokenKeys.get(asked.signs) ?? '' }, false));
  }
  return steps;
}

/** One static pod after the other: its manifest says what it is to begin with, and then it has to run. */
function staticPods(sight: NodeSight, { wanted }: Order): Step[] | Decision {
  const isPlain = isPlainNow(sight, wanted);
  for (const component of COMPONENTS) {
    const pod = sight.pods.get(component);
    if (pod === undefined) continue;
    const flags = component === 'kube-controller-manager' ? flagsWanted(sight, pod, wanted) : {};
    // What it says it begins with, or began with, is something else by now.
    const isUntrue = pod.manifest.restart !== undefined && pod.manifest.restart !== pod.digest;
    // What is about to be started anew by its kubelet will read what is there then.
    const isBehind = pod.manifest.restart === undefined && isOfManifest(pod) && behindOf(pod).length > 0;
    const mustRestart = isUntrue || isBehind;
    const content = manifestContent(pod, { flags, mustRestart, isPlain }, sight.before.get(pod.file.real));
    if (content.is !== 'as-it-is') return fileSteps(pod.file, content, !isPlain);
    if (!isAsWritten(pod)) return waitFor(pod);
  }
  return [];
}

/** The signing files of our own go when nobody names them any more. */
function joinAgain({ signing, places, pods }: NodeSight, { wanted }: Order): Step[] {
  if (wanted.isSeparate || signing === undefined) return [];
  const names = pods
    .get('kube-controller-manager')
    ?.manifest.command.some(word => word.includes(places.signing.certificate));
  return names === true ? [] : [{ do: 'remove', paths: [places.signing.key, places.signing.certificate] }];
}

function kubelet(sight: NodeSight, { due, now }: Order): Step[] {
  const own = due.find(({ leaf }) => leaf.chain.name === KUBELET_CONF);
  if (own !== undefined) {
    const { leaf, from, signs } = own;
    const how = sight.keys.has(signs) ? ({ by: 'sign', signs } as const) : asking(leaf, signs, now);
    return [{ do: 'renew-kubelet', leaf, from, how }];
  }
  return sight.kubelet.mustRestart ? [{ do: 'restart-kubelet' }] : [];
}

function forget(sight: NodeSight, { wanted }: Order): Step[] {
  if (!isPlainNow(sight, wanted)) return [];
  if (sight.own.hasBefore) return [{ do: 'forget-before' }];
  return sight.own.isEmpty ? [{ do: 'remove', paths: [sight.places.own] }] : [];
}

/** No hand-over is under way on this node: every CA stands alone, and so does the key of service accounts. */
function isPlainNow(sight: NodeSight, { isSeparate, serviceAccount: asked }: Wanted): boolean {
  const isOneKey =
    asked === undefined || sight.serviceAccount === undefined || sight.serviceAccount.accepts.length === 1;
  return (
    isOneKey &&
    !isSeparate &&
    [...sight.signers].every(([name, { cas }]) => !isOwnSigner(sight, name) || cas.length === 1)
  );
}

/** Ours only as long as the roles are apart; whatever else is in the manifest is its owner's. */
function flagsWanted(sight: NodeSight, { manifest }: StaticPod, { isSeparate }: Wanted): Record<string, string> {
  const isApart = manifest.flags.get(SIGNING_FLAGS.certificate) === sight.places.signing.certificate;
  return isSeparate || isApart ? signingFlags(sight, isSeparate) : {};
}

function signingFlags({ places, signers }: NodeSight, isSeparate: boolean): Record<string, string> {
  const { certificate, key } = isSeparate ? places.signing : (signers.get('ca')?.place ?? places.signing);
  return { [SIGNING_FLAGS.certificate]: certificate, [SIGNING_FLAGS.key]: key };
}

function holdsOnly({ cas }: SignerFiles, digest: string): boolean {
  return cas.length === 1 && cas[0] !== undefined && caDigest(cas[0]) === digest;
}

function pairStep(
  { keys }: NodeSight,
  signs: string,
  place: SignerFiles['place'],
  there: SignerFiles | undefined,
  certificate: string,
  isHandOver: boolean,
): Step {
  const pair = keys.get(signs);
  if (pair === undefined) throw new RangeError('a key that is wanted was not looked for');
  return {
    do: 'place-pair',
    place,
    certificate,
    key: encodePrivateKey(pair.key),
    files: { certificate: there?.file, key: there?.keyFile },
    isHandOver,
  };
}

function beforeText({ before }: NodeSight, file: FileText): string {
  return before.get(file.real)?.copy.text ?? file.text;
}

function fileSteps(file: FileText, content: Content, isHandOver = true): Step[] {
  switch (content.is) {
    case 'as-it-is':
      return [];
    case 'before':
      return [{ do: 'put-back', file }];
    case 'text':
      return [{ do: 'write', file, text: content.text, isHandOver }];
  }
}

function waitFor(pod: StaticPod): Decision {
  const { component, running } = pod;
  if (running === undefined) return { kind: 'wait', for: `${component} to run` };
  return {
    kind: 'wait',
    for: !isOfManifest(pod) ? `${component} to be started anew by the kubelet` : `${component} to become ready`,
  };
}
