import { formatIp, parseIp } from '../../pki/ip.ts';
import { OBSERVED_COPIES } from '../copies.ts';
import { mountedFile } from '../operand-objects.ts';
import { nested } from '../target-config/merge.ts';
import { type Observer, unchanged } from './observation.ts';

const ETCD_SERVERS = ['apiServerArguments', 'etcd-servers'];
const ETCD_PORT = 2379;
/** The member on the own node is asked too, whatever is known of the others. */
const LOCAL_MEMBER = `https://localhost:${ETCD_PORT}`;

/** The members of etcd, as the etcd operator publishes them. */
export const etcdServers: Observer = {
  paths: [ETCD_SERVERS],
  observe({ etcdEndpoints }, previous) {
    if (etcdEndpoints === undefined) return unchanged(previous, 'configmap openshift-etcd/etcd-endpoints not found');
    const addresses = Object.values(etcdEndpoints.data ?? {});
    const wrong = addresses.find(address => parseIp(address) === undefined);
    if (wrong !== undefined) {
      const where = 'configmap openshift-etcd/etcd-endpoints';
      return unchanged(previous, `expected IP addresses in ${where}, found ${JSON.stringify(wrong)}`);
    }
    if (addresses.length === 0) return unchanged(previous, 'configmap openshift-etcd/etcd-endpoints names no members');
    const members = addresses.map(address => {
      const text = formatIp(parseIp(address) as Buffer);
      return `https://${text.includes(':') ? `[${text}]` : text}:${ETCD_PORT}`;
    });
    return { config: nested(ETCD_SERVERS, [...new Set([...members.sort(), LOCAL_MEMBER])]) };
  },
};

const ENCRYPTION = ['apiServerArguments', 'encryption-provider-config'];

/** How Secrets are encrypted in etcd, as soon as the configuration for that has arrived; it is copied once encryption is wanted. */
export const encryption: Observer = {
  paths: [ENCRYPTION],
  observe({ apiServer, encryptionConfig, encryptionSource }) {
    const isWanted = (apiServer?.spec?.encryption?.type ?? '') !== '' || encryptionSource !== undefined;
    const copies = isWanted ? [OBSERVED_COPIES.encryptionConfig] : [];
    if (encryptionConfig === undefined) return { config: {}, copies };
    const file = mountedFile('Secret', 'encryption-config', 'encryption-config');
    return { config: nested(ENCRYPTION, [file]), copies };
  },
};
