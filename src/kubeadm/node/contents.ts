import { isDeepStrictEqual } from 'node:util';
import type { Certificate } from '../../pki/certificate.ts';
import { certificatesIn, encodeCertificates } from '../../pki/pem.ts';
import { caDigest } from '../../trust/receipts.ts';
import { type BeforeCopy, isOurs } from './before.ts';
import { type FileText, NodeFault } from './file-text.ts';
import { KubeconfigText } from './kubeconfig-text.ts';
import { ManifestText } from './manifest-text.ts';
import { behindOf, isOfManifest, type KubeconfigFile, type StaticPod } from './sight.ts';

/** What a file is to hold; `before`: exactly what it held before the hand-over. */
export type Content = { readonly is: 'as-it-is' | 'before' } | { readonly is: 'text'; readonly text: string };

const AS_IT_IS: Content = { is: 'as-it-is' };

/** A file of CAs: what is between them stays as long as they do. */
export function bundleContent(file: FileText, cas: readonly Certificate[], before: BeforeCopy | undefined): Content {
  if (isSameCas(certificatesIn(before?.copy.text), cas) && before !== undefined && isOurs(file, before)) {
    return before.copy.text === file.text ? AS_IT_IS : { is: 'before' };
  }
  if (isSameCas(certificatesIn(file.text), cas)) return AS_IT_IS;
  return { is: 'text', text: encodeCertificates(cas) };
}

/** A file whose text is given as a whole. */
export function wholeContent(file: FileText, text: string, before: BeforeCopy | undefined): Content {
  if (file.text === text) return AS_IT_IS;
  return before?.copy.text === text && isOurs(file, before) ? { is: 'before' } : { is: 'text', text };
}

/** A kubeconfig with other CAs; the client's certificate stays the one of now, also where an older file comes back. */
export function kubeconfigContent(
  { file, config, authorities }: KubeconfigFile,
  cas: readonly Certificate[],
  before: BeforeCopy | undefined,
): Content {
  // It names a file, or nothing at all.
  if (config.authorities === undefined) return AS_IT_IS;
  if (before !== undefined && isOurs(file, before)) {
    const back = backWithClient(config, before);
    if (back !== undefined && isSameCas(certificatesIn(back.authorities), cas)) {
      if (back.text === file.text) return AS_IT_IS;
      return back.text === before.copy.text ? { is: 'before' } : { is: 'text', text: back.text };
    }
  }
  // For whoever trusts them their order means nothing, and a change of it a restart.
  if (isSameSet(authorities, cas)) return AS_IT_IS;
  return { is: 'text', text: config.withAuthorities(encodeCertificates(cas)).text };
}

function backWithClient(config: KubeconfigText, { copy }: BeforeCopy): KubeconfigText | undefined {
  try {
    const back = new KubeconfigText(copy.text, copy.path);
    const { certificate, key } = config;
    return certificate === undefined || key === undefined ? back : back.withClient(certificate, key);
  } catch (error) {
    if (error instanceof NodeFault) return undefined;
    throw error;
  }
}

export interface ManifestGoal {
  /** Only where they are to be other ones. */
  readonly flags: Readonly<Record<string, string>>;
  /** The process has to begin anew. */
  readonly mustRestart: boolean;
  /** No hand-over is under way: the manifest may be what it was before one. */
  readonly isPlain: boolean;
}

/** The manifest of a static pod: other flags, another value of our annotation, or what it was before the hand-over. */
export function manifestContent(pod: StaticPod, goal: ManifestGoal, before: BeforeCopy | undefined): Content {
  const { file, manifest, digest } = pod;
  if (goal.isPlain && before !== undefined && isOurs(file, before) && before.copy.text !== file.text) {
    const back = new ManifestText(before.copy.text, file.path);
    const hasFlags = Object.entries(goal.flags).every(([name, value]) => back.flags.get(name) === value);
    // One that says what its process began with has to say the truth.
    const isTrue = back.restart === undefined || back.restart === digest;
    // Nothing would be started anew by the manifest that what is behind has begun with.
    const isStuck = behindOf(pod).length > 0 && isOfManifest({ ...pod, manifest: back });
    if (hasFlags && isTrue && !isStuck) return { is: 'before' };
  }
  let next = manifest;
  if (Object.entries(goal.flags).some(([name, value]) => manifest.flags.get(name) !== value)) {
    next = next.withFlags(goal.flags);
  }
  if (goal.mustRestart && manifest.restart !== digest) next = next.withRestart(digest);
  return next.text === file.text ? AS_IT_IS : { is: 'text', text: next.text };
}

function isSameSet(a: readonly Certificate[], b: readonly Certificate[]): boolean {
  return isDeepStrictEqual(new Set(a.map(caDigest)), new Set(b.map(caDigest)));
}

function isSameCas(a: readonly Certificate[], b: readonly Certificate[]): boolean {
  return (
    a.length > 0 &&
    isDeepStrictEqual(
      a.map(({ der }) => der),
      b.map(({ der }) => der),
    )
  );
}
