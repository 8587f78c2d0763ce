import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { HOSTNAMES, REFRESH_PERIOD } from '../certrotation/annotations.ts';
import { type RotationUnit, rotationUnit, type SignerConfig } from '../certrotation/config.ts';
import { clientCreator, peerCreator, servingCreator } from '../certrotation/creator.ts';
import { annotationsOf, dataText, TLS_CERT } from '../certrotation/secret.ts';
import { chainOfNextSigner, chainOfSigner, chainOfTarget, isNamed, KNOWN_CHAINS } from '../inventory/known-chains.ts';
import { rotationDayOf } from '../inventory/read.ts';
import { certificatesIn, Relations } from '../inventory/relations.ts';
import { days, parseGoDuration } from '../kube/duration.ts';
import { KUBE_APISERVER_CHAINS } from '../kube-apiserver/chains.ts';
import { type HostnameSources, hostnameSources } from '../kube-apiserver/rotation/follow-hostnames.ts';
import { decideHostnames } from '../kube-apiserver/rotation/hostnames.ts';
import { rotationUnits } from '../kube-apiserver/rotation/units.ts';
import { hostnamesOf } from '../pki/hosts.ts';
import type { PlanObjects } from './objects.ts';

const CHEAP = 'P-256';

/** How long a rotation day lasts: what the objects' own refresh periods say, against our tables; else the cluster's setting. */
export function rotationDayFrom({ secrets, configMaps }: Pick<PlanObjects, 'secrets' | 'configMaps'>): number {
  for (const secret of secrets) {
    const refreshMs = parseGoDuration(annotationsOf(secret)[REFRESH_PERIOD] ?? '');
    const chain = KUBE_APISERVER_CHAINS.find(
      ({ signer, target }) => isNamed(secret, signer) || isNamed(secret, target),
    );
    if (refreshMs === undefined || chain === undefined) continue;
    const { refreshDays } = isNamed(secret, chain.signer) ? chain.signer : chain.target;
    return refreshMs / refreshDays;
  }
  return rotationDayOf(configMaps);
}

/** The units of the kube-apiserver operator that this cluster has. */
export function kubeApiserverUnits(objects: PlanObjects, dayMs: number): RotationUnit[] {
  const chains = KUBE_APISERVER_CHAINS.filter(({ signer, target }) =>
    objects.secrets.some(secret => isNamed(secret, signer) || isNamed(secret, target)),
  );
  return rotationUnits({ dayMs, hostnames: sourcesFrom(objects), keyAlgorithm: CHEAP, chains });
}

/** The names of the cluster's configuration; where it is not there, those the certificates have. */
function sourcesFrom({ network, infrastructure, secrets }: PlanObjects): HostnameSources {
  const sources = hostnameSources();
  for (const { target } of KUBE_APISERVER_CHAINS) {
    if (target.creator.kind !== 'serving' || typeof target.creator.hostnames !== 'string') continue;
    const source = target.creator.hostnames;
    const answer = decideHostnames(source, { network, infrastructure });
    const secret = secrets.find(candidate => isNamed(candidate, target));
    const noted = (secret && annotationsOf(secret)[HOSTNAMES])?.split(',').filter(Boolean);
    sources[source].set(answer.ok ? answer.hostnames : (noted ?? ['localhost']));
  }
  return sources;
}

/** Objects of other operators that rotate by the same rules: one unit for each target whose signer and bundle are here. */
export function foreignUnits({ secrets, configMaps }: PlanObjects, notes: string[]): RotationUnit[] {
  const relations = new Relations(secrets, configMaps);
  const known = (secret: Secret) => chainOfSigner(secret) ?? chainOfNextSigner(secret) ?? chainOfTarget(secret);
  return secrets.flatMap(secret => {
    if (relations.role(secret) !== 'target' || known(secret) !== undefined || isCopyOfOurs(secret)) return [];
    const signer = relations.signerOfTarget(secret);
    const bundle = signer && relations.bundleObjectOf(signer);
    const { namespace = '', name = '' } = secret.metadata ?? {};
    if (signer === undefined || bundle === undefined || known(signer.secret) !== undefined) {
      notes.push(`secret/${name} in ${namespace} is rotated by somebody whose signer or bundle is not here: left out`);
      return [];
    }
    const { namespace: bundleNamespace = '', name: bundleName = '' } = bundle.configMap.metadata ?? {};
    const creator = foreignCreator(secret);
    return [
      rotationUnit({
        name: `${namespace}/${name}`,
        signer: foreignConfig(signer.secret),
        bundle: { namespace: bundleNamespace, name: bundleName },
        target: { ...foreignConfig(secret), creator },
      }),
    ];
  });
}

/** Copies of rotated Secrets keep their annotations; the one they come from is what rotates. */
function isCopyOfOurs({ metadata }: Secret): boolean {
  return KNOWN_CHAINS.some(({ target }) => target.name === metadata?.name && target.namespace !== metadata.namespace);
}

function foreignConfig(secret: Secret): SignerConfig {
  const { namespace = '', name = '' } = secret.metadata ?? {};
  const [certificate] = certificatesIn(dataText(secret, TLS_CERT));
  const lifeMs = certificate ? certificate.notAfter.getTime() - certificate.notBefore.getTime() : days(30);
  const refreshMs = parseGoDuration(annotationsOf(secret)[REFRESH_PERIOD] ?? '');
  // Without a refresh period the 80 % rule is the only one that fires.
  return {
    namespace,
    name,
    validityMs: lifeMs,
    refreshMs: refreshMs ?? lifeMs,
    keyAlgorithm: CHEAP,
  };
}

function foreignCreator(secret: Secret) {
  const [certificate] = certificatesIn(dataText(secret, TLS_CERT));
  if (certificate === undefined) return clientCreator({ name: secret.metadata?.name ?? 'unknown' });
  const hostnames = hostnamesOf(certificate);
  const { commonName: name, organizations: groups } = certificate.subject;
  if (hostnames.length === 0) return clientCreator({ name: name || 'unknown', groups });
  return certificate.extKeyUsages.includes('clientAuth') ? peerCreator({ hostnames }) : servingCreator({ hostnames });
}
