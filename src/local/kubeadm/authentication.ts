import { isAlreadyExists, isConflict } from '../../kube/error.ts';
import { getIfPresent } from '../../kube/get.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS } from '../../kube/resource.ts';
import { AUTHENTICATION } from '../../kubeadm/names.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { certificatesIn, encodeCertificates } from '../../pki/pem.ts';

const HEADERS = {
  'requestheader-allowed-names': '["front-proxy-client"]',
  'requestheader-extra-headers-prefix': '["X-Remote-Extra-"]',
  'requestheader-group-headers': '["X-Remote-Group"]',
  'requestheader-username-headers': '["X-Remote-User"]',
};
const MOST_ATTEMPTS = 10;

/**
 * What kube-apiserver tells aggregated API servers of the CAs that it has loaded: they are added to those of others, and only what has
 * ended leaves (spec 80, 1).
 */
export async function publishAuthentication(
  kube: Kube,
  loaded: Readonly<Record<string, string | undefined>>,
  now: Date = new Date(),
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const found = await getIfPresent(kube, CONFIG_MAPS, AUTHENTICATION);
    const data: Record<string, string> = { ...found?.data, ...HEADERS };
    for (const [name, text] of Object.entries(loaded)) {
      if (text !== undefined) data[name] = merged(certificatesIn(found?.data?.[name]), certificatesIn(text), now);
    }
    if (found !== undefined && Object.entries(data).every(([name, text]) => found.data?.[name] === text)) return;
    try {
      if (found === undefined) await kube.create(CONFIG_MAPS, { metadata: { ...AUTHENTICATION }, data });
      else await kube.update(CONFIG_MAPS, { ...found, data });
      return;
    } catch (error) {
      // Every kube-apiserver does this at the same time.
      if (!(isConflict(error) || isAlreadyExists(error)) || attempt === MOST_ATTEMPTS) throw error;
    }
  }
}

function merged(there: readonly Certificate[], loaded: readonly Certificate[], now: Date): string {
  const kept = there.filter(({ notAfter }) => notAfter > now);
  const added = loaded.filter(({ der }) => !kept.some(other => other.der.equals(der)));
  return encodeCertificates([...kept, ...added]);
}
