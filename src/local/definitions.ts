import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { load } from 'js-yaml';
import { applyObject } from '../kube/apply.ts';
import type { Kube } from '../kube/port.ts';
import { CUSTOM_RESOURCE_DEFINITIONS, type KubeObject } from '../kube/resource.ts';

const NOBODY = { event() {} };
/** Seen from the sources and from the bundled program. */
const PLACES = ['../../manifests/crds/', '../manifests/crds/'].map(path => new URL(path, import.meta.url));

/** Makes the API know the kinds we ship, in the version we ship. */
export async function applyDefinitions(kube: Kube): Promise<void> {
  const place = PLACES.find(url => existsSync(url));
  if (place === undefined) throw new Error(`expected the definitions of our kinds in ${PLACES.join(' or ')}`);
  const files = readdirSync(place).filter(name => name.endsWith('.yaml'));
  for (const file of files.sort()) {
    const definition = load(readFileSync(new URL(file, place), 'utf8')) as KubeObject;
    await applyObject({ kube, events: NOBODY }, CUSTOM_RESOURCE_DEFINITIONS, definition);
  }
}
