import { randomUUID } from 'node:crypto';
import { load } from 'js-yaml';
import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { KUBERNETES_YAML } from '../../kube/yaml-schema.ts';
import { isObjectName } from './plain-name.ts';

/** Permissions of a manifest, in the revision's directory and in the kubelet's (spec 30, 10.3.6). */
export const MANIFEST_MODE = 0o600;
/** Kubelets from here on give a static pod an identity made of its content; older ones need a new one each time. */
const FIRST_KUBELET_WITH_OWN_UID = [1, 23, 0] as const;
const LARGEST_MANIFEST_CHARACTERS = 1024 * 1024;

/**
 * The manifests in the data of a pod ConfigMap as file name and text: `pod.yaml` becomes `<pod>.yaml`, other keys count when they
 * end in `-pod.yaml` (spec 30, 10.3.11). The operand's own comes last, so that its helpers are there when it starts.
 */
export function manifestFiles(data: Readonly<Record<string, string>>, pod: string): { file: string; text: string }[] {
  const main = data['pod.yaml'];
  if (main === undefined) throw new Error("required 'pod.yaml' key does not exist in configmap");
  const others = Object.keys(data).filter(key => key !== 'pod.yaml' && key.endsWith('-pod.yaml'));
  for (const key of others) {
    if (!isObjectName(key))
      throw new Error(`expected a plain file name as key of the pod configmap, found ${JSON.stringify(key)}`);
  }
  return [...others.sort().map(key => ({ file: key, text: data[key] as string })), { file: `${pod}.yaml`, text: main }];
}

/** Reads a manifest the kubelet can use; `where` is for the error. */
export function readManifest(text: string, where: string): Pod {
  const pod = decodePod(text, where);
  if (typeof pod.metadata?.name !== 'string' || pod.metadata.name === '') {
    throw new Error(`${where}: expected metadata.name, found none`);
  }
  return pod;
}

/** Reads the text of a Pod. */
export function decodePod(text: string, where: string): Pod {
  if (text.length > LARGEST_MANIFEST_CHARACTERS) {
    throw new Error(`${where}: expected at most ${LARGEST_MANIFEST_CHARACTERS} characters, found ${text.length}`);
  }
  let value: unknown;
  try {
    value = load(text, { schema: KUBERNETES_YAML, maxAliases: 0 });
  } catch (error) {
    const why = error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);
    throw new Error(`${where} is not YAML: ${why}`, { cause: error });
  }
  const pod = value as Pod | undefined | null;
  if (typeof pod !== 'object' || pod === null || pod.kind !== 'Pod') {
    const found = typeof pod === 'object' && pod !== null ? `kind ${JSON.stringify(pod.kind)}` : describe(value);
    throw new Error(`${where}: expected a Pod, found ${found}`);
  }
  return pod;
}

/** The form a manifest is written in. JSON is YAML, and upstream writes it too. */
export function encodeManifest(pod: Pod): Buffer {
  return Buffer.from(`${JSON.stringify(pod, null, 2)}\n`);
}

/** The pod with a fresh identity for an old kubelet, without one for any other (spec 30, 10.3.11). */
export function withUidFor(pod: Pod, kubeletVersion: string, newUid: () => string = randomUUID): Pod {
  const { uid: _, ...metadata } = pod.metadata ?? {};
  return { ...pod, metadata: needsUid(kubeletVersion) ? { ...metadata, uid: newUid() } : metadata };
}

/** Whether a kubelet of that version needs to be given the pod's identity. A version nobody can read does not. */
export function needsUid(kubeletVersion: string): boolean {
  const match = VERSION.exec(kubeletVersion);
  if (match === null) return false;
  for (const [index, limit] of FIRST_KUBELET_WITH_OWN_UID.entries()) {
    const part = Number(match[index + 1]);
    if (part !== limit) return part < limit;
  }
  // A pre-release comes before its release.
  return match[4] !== undefined;
}

/** A semantic version; what follows a plus does not count in comparisons. */
const VERSION = /^v?(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[^+]+)?(\+.+)?$/;

function describe(value: unknown): string {
  if (value === undefined || value === null || value === '') return 'nothing';
  return Array.isArray(value) ? 'a list' : `a ${typeof value}`;
}
