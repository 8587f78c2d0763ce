/** Writes `manifests/kubeadm` from what adoption installs: `node src/cli/adopt/manifests.ts`. A test compares the two. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { dump } from 'js-yaml';
import { type InstalledObject, objectsOf, type Part } from '../../kubeadm/adopt/objects.ts';
import { CERTIFICATES_DIRECTORY } from '../../kubeadm/names.ts';

/** kustomize puts the image of this version, or yours, in its place. */
const IMAGE = 'rotunda';
const CONTROL_PLANE_NODES = 3;

const HEAD = '# Made from src/kubeadm/adopt by `node src/cli/adopt/manifests.ts`; a test keeps it up to date.\n';

/** The files by name, for a control plane of three nodes whose operator may restart nothing of others. */
export function manifestFiles(): Map<string, string> {
  const objects = objectsOf({
    image: IMAGE,
    controlPlaneNodes: CONTROL_PLANE_NODES,
    certificatesDirectory: CERTIFICATES_DIRECTORY,
    restartsPods: false,
  });
  const parts = Map.groupBy(objects, ({ part }): Part => part);
  return new Map([...parts].map(([part, found]) => [`${part}.yaml`, HEAD + yamlOf(found)]));
}

/** The objects as YAML, each rule of a role with its reason above it. */
export function yamlOf(objects: readonly InstalledObject[]): string {
  return objects.map(documentOf).join('---\n');
}

function documentOf({ object, reasons = [] }: InstalledObject): string {
  const { rules, ...rest } = object as { rules?: readonly object[] };
  if (rules === undefined) return yaml(object);
  const texts = rules.map((rule, index) => `  # ${reasons[index]}\n${yaml([rule]).replaceAll(/^(?=.)/gm, '  ')}`);
  return `${yaml(rest)}rules:\n${texts.join('')}`;
}

function yaml(value: object): string {
  return dump(value, { lineWidth: -1, noRefs: true });
}

if (import.meta.main) {
  const folder = join(import.meta.dirname, '..', '..', '..', 'manifests', 'kubeadm');
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of manifestFiles()) writeFileSync(join(folder, name), text);
}
