import { annotationsOf, dataText, TLS_CERT } from '../../certrotation/secret.ts';
import { factsOf } from '../../inventory/certificate-facts.ts';
import { certificatesIn } from '../../inventory/relations.ts';
import type { ObjectSource } from '../../inventory/source.ts';
import { CONFIG_MAPS, SECRETS } from '../../kube/resource.ts';
import type { ObjectRef } from '../../trust/object.ts';
import type { ObjectDetail } from './model.ts';

/** Annotations that are about certificates; others are nobody's business here. */
const SHOWN = /^(?:auth|certificates|imageregistry|machineconfiguration|operator)?\.?openshift\.io\/|^rotunda\.dev\//;

/** What the lists leave out of one Secret or ConfigMap; undefined when it is not there. */
export async function detailOf(source: ObjectSource, object: ObjectRef): Promise<ObjectDetail | undefined> {
  const isIt = ({ metadata }: { metadata?: { namespace?: string; name?: string } }) =>
    metadata?.namespace === object.namespace && metadata.name === object.name;
  const secret = object.kind === 'Secret' ? (await source.list(SECRETS)).find(isIt) : undefined;
  const found = secret ?? (object.kind === 'ConfigMap' ? (await source.list(CONFIG_MAPS)).find(isIt) : undefined);
  if (found === undefined) return undefined;
  const annotations = Object.entries(annotationsOf(found)).filter(([key]) => SHOWN.test(key));
  const chain = secret === undefined ? [] : certificatesIn(dataText(secret, TLS_CERT)).map(factsOf);
  return { object, annotations: Object.fromEntries(annotations.sort(([a], [b]) => (a < b ? -1 : 1))), chain };
}
