import { CONFIG_MAPS, type Resource, SECRETS } from '../kube/resource.ts';
import type { Objects } from '../staticpod/objects.ts';
import { SyncRules } from '../staticpod/resource-sync.ts';
import { FAMILY_TABLE } from './cert-table.ts';
import { CONFIG_NAMESPACE, ETCD_NAMESPACE, OPERATOR_NAMESPACE, SYSTEM_NAMESPACE } from './names.ts';
import type { Profile } from './profile.ts';

export interface Place {
  readonly namespace: string;
  readonly name: string;
}

/** One object that is to be a copy of another. */
export interface CopyRule {
  readonly kind: 'ConfigMap' | 'Secret';
  readonly source: Place;
  readonly destination: Place;
  /** A source that is deleted, for instance to prune a bundle, leaves its copies alone (spec 40, RS-2). */
  readonly onlyIfSourceExists: boolean;
}

/** Who gets a copy of what (spec 40, RS-1 and 12.1). */
export function copyRules({ release }: Pick<Profile, 'release'>): CopyRule[] {
  const is416 = release === '4.16';
  const { server, metrics } = FAMILY_TABLE;
  const bundle = (source: string, destination: Place) => rule('ConfigMap', inEtcd(source), destination);
  const secret = (source: string, destination: Place) => rule('Secret', inEtcd(source), destination);
  return [
    {
      ...rule('ConfigMap', { namespace: SYSTEM_NAMESPACE, name: 'cluster-config-v1' }, inEtcd('cluster-config-v1')),
      onlyIfSourceExists: false,
    },
    bundle(server.bundle, inOperator('etcd-ca-bundle')),
    bundle(server.bundle, inConfig('etcd-ca-bundle')),
    ...(is416 ? ['etcd-peer-client-ca', 'etcd-serving-ca'].map(name => bundle(server.bundle, inEtcd(name))) : []),
    bundle(server.bundle, inConfig('etcd-serving-ca')),
    ...(is416
      ? [
          bundle(metrics.bundle, inConfig('etcd-metric-serving-ca')),
          bundle(metrics.bundle, inEtcd('etcd-metrics-proxy-client-ca')),
        ]
      : []),
    bundle(metrics.bundle, inOperator('etcd-metric-serving-ca')),
    ...(is416 ? [bundle(metrics.bundle, inEtcd('etcd-metrics-proxy-serving-ca'))] : []),
    secret(metrics.client.secret, inOperator('etcd-metric-client')),
    secret(server.client.secret, inOperator('etcd-client')),
    secret(server.client.secret, inConfig('etcd-client')),
  ];
}

/** The same as the resource sync controller takes it. */
export function syncRules(profile: Pick<Profile, 'release'>, objects: Pick<Objects, 'get'>): SyncRules {
  const rules = new SyncRules([ETCD_NAMESPACE, OPERATOR_NAMESPACE, CONFIG_NAMESPACE, SYSTEM_NAMESPACE]);
  for (const { kind, source, destination, onlyIfSourceExists } of copyRules(profile)) {
    const resource: Resource = kind === 'Secret' ? SECRETS : CONFIG_MAPS;
    const precondition = async () => (await objects.get(resource, source)) !== undefined;
    const provided = onlyIfSourceExists ? { ...source, precondition } : source;
    rules.add(kind === 'Secret' ? 'secret' : 'configmap', destination, provided);
  }
  return rules;
}

function rule(kind: CopyRule['kind'], source: Place, destination: Place): CopyRule {
  return { kind, source, destination, onlyIfSourceExists: true };
}

const inEtcd = (name: string): Place => ({ namespace: ETCD_NAMESPACE, name });
const inOperator = (name: string): Place => ({ namespace: OPERATOR_NAMESPACE, name });
const inConfig = (name: string): Place => ({ namespace: CONFIG_NAMESPACE, name });
