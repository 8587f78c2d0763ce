import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { BUNDLE_KEY } from '../certrotation/bundle.ts';
import { isNamed } from '../inventory/known-chains.ts';
import { certificatesIn } from '../inventory/relations.ts';
import { MANAGED_NAMESPACE } from '../kube-apiserver/namespaces.ts';
import type { Standstill } from './simulate.ts';

const CSR_CA = { namespace: MANAGED_NAMESPACE, name: 'csr-controller-ca' };

/** What kubelets show is on their nodes only; no certificate outlives the CA that signed it, and that one can be seen. */
export interface KubeletsOff {
  /** Their certificates have certainly ended at the wake-up. */
  readonly hand?: string | undefined;
  readonly note?: string | undefined;
}

const APPROVE =
  'approve the certificate signing requests of every kubelet (kubectl get csr), client certificates first';

export function kubeletsAfter(configMaps: readonly ConfigMap[], off: Standstill): KubeletsOff {
  const bundle = configMaps.find(candidate => isNamed(candidate, CSR_CA));
  const lives = certificatesIn(bundle?.data?.[BUNDLE_KEY]).map(
    ({ notBefore, notAfter }) => notAfter.getTime() - notBefore.getTime(),
  );
  if (lives.length === 0) return {};
  const isOver = off.until.getTime() - off.from.getTime() > Math.max(...lives);
  if (isOver) return { hand: `${APPROVE}: whatever they had when it was switched off has ended` };
  return {
    note: `when the certificates of kubelets end is in no object: if they do while all is off, ${APPROVE}`,
  };
}
