import { REFRESH_PERIOD } from '../../certrotation/annotations.ts';
import { annotationsOf, dataText, TLS_CERT } from '../../certrotation/secret.ts';
import { signerChanged } from '../../certrotation/signer-change.ts';
import { FAMILY_TABLE } from '../../etcd/cert-table.ts';
import { decideHandOver, decisionOf } from '../../etcd/hand-over.ts';
import { ALL_BUNDLES, ETCD_NAMESPACE, CONFIG_NAMESPACE as SIGNERS_IN_USE } from '../../etcd/names.ts';
import { type Family, type Profile, profile416, profileLater } from '../../etcd/profile.ts';
import { readVerifiers, receiptsFor, waivedNodes } from '../../etcd/verifiers.ts';
import { metadataOf } from '../../inventory/certificates.ts';
import { chainOfTarget, isNamed } from '../../inventory/known-chains.ts';
import type { HandOverItem } from '../../inventory/model.ts';
import type { PublicSecret } from '../../inventory/public-secret.ts';
import type { InventoryObjects } from '../../inventory/read.ts';
import { certificatesIn } from '../../inventory/relations.ts';
import { KubeError } from '../../kube/error.ts';
import type { KubeObject, ObjectKey, Resource } from '../../kube/resource.ts';
import type { Certificate } from '../../pki/certificate.ts';

/** The signers of etcd, by the rule of its operator: what its revisions hold is what its members have loaded (spec 40, 12). */
export async function etcdHandOvers(objects: InventoryObjects, dayMs: number, now: Date): Promise<HandOverItem[]> {
  // Without its operator's resource nobody knows who verifies.
  if (objects.operands.find(({ operand }) => operand === 'etcd')?.resource === undefined) return [];
  const isLater = objects.configMaps.some(found => isNamed(found, { namespace: ETCD_NAMESPACE, name: ALL_BUNDLES }));
  const profile = isLater ? profileLater(dayMs) : profile416(dayMs);
  const items = (['server', 'metrics'] as const).map(family => itemOf(family, profile, objects, now));
  return (await Promise.all(items)).filter(item => item !== undefined);
}

async function itemOf(
  family: Family,
  profile: Profile,
  objects: InventoryObjects,
  now: Date,
): Promise<HandOverItem | undefined> {
  const { signer: name, bundle } = FAMILY_TABLE[family];
  const secret = objects.secrets.find(found => isNamed(found, { namespace: ETCD_NAMESPACE, name }));
  const used = objects.secrets.find(found => isNamed(found, { namespace: SIGNERS_IN_USE, name }));
  const [wanted, inUse] = [certificateOf(secret), certificateOf(used)];
  if (secret === undefined || wanted === undefined) return undefined;
  const leaves = objects.secrets.filter(found => chainOfTarget(found)?.signer.name === name && !isCopy(found));
  const isOf = (leaf: PublicSecret, ca: Certificate | undefined) =>
    ca !== undefined && signerChanged(leaf, [ca], now) === undefined;
  const receipts = receiptsFor(await verifiersOf(family, profile, objects), wanted, waivedNodes(objects.nodes));
  const plan = decideHandOver({
    wanted,
    inUse,
    isMeantForUse: annotationsOf(secret)[REFRESH_PERIOD] !== undefined,
    leavesAreOf: leaves.length === 0 ? 'nobody' : leaves.every(leaf => isOf(leaf, wanted)) ? 'wanted' : 'other',
    receipts,
    mode: profile.handOver,
    policy: profile.lifetimes.signer,
    now,
  });
  const current = inUse ?? wanted;
  const follow = leaves.filter(leaf => !isOf(leaf, current));
  const configMap = objects.configMaps.find(found => isNamed(found, { namespace: ETCD_NAMESPACE, name: bundle }));
  const retiring = certificatesIn(configMap?.data?.['ca-bundle.crt']).filter(
    ca => ca.notAfter > now && ![wanted, current].some(({ der }) => der.equals(ca.der)),
  );
  const isUnderWay = plan.do !== 'keep';
  const names = follow.map(({ metadata }) => metadata?.name ?? '');
  const { phase, write, because } = decisionOf(plan, { follow: names, retiring });
  return {
    metadata: metadataOf(secret),
    operator: 'etcd',
    isByReceipts: true,
    phase,
    write,
    because,
    ...(isUnderWay ? { since: wanted.notBefore.toISOString(), next: wanted.subject.commonName } : {}),
    current: current.subject.commonName,
    retiring: retiring.map(({ subject }) => subject.commonName),
    leaves: leaves.map(leaf => ({ name: leaf.metadata?.name ?? '', isOfCurrent: isOf(leaf, current) })),
    holdsLeaves: plan.do === 'wait',
    receipts: isUnderWay ? receipts : [],
    receiptsFrom: isUnderWay ? 'here' : undefined,
    presenters: [],
    waitingFor: plan.do === 'wait' ? plan.for : [],
    leftBehind: plan.do === 'promote' ? plan.leftBehind.map(({ verifier }) => verifier) : [],
    asks: [
      { process: family === 'server' ? 'etcd, kube-apiserver' : 'etcd', nodes: 'control-plane', how: BY_REVISION },
    ],
    notCounted: [],
  };
}

const BY_REVISION = 'by the revision it runs';

/** As the operator reads them, out of the objects that were read. */
async function verifiersOf(family: Family, profile: Profile, { operands, configMaps }: InventoryObjects) {
  const statusOf = (operand: string) => operands.find(found => found.operand === operand)?.resource?.status;
  const get = async <T extends KubeObject>(_resource: Resource<T>, { namespace = '', name }: ObjectKey): Promise<T> => {
    const found = configMaps.find(configMap => isNamed(configMap, { namespace, name }));
    if (found === undefined) throw new KubeError(404, 'NotFound', `configmap ${name} is not there`);
    return found as KubeObject as T;
  };
  return readVerifiers(family, {
    kube: { get },
    profile,
    etcd: statusOf('etcd') ?? {},
    kubeApiServer: statusOf('kube-apiserver'),
  });
}

/** Copies of a leaf in other namespaces have its name. */
function isCopy({ metadata }: PublicSecret): boolean {
  return metadata?.namespace !== ETCD_NAMESPACE;
}

function certificateOf(secret: PublicSecret | undefined): Certificate | undefined {
  return secret === undefined ? undefined : certificatesIn(dataText(secret, TLS_CERT))[0];
}
